"""What the lines of gate.py's file say, against what a gate has to reach."""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import outcome
from gate_suite import COPIES, SUITE
from gate_tools import TOOLS
from scipy.stats import binomtest

Line = dict[str, Any]

KINDS = EQUAL, INSTALLED, SLOWER, COPIED, FORETOLD = (
    "equal",
    "environments",
    "slower",
    "copies",
    "foretold",
)
ENOUGH, ENOUGH_FORETOLD = 100, 20
FALSE_ALARMS = 0.01
CAUGHT = {5.0: 0.95, 10.0: 1.0}
CAUGHT_FORETOLD = 0.95
MOST_S = 300.0
MOST_EQUAL_S = 150.0
BY_HALF = ", 2.5 %"
BY_INSTALLED = ", two environments"
CAPTION = """\
Gates of sixteen conversions; in brackets the 95 % interval (Clopper and Pearson). false alarms:
gates of equal code that fail. elsewhere: gates of slower code that call slower what is not. green:
gates of equal code with exit code 0, nothing slower and nothing unsure. caught: the view that is
slower is called so. dlprof says so of what is surely above half of 5 %, so the others are judged
with 2.5 %, too. Times are of whole gates, both sides: medians, and the longest."""


def summary(given: argparse.Namespace) -> outcome.Outcome:
    """The tables and the targets, from the file alone."""
    file: Path = given.file
    known = [json.loads(text) for text in file.read_text(encoding="utf-8").splitlines() if text]
    gates = [line for line in known if "key" in line]
    ours = of_tool(gates, "dlprof")
    foresight = next((line[FORETOLD] for line in reversed(known) if FORETOLD in line), {})
    parts = [
        CAPTION,
        _table(("tool", *(f"+{percent:g} % is" for percent in CAUGHT)), _arriving(gates)),
        _table(_BY_CONVERSION, [_conversion(one.name, ours) for one in SUITE]),
        _table(_BY_COPY, [_copy(one.name, ours, foresight) for one in COPIES]),
        _table(("dlprof of", *KINDS), _by_commit(ours)),
    ]
    return outcome.Outcome(
        title="Gates: dlprof against what people use",
        columns=_COLUMNS,
        rows=list(_rows(gates)),
        caption="\n\n".join(part for part in parts if part),
        targets=list(targets(ours)),
        details={"gates": len(gates)},
    )


_COLUMNS = (
    "tool",
    "false alarms",
    "elsewhere",
    "green",
    *(f"+{percent:g} % caught" for percent in CAUGHT),
    "s, equal",
    "s, slower",
    "s, most",
)
_BY_CONVERSION = ("dlprof: conversion", "unsure, equal", "+5 %", "is", "+10 %", "is")
_BY_COPY = ("dlprof: copy", "+5 %", "+10 %", "foretold", "caught")


def _rows(gates: Sequence[Line]) -> Iterator[tuple[str, ...]]:
    for tool in TOOLS:
        found = of_tool(gates, tool)
        if found:
            yield _row(tool, found)
        installed = [_as_equal(line) for line in kind(found, INSTALLED)]
        if installed:
            yield _row(tool + BY_INSTALLED, installed)
        half = [_by_half(line) for line in found if line.get("by_half") is not None]
        if half:
            yield _row(tool + BY_HALF, half)


def _as_equal(line: Line) -> Line:
    tool, _, number = line["key"]
    return {**line, "key": [tool, EQUAL, number]}


def _by_half(line: Line) -> Line:
    return {**line, "slower": line["by_half"], "exit_code": int(bool(line["by_half"]))}


def _row(name: str, gates: Sequence[Line]) -> tuple[str, ...]:
    equal, slower = kind(gates, EQUAL), kind(gates, SLOWER)
    return (
        name,
        share([is_alarm(line) for line in equal]),
        share([is_elsewhere(line) for line in gates if line["planted"]]),
        share([line["exit_code"] == 0 for line in equal]),
        *(share(caught(slower, percent)) for percent in CAUGHT),
        _middle(equal),
        _middle(slower),
        f"{_most(gates):.0f}",
    )


def _arriving(gates: Sequence[Line]) -> list[tuple[str, ...]]:
    """What is planted behind views, as each tool measures it."""
    found = []
    for tool in TOOLS:
        slower = kind(of_tool(gates, tool), SLOWER)
        cells = [_arrived(slower, percent) for percent in CAUGHT]
        if any(cells):
            found.append((tool, *(cell or "-" for cell in cells)))
    return found


def _arrived(gates: Sequence[Line], percent: float, name: str | None = None) -> str:
    """The median of the ratios, and the lowest and the highest, in percent above 1."""
    ratios = [
        100 * (line["ratios"][one] - 1)
        for line in gates
        for one, planted in line["planted"].items()
        if planted["percent"] == percent and name in (None, one) and one in line.get("ratios", {})
    ]
    if not ratios:
        return ""
    return f"{statistics.median(ratios):+.1f} % ({min(ratios):+.1f} to {max(ratios):+.1f})"


