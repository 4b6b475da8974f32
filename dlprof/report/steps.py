"""Conversions inside a loop or before it, and steps of inference."""

from __future__ import annotations

import ast
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence

from dlprof.inference.base import FRESH
from dlprof.probes.base import Protocol
from dlprof.report.document import Answer, Cell, Column, Lines, Section, Table
from dlprof.report.paths import Array, JudgedPath, queued_work
from dlprof.runner.axes import shape_text
from dlprof.runner.quantity import MARK, legend, plain_time, significant, time_text
from dlprof.runner.session import (
    Placement,
    Result,
    Session,
    Share,
    Step,
    TimeMeasure,
)
from dlprof.text.clean import counted, first_line, listed

LOOP_TITLES = ("in the loop", "before the loop", "share", "pays from")
LOOP_COLUMNS = (*(Column(title, right=True) for title in LOOP_TITLES), Column("path"))
UNTIMED_COLUMNS = (
    *(Column(title, right=True) for title in ("each turn converts", "host time")),
    *map(Column, ("queued work", "path")),
)
STEP_TITLES = ("latency", "saves", "steps/s", "allocations", "buffers")
STEP_COLUMNS = (
    Column("strategy"),
    *(Column(title, right=True) for title in STEP_TITLES),
    Column("output lasts"),
    Column("new shape", right=True),
)
LEAST_PERCENT = 2
FEW = 2
"""The most models and inputs that have their table on the first screen."""
ORDER_PHRASES = {
    "race": "races with queued work",
    "race on a non-blocking stream": "races with work on a non-blocking stream",
    "ordered": "is ordered behind queued work",
}
"""What a call does, by its words in the column ``queued work``. Others are phrases already."""
ORDINALS = {None: "?", 1: "next call", 2: "2nd call", 3: "3rd call"}

Looped = tuple[JudgedPath, Placement]


def share_text(share: Share | None) -> str:
    """Return ``61 ±3 %``; ``~61 %`` of one process; ``?`` if the processes do not agree."""
    if share is None:
        return "-"
    if share.ci95 is None:
        return f"{MARK}{round(100 * share.median)} %"
    if share.half is None or not share.is_known:
        return "?"
    half = 100 * share.half
    shown = "<1" if half < 0.5 else f"{half:.0f}"  # noqa: PLR2004 - no interval is of nothing
    return f"{round(100 * share.median) or 0} ±{shown} %"


# Loops


def loop_sections(arrays: Sequence[Array]) -> Iterator[Section]:
    """Yield one for each array and operation that was looped."""
    ordered = {  # only the first shape of a path is diagnosed
        (path.case.pair, path.code): path
        for array in arrays
        for path in array.paths
        if path.case.result.ordering is not None
    }
    for array in arrays:
        groups: dict[str, list[Looped]] = defaultdict(list)
        for path in array.paths:
            loop = path.case.result.placement
            if loop is not None:
                groups[loop.use or ""].append((path, loop))
        for use, looped in groups.items():
            subject = f"{array.pair_text}, {array.text}" if len(arrays) > 1 else array.pair_text
            heading = f"In a loop{f' with {use}' if use else ''}: {subject}"
            if looped[0][0].case.result.untimed:
                known = [
                    (ordered.get((path.case.pair, path.code), path), loop) for path, loop in looped
                ]
                yield _untimed_loops(heading, known)
            else:
                yield _loop_section(heading, looped)


def _loop_section(heading: str, looped: Sequence[Looped]) -> Section:
    timed = [entry for entry in looped if entry[1].in_loop or entry[1].hoisted]
    timed.sort(key=lambda entry: min(_median_ns(entry[1].in_loop), _median_ns(entry[1].hoisted)))
    rows = tuple(_loop_row(*entry) for entry in timed)
    times = legend(cell.text for row in rows for cell in row if not cell.code)
    lines = [_loop_advice(timed)]
    for path, loop in looped:
        if loop.implicit is not None:
            time = plain_time(loop.implicit.median_ns)
            source, consumer = path.case.result.case.source, path.case.pair[1]
            lines.append(f"{consumer} takes {source} itself: {time} per iteration.")
        lines += [f"refused {place}: {first_line(text)}" for place, text in loop.refused.items()]
    tables = (Table(LOOP_COLUMNS, rows, times),) if rows else ()
    return Section(heading, (*tables, Lines(tuple(dict.fromkeys(lines)))), is_first=True)


