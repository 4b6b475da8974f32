"""Steps of inference: what each strategy for the output's memory takes, saves and allocates."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from dlprof.inference.base import FRESH
from dlprof.probes.base import Protocol
from dlprof.report.document import Answer, Cell, Column, Level, Lines, Section, Table
from dlprof.report.loops import share_text
from dlprof.runner.axes import shape_text
from dlprof.runner.quantity import MARK, legend, plain_time, significant, time_text
from dlprof.runner.session import Result, Session, ShapeChange, Share, Step
from dlprof.text.clean import first_line, listed

LEAST_PERCENT = 2
ORDINALS = {None: "?", 1: "next call", 2: "2nd call", 3: "3rd call"}
COLUMNS = (
    Column("strategy"),
    *(
        Column(title, right=True)
        for title in ("latency", "saves", "steps/s", "allocations", "buffers")
    ),
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
        has_fresh = any(one.case.import_ == FRESH for one in results)
        told = [(share.median, one) for one in results if (share := _saved(one)) and _tells(share)]
        most, best = max(told, key=lambda one: one[0], default=(0.0, None))
        if best is None or most <= 0 or not has_fresh:
            note = "no strategy is clearly faster than a new output each call"
            yield Answer(name, note=note)
            continue
        lasts = _output(best)
        note = "" if lasts == "stays" else f"output lasts until the {lasts}"
        yield Answer(name, best.case.import_, f"saves {share_text(_saved(best))}", note)


def sections(steps: dict[str, list[Result]]) -> Iterator[Section]:
    """A table for each model and input, then the code of each strategy."""
    notes: dict[str, dict[str, None]] = defaultdict(dict)
    for name, results in steps.items():
        timed = [one for one in results if one.ready_time is not None]
        if timed:
            rows = tuple(map(_row, timed))
            table = Table(COLUMNS, rows, legend(cell.text for row in rows for cell in row))
            yield Section(name, (table,), Level.FIRST)
        for one in results:
            for note in _notes(one):
                notes[note][f"{one.case.producer} {one.case.import_}"] = None
    if notes:
        lines = tuple(f"{listed(names)}: {note}" for note, names in notes.items())
        yield Section("Strategies", (Lines(lines),))


def _row(result: Result) -> tuple[Cell, ...]:
    step = result.step or Step()
    found = step.allocations
    per_call = found.per_call if found is not None else None
    # How many outputs that were kept lie in memory of their own.
    buffers = f"{found.buffers} of {found.kept}" if found is not None and found.kept else "?"
    reading = step.versus.reading if step.versus else None
    rate = 1e9 / reading.median_ns if reading is not None and reading.median_ns > 0 else None
    wrong = result.values is not None and result.values.says("wrong")
    return (
        Cell(result.case.import_, "bad" if wrong or result.status != "ok" else ""),
        Cell(time_text(result.timed_ready)),
        Cell(share_text(_saved(result))),
        Cell("-" if rate is None else significant(rate, 2)),
        Cell("?" if per_call is None else f"{per_call:g}"),
        Cell(buffers),
        Cell("wrong", "bad") if wrong else Cell(_output(result)),
        Cell(_change(step.shape_change)),
    )


def _saved(result: Result) -> Share | None:
    return result.step.versus.saved if result.step and result.step.versus else None


def _tells(share: Share) -> bool:
    """Whether a share differs from zero, and is 2 % at least."""
    if share.ci95 is None or not share.is_known or abs(round(100 * share.median)) < LEAST_PERCENT:
        return False
    return share.ci95[0] > 0 or share.ci95[1] < 0


def _output(result: Result) -> str:
    """How long an output lasts: ``stays``, or until which further call."""
    reuse = result.step.reuse if result.step else None
    if reuse is None or reuse.says("unknown"):
        return "?"
    after = reuse.evidence.after_calls
    if reuse.says("overwritten"):
        return ORDINALS.get(after, f"call {after}")
    return {"kept": "stays"}.get(reuse.verdict, reuse.verdict)


def _change(change: ShapeChange | None) -> str:
    """The time that another shape at each call adds; ``?`` if the interval contains zero."""
    if change is None:
        return "-"
    text = f"{'+' if change.cost_ns >= 0 else '-'}{plain_time(abs(change.cost_ns))}"
    if change.cost_ci95_ns is None:
        return f"{MARK}{text}"
    low, high = change.cost_ci95_ns
    return "?" if low <= 0 <= high else text


def _notes(result: Result) -> Iterator[str]:
    """The code of a strategy, and why it has no answer."""
    setup = " / ".join(result.case.setup.strip().splitlines())
    yield result.case.code + (f"; before: {setup}" if setup else "")
    if result.status != "ok":
        yield f"{result.status}: {first_line(result.reason)}"
    yield from map(str, result.notes)
