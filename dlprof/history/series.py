"""From sessions to series: one for each case and machine, in order of time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dlprof.compare.comparison import is_stateful
from dlprof.compare.differences import (
    GPU,
    MACHINE,
    Difference,
    differences,
    disturbance,
)
from dlprof.compare.matching import Key, code_key
from dlprof.compare.processes import Side, median_ns, processes, steady
from dlprof.compare.verdicts import kept_differs
from dlprof.history.entry import Entry
from dlprof.judge.cases import alignments
from dlprof.runner.header import Environment
from dlprof.runner.session import CaseRecord, Result, Verdict
from dlprof.runner.stats import find_modes
from dlprof.text.clean import counted, first_line

RENEWED = "platform"
"""It holds the version of the kernel, so that an update would begin a new history."""


@dataclass(frozen=True)
class Machine:
    """``facts`` tell machines apart; ``name`` is for people."""

    facts: tuple[tuple[str, str], ...]
    name: str


def machine_of(found: Environment) -> Machine:
    """The machine of a header's environment: processor, cores, GPUs and their clocks."""
    facts = [(name, getattr(found, name)) for name in MACHINE if name != RENEWED]
    facts += [
        (f"GPU {index} {name}", getattr(gpu, name))
        for index, gpu in enumerate(found.known_gpus or ())
        for name in GPU
    ]
    cores = found.cores and counted(found.cores, "core")
    known = tuple((name, str(value)) for name, value in facts if value is not None)
    words = [str(word) for word in (found.cpu, cores, *found.gpu_names) if word]
    return Machine(known, ", ".join(words) or "unknown machine")


@dataclass(frozen=True)
class Point:
    """One session's word on a case.

    ``side`` are its processes, of the mode that most of them are in. It is empty if there is no
    time to be trusted, and ``doubt`` says why. ``tried`` is what the session saw of the path at
    chosen addresses, at whichever shape.
    """

    entry: Entry
    result: Result
    side: Side
    doubt: str = ""
    tried: Verdict[Any] | None = None

    @property
    def time_ns(self) -> float | None:
        return median_ns(self.side)


@dataclass(frozen=True)
class Series:
    """One case on one machine. ``missing`` counts newer sessions of the machine without it."""

    case: CaseRecord
    machine: Machine
    points: tuple[Point, ...]
    missing: int = 0

    @property
    def timed(self) -> tuple[Point, ...]:
        return tuple(point for point in self.points if point.side)


def series_of(entries: Sequence[Entry], measure: str) -> tuple[Series, ...]:
    """All series of a history, machine by machine, cases in the order in which they came first.

    ``entries`` are in order of time. A case that a session holds twice is left out of it.
    """
    machines = {entry.id: machine_of(entry.session.environment) for entry in entries}
    found: dict[tuple[Machine, Key], list[Point]] = {}
    for entry in entries:
        tried = alignments(entry.session.results)
        counts = Counter(code_key(result.case) for result in entry.session.results)
        for result in entry.session.results:
            name = code_key(result.case)
            if counts[name] == 1:
                point = _point(entry, result, measure, tried.get(result.case.conversion))
                found.setdefault((machines[entry.id], name), []).append(point)
    order = list(dict.fromkeys(machines.values()))
    made = []
    for (machine, _), points in found.items():
        own = [one.id for one in entries if machines[one.id] == machine]
        missing = len(own) - 1 - own.index(points[-1].entry.id)
        made.append(Series(points[-1].result.case, machine, tuple(points), missing))
    return tuple(sorted(made, key=lambda one: order.index(one.machine)))


def _point(entry: Entry, result: Result, measure: str, tried: Verdict[Any] | None) -> Point:
    doubt = _doubt(entry, result, measure)
    side = () if doubt else _of_one_mode(processes(result, measure))
    return Point(entry, result, side, doubt or ("" if side else "no such time"), tried)


def _doubt(entry: Entry, result: Result, measure: str) -> str:
    """Why the time of a result is not to be trusted, as :mod:`dlprof.compare` has it."""
    if result.status != "ok":
        return f"{result.status}: {first_line(result.reason)}"
    changes_with_load = is_stateful(result) or not steady(result, measure)
    return (disturbance(entry.session) or "") if changes_with_load else ""


def _of_one_mode(side: Side) -> Side:
    """The processes of the mode that most are in, the slower one on a tie."""
    if not side:
        return side
    found = find_modes([one.time_ns for one in side], [one.page_faults for one in side])
    modes = [tuple(side[index] for index in mode) for mode in found]
    largest = max(range(len(modes)), key=lambda place: (len(modes[place]), place))
    return tuple(sorted(modes[largest], key=lambda process: process.round))


@dataclass(frozen=True)
class Cause:
    """What changed between the last session before a step and the first one behind it.

    ``labels`` are those of the two sessions, empty if they have none.
    """

    before: Point
    behind: Point
    labels: tuple[str, str]
    differences: tuple[Difference, ...]


def cause(before: Point, behind: Point) -> Cause:
    """What the two sessions at a step differ in."""
    labels = before.entry.label.text, behind.entry.label.text
    found = [*differences(before.entry.session, behind.entry.session)]
    if kept_differs(before.result, behind.result):
        old, new = (_timed_text(point.result) for point in (before, behind))
        found.append(Difference("what was timed", old, new, "setting"))
    return Cause(before, behind, labels, tuple(found))


def _timed_text(result: Result) -> str:
    kept = result.fresh_source is not None and result.fresh_source.verdict == "kept"
    return "a result that the framework keeps" if kept else "a new conversion"