def _conversion(name: str, gates: Sequence[Line]) -> tuple[str, ...]:
    equal, slower = kind(gates, EQUAL), kind(gates, SLOWER)
    cells = [
        text
        for percent in CAUGHT
        for text in (
            _count(caught(slower, percent, name)),
            _arrived(slower, percent, name) or "-",
        )
    ]
    return name, _count([is_unsure(line, name) for line in equal]), *cells


def _copy(name: str, gates: Sequence[Line], foresight: dict[str, float | None]) -> tuple[str, ...]:
    size = foresight.get(name)
    return (
        name,
        *(_count(caught(kind(gates, COPIED), percent, name)) for percent in CAUGHT),
        "not asked" if name not in foresight else f"{100 * size:g} %" if size else "nothing",
        _count(caught(kind(gates, FORETOLD), name=name)),
    )


def _by_commit(gates: Sequence[Line]) -> list[tuple[str, ...]]:
    """How many gates were run by the code of each commit: only some of them change a gate."""
    commits = dict.fromkeys(_commit(line) for line in gates)
    return [
        (commit, *(str(sum(_commit(line) == commit for line in kind(gates, one))) for one in KINDS))
        for commit in commits
    ]


def _commit(line: Line) -> str:
    return str(line["made_with"]["commit"])


def of_tool(gates: Sequence[Line], tool: str) -> list[Line]:
    return [line for line in gates if line["key"][0] == tool]


def kind(gates: Sequence[Line], name: str) -> list[Line]:
    return [line for line in gates if line["key"][1] == name]


def is_alarm(line: Line) -> bool:
    """Whether a gate of equal code failed, be it for a verdict that seemed to change."""
    return bool(line["slower"]) or line["exit_code"] == 1


def is_elsewhere(line: Line) -> bool:
    """Whether anything is called slower that is not, or a verdict worse, which none is."""
    return bool(set(line["slower"]) - set(line["planted"])) or bool(line.get("changed"))


def is_unsure(line: Line, name: str) -> bool:
    return line["told"].get(name, "").startswith(("UNSURE", "INVALID", "GONE"))


def caught(
    gates: Sequence[Line], percent: float | None = None, name: str | None = None
) -> list[bool]:
    """Of each conversion that is slower, by so much or at all, whether it is called so."""
    return [
        one in line["slower"]
        for line in gates
        for one, planted in line["planted"].items()
        if percent in (None, planted["percent"]) and name in (None, one)
    ]


def share(held: Sequence[bool]) -> str:
    if not held:
        return "-"
    interval = binomtest(sum(held), len(held)).proportion_ci(0.95)
    return f"{_count(held)} ({100 * interval.low:.0f}-{100 * interval.high:.0f} %)"


def _count(held: Sequence[bool]) -> str:
    return f"{sum(held)} of {len(held)}" if held else "-"


def _middle(gates: Sequence[Line]) -> str:
    return f"{statistics.median(line['wall_s'] for line in gates):.0f}" if gates else "-"


def _most(gates: Sequence[Line]) -> float:
    return max((line["wall_s"] for line in gates), default=0.0)


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return outcome.render_table(columns, rows) if rows else ""


def targets(gates: Sequence[Line]) -> Iterator[outcome.Target]:
    """Of dlprof's gates. A share is judged once there are as many gates as it was promised of."""
    equal, slower = kind(gates, EQUAL) + kind(gates, INSTALLED), kind(gates, SLOWER)
    alarms, others = [is_alarm(line) for line in equal], [is_elsewhere(line) for line in slower]
    yield _rare("gates of equal code: at most 1 false alarm in 100", alarms)
    yield _rare("gates of slower code: at most 1 in 100 calls another one slower", others)
    for percent, least in CAUGHT.items():
        promise = f"+{percent:g} % on a view caught in {100 * least:g} of 100"
        yield _often(promise, caught(slower, percent), least, ENOUGH)
    promise = "what is foretold of copies is caught in 95 of 100"
    yield _often(promise, caught(kind(gates, FORETOLD)), CAUGHT_FORETOLD, ENOUGH_FORETOLD)
    yield _short("at most 5 min per gate", gates, MOST_S)
    halves = [line.get("half") for line in equal]
    present = [line for line, half in zip(equal, halves, strict=True) if half == halves[-1]]
    yield _short("half of it when nothing has changed", present, MOST_EQUAL_S)


def _rare(promise: str, held: Sequence[bool]) -> outcome.Target:
    missed = sum(held) > FALSE_ALARMS * max(len(held), ENOUGH)
    return outcome.Target(promise, share(held), _judged(missed, len(held) >= ENOUGH))


def _often(promise: str, held: Sequence[bool], least: float, enough: int) -> outcome.Target:
    missed = len(held) - sum(held) > round((1 - least) * max(len(held), enough), 6)
    return outcome.Target(promise, share(held), _judged(missed, len(held) >= enough))


def _short(promise: str, gates: Sequence[Line], most_s: float) -> outcome.Target:
    found = f"{_most(gates):.0f} s at most"
    return outcome.Target(promise, found, _judged(_most(gates) > most_s, len(gates) >= ENOUGH))


def _judged(missed: bool, enough: bool) -> bool | None:
    return False if missed else True if enough else None