def _untimed_loops(heading: str, looped: Sequence[Looped]) -> Section:
    """Return the conversions of each turn with the host's time for them, without kernels."""
    rows: dict[str, tuple[float, str]] = {}
    """The host's time and the order, by code."""
    taking = next((path for path, _ in looped if _is_operation(path)), None)
    for path, loop in looped:
        forms = (path.code, loop.in_loop, path), (loop.use or "", loop.implicit, taking)
        for code, inside, converting in forms:
            if inside is not None and loop.hoisted is not None:
                order = queued_work(converting) if converting else ""
                if order == "race" and converting and converting.case.is_ordered_by_default:
                    order = "race on a non-blocking stream"
                # A wait is as long as the queue, which has no time here.
                host_ns = math.inf if "waits" in order else inside.min_ns - loop.hoisted.min_ns
                rows[code] = min(rows.get(code, (math.inf, order)), (host_ns, order))
    count = Cell(_argument_count(looped[0][1].use))
    cells = tuple(
        (count, Cell(time), Cell(order or "-"), Cell(code, code=True))
        for code, (host_ns, order) in sorted(rows.items(), key=lambda row: row[1])
        for time in ["" if host_ns == math.inf else plain_time(host_ns) if host_ns > 0 else "?"]
    )
    lines = [
        "Convert before the loop: then a turn converts nothing." if rows else "No loop could run.",
        *_keyword_lines({code: order for code, (_, order) in rows.items()}),
        "host time: fastest turn, minus the fastest with converted arrays. Kernels are left out.",
    ]
    tables = (Table(UNTIMED_COLUMNS, cells),) if cells else ()
    return Section(heading, (*tables, Lines(tuple(lines))), is_first=True)


def _is_operation(path: JudgedPath) -> bool:
    """Whether the path is the consumer's operation on the source itself: a kernel."""
    result = path.case.result
    use = result.recipe.result.get("use", "") if result.recipe else ""
    return path.code == use.replace("{x}", result.case.source)


def _argument_count(use: str | None) -> str:
    """Return the number of arrays that the operation of a loop takes."""
    call = ast.parse(use or "f()", mode="eval").body
    names = [argument for argument in getattr(call, "args", ()) if isinstance(argument, ast.Name)]
    return counted(len(names), "array")


def _keyword_lines(forms: dict[str, str]) -> Iterator[str]:
    """Compare forms that differ by one more argument: ``sync=False``."""
    for code, order in forms.items():
        for other, changed in forms.items():
            if order and changed and other.startswith(f"{code[:-1]}, "):
                more = other[len(code) + 1 : -1]
                without, does = (ORDER_PHRASES.get(word, word) for word in (order, changed))
                if changed == order:
                    yield f"{more} changes nothing: the call {does} in both forms."
                else:
                    yield f"With {more} the call {does}. Without it, the call {without}."


def _median_ns(time: TimeMeasure | None) -> float:
    return math.inf if time is None else time.median_ns


def _loop_row(path: JudgedPath, loop: Placement) -> tuple[Cell, ...]:
    pays = _break_even(loop)
    times = (loop.in_loop, loop.hoisted)
    return (
        *(Cell(time_text(time, time is not None and time.is_disturbed)) for time in times),
        Cell("?" if _is_disturbed(loop) else share_text(loop.share)),
        Cell("-" if pays is None else f"{pays:,} iterations"),
        Cell(path.code, code=True),
    )


def _is_disturbed(loop: Placement) -> bool:
    return any(time is not None and time.is_disturbed for time in (loop.in_loop, loop.hoisted))


def _break_even(loop: Placement) -> int | None:
    """Return the iterations from which on a conversion before the loop pays, if known."""
    known = loop.share is not None and loop.share.is_known and not _is_disturbed(loop)
    return loop.break_even_iterations if known else None


def _loop_advice(looped: Sequence[Looped]) -> str:
    """Name the path that gains most, if any gain is known."""
    paying = [
        (loop.share.median, path.code, pays)
        for path, loop in looped
        if loop.share is not None and (pays := _break_even(loop)) is not None
    ]
    if not paying:
        return "No loop is known to be faster with the conversion before it."
    share, code, pays = max(paying)
    before = f"Convert before the loop from {pays:,} iterations on."
    return f"{code} takes {100 * share:.0f} % of the loop. {before}"


