"""Steps of inference: what each strategy for the output's memory takes, saves and allocates."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from dlprof.analysis.quantity import plain_time, process_medians, significant, time_text
from dlprof.inference.base import FRESH
from dlprof.plan.axes import shape_text
from dlprof.probes.base import Protocol
from dlprof.reports.document import Answer, Cell, Column, Facts, Level, Lines, Section, Table
from dlprof.reports.loops import share_text
from dlprof.session.measured import ShapeChange, Step
from dlprof.session.model import Result, Session, Share
from dlprof.text.clean import listed

LEAST_PERCENT = 2
ORDINALS = {1: "next call", 2: "2nd call", 3: "3rd call"}
COLUMNS = (
    Column("strategy"),
    Column("latency", right=True),
    Column("saves", right=True),
    Column("steps/s", right=True),
    Column("allocations", right=True),
    Column("buffers", right=True),
    Column("output lasts"),
    Column("new shape", right=True),
)


def steps_of(session: Session) -> dict[str, list[Result]]:
    """The steps that were measured or tried, by model and input."""
    found: dict[str, list[Result]] = defaultdict(list)
    for result in session.results:
        case = result.case
        if case.protocol == Protocol.STEP:
            array = f"{case.dtype} {shape_text(case.shape)} on {case.device}"
            found[f"{case.producer}, input {array}"].append(result)
    return dict(found)


def answers(steps: dict[str, list[Result]]) -> Iterator[Answer]:
    """For each model and input the strategy that saves most, if one does."""
    for name, results in steps.items():
        fresh = next((one for one in results if _strategy(one) == FRESH), None)
        told = [(one, share) for one in results if (share := _saved(one)) and _tells(share)]
        best, share = max(told, key=lambda one: one[1].median, default=(None, None))
        if best is None or share is None or share.median <= 0 or fresh is None:
            yield Answer(name, "", "", "no strategy is clearly faster than a new output each call")
            continue
        lasts = _output(best)
        note = "" if lasts == "stays" else f"output lasts until the {lasts}"
        yield Answer(name, _strategy(best), f"saves {share_text(share)}", note)


def sections(steps: dict[str, list[Result]]) -> Iterator[Section]:
    """A table for each model and input, then the code of each strategy and what is not known."""
    for name, results in steps.items():
        timed = [one for one in results if one.ready_time is not None]
        if timed:
            yield Section(name, (Table(COLUMNS, tuple(map(_row, timed))),), Level.FIRST)
    if not steps:
        return
    everything = [one for results in steps.values() for one in results]
    codes = {f"{one.case.producer} {_strategy(one)}": _code(one) for one in everything}
    yield Section("Strategies", (Facts(tuple(codes.items())),))
    gaps: dict[str, dict[str, None]] = defaultdict(dict)
    for one in everything:
        for gap in _gaps(one):
            gaps[gap][f"{one.case.producer} {_strategy(one)}"] = None
    if gaps:
        lines = tuple(f"{listed(names)}: {gap}" for gap, names in gaps.items())
        yield Section("Not known", (Lines(lines),))


def _strategy(result: Result) -> str:
    return result.case.import_


def _code(result: Result) -> str:
    setup = " / ".join(result.case.setup.strip().splitlines())
    return f"{result.case.code}; before: {setup}" if setup else result.case.code


def _row(result: Result) -> tuple[Cell, ...]:
    step = result.step or Step()
    per_call = step.allocations.per_call if step.allocations is not None else None
    wrong = result.values is not None and result.values.says("wrong")
    bad = wrong or result.status != "ok"
    ready = result.ready_time
    return (
        Cell(_strategy(result), "bad" if bad else ""),
        Cell(time_text(ready, process_medians(result.host_time))),
        Cell(share_text(_saved(result))),
        Cell(_rate(step)),
        Cell("?" if per_call is None else f"{per_call:g}"),
        Cell(_buffers(step)),
        Cell("wrong", "bad") if wrong else Cell(_output(result)),
        Cell(_change(step.shape_change)),
    )


def _buffers(step: Step) -> str:
    """``8 of 8``: how many outputs that were kept lie in memory of their own."""
    found = step.allocations
    if found is None or found.buffers is None or found.kept is None:
        return "?"
    return f"{found.buffers} of {found.kept}"


def _saved(result: Result) -> Share | None:
    return result.step.versus.saved if result.step and result.step.versus else None


def _tells(share: Share) -> bool:
    """Whether a share is told from nothing, and is two hundredths at least."""
    if share.ci95 is None or not share.is_known or abs(round(100 * share.median)) < LEAST_PERCENT:
        return False
    return share.ci95[0] > 0 or share.ci95[1] < 0


def _rate(step: Step) -> str:
    """Steps per second where each output is read."""
    reading = step.versus.reading if step.versus else None
    if reading is None or reading.median_ns <= 0:
        return "-"
    rate = 1e9 / reading.median_ns
    return significant(rate, 3 if rate >= 100 else 2)  # noqa: PLR2004


def _output(result: Result) -> str:
    """How long an output lasts: ``stays``, or until which further call."""
    reuse = result.step.reuse if result.step else None
    if reuse is None or reuse.says("unknown"):
        return "?"
    after = reuse.evidence.after_calls
    if reuse.says("overwritten"):
        return ORDINALS.get(after or 0, f"call {after}" if after else "?")
    return {"kept": "stays"}.get(reuse.verdict, reuse.verdict)


def _change(change: ShapeChange | None) -> str:
    """What another shape at each call adds; ``?`` if it cannot be told from nothing."""
    if change is None:
        return "-"
    sign = "+" if change.cost_ns >= 0 else "-"
    text = f"{sign}{plain_time(abs(change.cost_ns))}"
    if change.cost_ci95_ns is None:
        return f"~{text}"
    low, high = change.cost_ci95_ns
    return "?" if low <= 0 <= high else text


def _gaps(result: Result) -> Iterator[str]:
    """What was not found, and why."""
    step = result.step
    if result.status != "ok":
        yield f"{result.status}: {result.reason or 'no reason given'}"
    if step and step.allocations and step.allocations.reason:
        yield f"allocations: {step.allocations.reason}"
    if step and step.reuse and step.reuse.says("unknown"):
        yield f"how long an output lasts: {step.reuse.evidence.reason or 'no reason given'}"
    yield from result.notes