# Steps of inference


def session_steps(session: Session) -> dict[str, list[Result]]:
    """Return the steps that were measured or tried, by model and input."""
    found: dict[str, list[Result]] = defaultdict(list)
    for result in session.results:
        case = result.case
        if case.protocol == Protocol.STEP:
            array = f"{case.dtype} {shape_text(case.shape)} on {case.device}"
            found[f"{case.producer}, input {array}"].append(result)
    return dict(found)


def answers(steps: dict[str, list[Result]]) -> Iterator[Answer]:
    """Yield for each model and input the strategy that saves most, if one does."""
    for name, results in steps.items():
        has_fresh = any(result.case.import_ == FRESH for result in results)
        saving = [(share, step) for step in results if (share := _saved(step)) and _saves(share)]
        if not saving or not has_fresh:
            yield Answer(name, note="no strategy is clearly faster than a new output each call")
            continue
        share, best = max(saving, key=lambda item: item[0].median)
        lasts = _output(best)
        note = "" if lasts == "stays" else f"output lasts until the {lasts}"
        yield Answer(name, best.case.import_, f"saves {share_text(share)}", note)


def step_sections(steps: dict[str, list[Result]]) -> Iterator[Section]:
    """Yield a table for each model and input, then the code of each strategy."""
    notes: dict[str, dict[str, None]] = defaultdict(dict)
    for name, results in steps.items():
        rows = tuple(_step_row(result) for result in results if result.ready_time is not None)
        if rows:
            table = Table(STEP_COLUMNS, rows, legend(cell.text for row in rows for cell in row))
            yield Section(name, (table,), is_first=len(steps) <= FEW)
        for result in results:
            for note in _notes(result):
                notes[note][f"{result.case.producer} {result.case.import_}"] = None
    if notes:
        lines = tuple(f"{listed(names)}: {note}" for note, names in notes.items())
        yield Section("Strategies", (Lines(lines),))


def _step_row(result: Result) -> tuple[Cell, ...]:
    step = result.step or Step()
    per_call, reading = step.allocations_per_call, step.reading
    # The outputs that were kept, and how many of them have memory of their own.
    buffers = f"{step.buffers} of {step.kept}" if step.kept else "?"
    rate = 1e9 / reading.median_ns if reading is not None and reading.median_ns > 0 else None
    wrong = result.values is not None and result.values.says("wrong")
    return (
        Cell(result.case.import_, "bad" if wrong or result.status != "ok" else ""),
        Cell(time_text(result.ready_time)),
        Cell(share_text(_saved(result))),
        Cell("-" if rate is None else significant(rate, 2)),
        Cell("?" if per_call is None else f"{per_call:g}"),
        Cell(buffers),
        Cell("wrong", "bad") if wrong else Cell(_output(result)),
        Cell(_change(step)),
    )


def _saved(result: Result) -> Share | None:
    return result.step.saved if result.step else None


def _saves(share: Share) -> bool:
    """Whether it is known to save 2 % or more."""
    known = share.ci95 is not None and share.is_known and share.ci95[0] > 0
    return known and round(100 * share.median) >= LEAST_PERCENT


def _output(result: Result) -> str:
    """Return how long an output lasts: ``stays``, or the call that overwrites it."""
    reuse = result.step.reuse if result.step else None
    if reuse is None or reuse.says("unknown"):
        return "?"
    after = reuse.evidence.after_calls
    if reuse.says("overwritten"):
        return ORDINALS.get(after, f"call {after}")
    return {"kept": "stays"}.get(reuse.verdict, reuse.verdict)


def _change(step: Step) -> str:
    """Return the time that a new shape adds; ``?`` if the interval contains zero."""
    if step.change_ns is None:
        return "-"
    text = f"{'+' if step.change_ns >= 0 else '-'}{plain_time(abs(step.change_ns))}"
    if step.change_ci95_ns is None:
        return f"{MARK}{text}"
    low, high = step.change_ci95_ns
    return "?" if low <= 0 <= high else text


def _notes(result: Result) -> Iterator[str]:
    """Yield the code of a strategy, and the reason if it has no answer."""
    setup = " / ".join(result.case.setup.strip().splitlines())
    yield result.case.code + (f"; before: {setup}" if setup else "")
    if result.status != "ok":
        yield f"{result.status}: {first_line(result.reason)}"
    yield from map(str, result.notes)
