"""A traced program as a document: its lines by the time that their conversions take.

The page also shows when lines converted, and their source.
"""

from __future__ import annotations

import math
import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from pathlib import Path

from dlprof.errors import UsageError
from dlprof.probes.base import ANY_DEVICE, DTYPES
from dlprof.probes.builtin import ALL
from dlprof.report.document import (
    Answer,
    Cell,
    Chart,
    ChartRow,
    Column,
    Document,
    Mark,
    Section,
    Table,
    Tone,
)
from dlprof.report.trace_advice import (
    LAUNCH,
    LEAST_LINE_NS,
    argument_places,
    joins_arrays,
    notes,
    row_place,
    short_file,
)
from dlprof.runner.axes import shape_text
from dlprof.runner.machine import busy_notice
from dlprof.runner.quantity import plain_time, significant, size_text
from dlprof.runner.session import SIMULATED
from dlprof.runner.trace import COPY, CROSSING, WAIT, Trace, TraceRow, doubts, empty_calls, faults
from dlprof.text import json_text
from dlprof.text.clean import counted, first_line
from dlprof.tracer.place import FRAMEWORKS
from dlprof.tracer.rows import OTHERS

TONES: dict[str, Tone] = {"view": "view", "copy": "copy", "mixed": "copy", "waits": "bad"}
COLORS = {"view": "plain", "copy": "warning", "mixed": "warning", "waits": "error"}
MOST_ARRAYS = 3
MOST_TIMELINES, MOST_SPANS = 10, 1000
LEAST_WIDTH, LEAST_OPACITY = 0.2, 0.25
"""The least of a span: it must be visible."""
MOST_TICKS = 6
UNNAMED = ("?", OTHERS)
"""Dtypes of arrays that were not looked at."""
MEASURABLE = {probe.name for probe in ALL}
LEAST_SLOW_BYTES, SLOW_BYTES_PER_S = 1 << 20, 100e6
"""Copies of this much in all are slow below this speed: memory is some hundred times as fast."""
LEAST_SLOW_COPY_BYTES = 64 << 10
"""Of smaller copies, most of the time is the call's own."""
LONG = 36
"""Characters up to which a table shows an expression; else it shows the conversion."""
SWITCHES = re.compile(r"((?:, \w+=(?:True|False))+)\)$")
COLUMNS = (
    Column("own time", right=True),
    Column("calls", right=True),
    *map(Column, ("result", "line", "conversion", "what")),
)
LONG_FIRST = 3
"""A first call that takes this many times as long as others stands apart."""
OWN_TIME = "own time: in the calls themselves, excluding arguments."


def row_result(row: TraceRow) -> str:
    """Return ``waits`` if a row waits, else its result; a row of empty arrays has none."""
    if row.waits:
        return "waits"
    is_empty = row.calls <= empty_calls(row.arrays) and row.result != "raised"
    return "unknown" if is_empty else row.result


def _line(row: TraceRow) -> str:
    function = row.function.replace(".<locals>.", ".")
    return row_place(row) + ("" if function == "<module>" else f" {function}")


def trace_document(trace: Trace, full: bool = False, name: str = "LAST") -> Document:
    """Report a trace; ``name`` is its name in commands."""
    title, context = _title(trace)
    load = SIMULATED if trace.simulated else busy_notice(trace.foreign_cores, trace.cores)
    notices = tuple(filter(None, (load, *gaps(trace))))
    if not trace.rows:
        context = "no conversions seen" if trace.unseen else "no conversions"
        return Document(title, context, notices=notices, marks=tuple(notes(trace)))
    return Document(
        title,
        context,
        answers=(_answer(COPY, trace), _answer(WAIT, trace)),
        notices=notices,
        tables=(Table(COLUMNS, tuple(_rows(trace.rows, full))),),
        marks=(OWN_TIME, *notes(trace)),
        chart=_timeline(trace),
        sections=tuple(_sources(trace)),
        commands=tuple(_commands(trace, name)) if trace.program else (),
    )


def _rows(rows: Sequence[TraceRow], full: bool) -> Iterator[tuple[Cell, ...]]:
    """Yield the cells of each row. Two rows that look the same show their frameworks."""
    names = Counter((_line(row), _short(row)) for row in rows)
    for row in rows:
        is_same = names[_line(row), _short(row)] > 1
        yield _cells(row, full, f"{row.producer} → {row.consumer}" if is_same else "")


def _cells(row: TraceRow, full: bool, direction: str) -> tuple[Cell, ...]:
    result = row_result(row)
    return (
        Cell(plain_time(row.total_ns)),
        Cell(f"{row.calls:,}"),
        Cell(result, TONES.get(result, "dim")),
        Cell(_line(row), code=True),
        Cell((row.expression or row.conversion) if full else _short(row), code=True),
        Cell("; ".join(filter(None, (direction, *_facts(row, full))))),
    )


def _costliest(rows: Iterable[TraceRow], word: str) -> TraceRow | None:
    """Return the line to change first: it does what is not allowed, and takes longest."""
    cost_ns = _steady_ns if word == COPY else attrgetter("waited_ns")
    return max((row for row in rows if word in faults(row)), key=cost_ns, default=None)


def _steady_ns(row: TraceRow) -> int:
    """Return the time without waits, and without first calls that load or compile code."""
    is_first_apart = row.conversion == LAUNCH or _is_first_long(row)
    return _without_waits(row) - row.first_ns * is_first_apart


def _is_first_long(row: TraceRow) -> bool:
    """Whether the first calls of the processes take much longer than the others."""
    firsts = max(len(row.processes), 1)
    others = row.calls - firsts
    others_ns = row.total_ns + row.parallel_ns - row.first_ns
    is_slower = row.first_ns * others > LONG_FIRST * others_ns * firsts
    return others > 0 and is_slower and 10 * row.first_ns > row.total_ns


def _without_waits(row: TraceRow) -> int:
    return row.total_ns - row.waited_ns


def _converted_ns(row: TraceRow) -> int:
    """Return the time without waits, and without the first launch, which may compile."""
    return _steady_ns(row) if row.conversion == LAUNCH else _without_waits(row)


def _answer(word: str, trace: Trace) -> Answer:
    row, label = _costliest(trace.rows, word), f"costliest {word}"
    if row is None:
        unknown = len(unknown_places(trace, (word,)))
        note = f"none known, {counted(unknown, 'line')} may {word}" if unknown else "none"
        return Answer(label, "", note=note)
    note = f"{row_place(row)}; {counted(row.calls, 'call')}"
    took_ns = _without_waits(row) if word == COPY else row.waited_ns
    if row.waits and not took_ns:  # of waits that a simulated device recorded
        return Answer(word, row.waits_in or _short(row), "", note)
    return Answer(label, _short(row), plain_time(took_ns), note)


def _short(row: TraceRow) -> str:
    """Return the expression, or the conversion with its switches where that is too long."""
    if 0 < len(row.expression) <= LONG:
        return row.expression
    name = row.conversion.partition("(")[0].rpartition(".")[2]
    found = SWITCHES.search(row.expression) if f"{name}(" in row.expression else None
    return f"{row.conversion[:-1]}{found[1]})".replace("(, ", "(") if found else row.conversion


def _title(trace: Trace) -> tuple[str, str]:
    """Return the program with its end, and the totals of its conversions."""
    waited = sum(row.waited_ns for row in trace.rows)
    code = trace.exit_code
    end = f"killed by signal {-code}" if code < 0 else f"exit {code}"
    name = Path(trace.program[0]).name if trace.program else ""
    whole = plain_time(trace.wall_ns, 3)
    title = f"dlprof trace   {name}   {whole}, {end}" if name else f"dlprof trace   {whole}"
    count = len({pid for row in trace.rows for pid in row.processes})
    copied = sum(row.bytes for row in trace.rows)
    parts = [
        _total("conversions", sum(map(_converted_ns, trace.rows)), trace),
        _total("waits", waited, trace) if waited else "",
        f"{size_text(copied, 2)} copied" if copied or not unknown_places(trace, (COPY,)) else "",
        f"{count} processes" if count > 1 else "",
    ]
    return title, ", ".join(filter(None, parts))


def _total(name: str, took_ns: int, trace: Trace) -> str:
    percent = 100 * took_ns / (trace.wall_ns or 1)
    if percent > 100:  # noqa: PLR2004 - several threads or processes at once
        return f"{name} {plain_time(took_ns)} in parallel"
    share = "below 0.1" if percent < 0.1 else significant(percent, 2)  # noqa: PLR2004 - as shown
    return f"{name} {plain_time(took_ns)} ({share} %)"


def gaps(trace: Trace) -> Iterator[str]:
    """Yield why conversions may be missing: lost counts, and failures of the tracer."""
    cut = [process for process in trace.processes if not process.ended]
    if trace.program and not trace.processes:
        yield "no process wrote its conversions."
    if cut:
        until = plain_time(min(process.wall_ns for process in cut), 3)
        yield (
            f"{len(cut)} of {len(trace.processes)} processes did not write all counts "
            "(killed, still running, or writing failed): "
            f"conversions later than {until} after its start may be missing."
        )
    for process in cut:
        for file, line, conversion in process.open_calls:
            name = f"process {process.pid}"
            yield f"{name} did not return from {conversion} in {short_file(file)}:{line}."
    for trouble in trace.troubles:
        yield f"not all is traced of {first_line(trouble)}"


def unknown_places(trace: Trace, words: Iterable[str]) -> list[str]:
    """Return the lines that may do what ``words`` of :data:`FAULTS` name, each once."""
    found = [row_place(row) for row in trace.rows if {*words} & {*doubts(row)}]
    found += argument_places(trace) if {*words} & {COPY, CROSSING} else []
    found += [f"{short_file(file)}:{line}" for file, line, *_ in trace.uncounted if COPY in words]
    return [*dict.fromkeys(found)]


def _facts(row: TraceRow, full: bool) -> Iterator[str]:
    yield _sizes(row)
    yield _slowness(row)
    yield f"to {', '.join(row.retyped)}" if row.retyped else ""
    yield _arrays(row) if full else ""
    if row.via:
        yield f"{row.via.split('.')[0]}: {row.via.rpartition('.')[2]}"
    if row.allowed:
        yield f"allowed: {', '.join(row.allowed)}"
    if row.parallel_ns > row.total_ns / 10:
        yield f"{plain_time(row.total_ns + row.parallel_ns)} in all threads, some at once"
    yield _first_call(row)
    if row.line_ns > max(2 * row.total_ns, LEAST_LINE_NS):
        yield f"whole line {plain_time(row.line_ns)}"
    if row_result(row) == "mixed" and row.copies:
        yield f"{row.copies:,} of {row.calls:,} copy"
    if row.waits and not row.waited_ns:  # a simulated device records waits, and has no times
        calls = f"{row.waits:,} of {row.calls:,} calls wait" if row.waits < row.calls else "waits"
        yield f"{row.result}; {calls} for the queue{f' in {row.waits_in}' * bool(row.waits_in)}"
    elif row.waits:
        yield f"{row.result}; waits {plain_time(row.waited_ns)} for the queue"
    elif row.maybe_waits:
        yield f"{row.maybe_waits:,} may wait for the queue"
    yield from dict.fromkeys(
        f"crosses from {source} to {target}" for source, target, _ in row.crossings
    )
    if row.raised:
        yield f"{row.raised:,} raised"


def _first_call(row: TraceRow) -> str:
    if row.conversion == LAUNCH:
        return f"with the launch; not in the total: {plain_time(row.first_ns)} in the first call"
    return f"{plain_time(row.first_ns)} of it in the first call" if _is_first_long(row) else ""


def _sizes(row: TraceRow) -> str:
    if not row.copies:
        return ""
    sizes = {size for dtype, _, _, size in row.arrays if dtype not in UNNAMED}
    how = "copied" if row.copies == 1 else "each" if len(sizes) == 1 else "per copy on average"
    return f"{size_text(round(row.bytes / row.copies), 2)} {how}"


def _slowness(row: TraceRow) -> str:
    """Return the speed of copies far slower than memory; without first calls if there are more."""
    took_ns, copied, first_calls = _without_waits(row), row.bytes, len({*row.processes})
    if row.copies > first_calls:
        took_ns -= row.first_ns
        copied -= copied * first_calls // row.copies
    is_large = row.bytes >= max(LEAST_SLOW_BYTES, row.copies * LEAST_SLOW_COPY_BYTES)
    is_slow = is_large and copied * 1e9 < SLOW_BYTES_PER_S * took_ns
    if row.maybe_waits or not is_slow:
        return ""
    return f"slow: {significant(copied * 1e3 / took_ns, 2)} MB/s"


def _arrays(row: TraceRow) -> str:
    """Return the most frequent dtypes and shapes."""
    texts = [
        f"{dtype} {shape_text(shape)}" + (f": {calls:,} calls" if len(row.arrays) > 1 else "")
        for dtype, shape, calls, _ in row.arrays
        if dtype not in UNNAMED
    ]
    more = [f"{len(texts) - MOST_ARRAYS} more"] if texts[MOST_ARRAYS:] else []
    return ", ".join([*texts[:MOST_ARRAYS], *more])


def measurable(trace: Trace) -> list[TraceRow]:
    """Return rows that a run can measure, the one to change first first, each array once."""
    found: dict[tuple[object, ...], TraceRow] = {}
    fit = [
        row
        for row in trace.rows
        if (row.waits or (row.copies and not joins_arrays(row)))
        and not (row.crossings or row.retyped or row.producer == row.consumer)
        and row.conversion != LAUNCH
        and {row.producer, row.consumer} <= MEASURABLE
    ]
    while (row := _costliest(fit, COPY) or _costliest(fit, WAIT)) is not None:
        found.setdefault((row.producer, row.consumer, *array_options(row).values()), row)
        fit.remove(row)
    return [*found.values()]


def _commands(trace: Trace, name: str) -> Iterator[str]:
    for row in measurable(trace)[:1]:
        options = array_options(row)
        if trace.simulated and options.get("device") == "cuda":
            options["device"] = "simulated"
        if trace.interpreter:
            options["python"] = trace.interpreter
        words = [word for name, text in options.items() for word in (f"--{name}", text)]
        yield shlex.join(["dlprof", "run", row.producer, row.consumer, *words])
    if package := _library(trace.rows):
        device = ["--device", "simulated"] if trace.simulated else []
        python = ["--python", trace.interpreter] if trace.interpreter else []
        words = ["--include", package, *device, *python]
        yield shlex.join(["dlprof", "trace", *words, *trace.program])
    yield f"dlprof report {shlex.quote(name)} --html report.html"
    yield "dlprof explain trace"


def _library(rows: Sequence[TraceRow]) -> str:
    """Return the package that converts for most of the time, if it is no framework; or no text."""
    times = Counter({"": 0})
    for row in rows:
        times[row.via.partition(".")[0]] += row.total_ns
    package, took_ns = times.most_common(1)[0]
    return package if package not in FRAMEWORKS and 2 * took_ns > times.total() else ""


def array_options(row: TraceRow) -> dict[str, str]:
    """Return the options of the array that a row converts most often."""
    if not row.arrays or row.arrays[0][0] not in DTYPES:
        return {}
    dtype, shape, *_ = row.arrays[0]
    device = row.device.partition(":")[0]
    found = {"shape": shape_text(tuple(shape)), "dtype": dtype}
    return {**found, "device": device} if device in ANY_DEVICE else found


def _timeline(trace: Trace) -> Chart | None:
    """Return when the costliest lines converted, or None if that is unknown."""
    marks: dict[int, list[Mark]] = defaultdict(list)
    origin = min((begin for begin, *_ in trace.timeline), default=0)
    length = max(trace.wall_ns - origin, 1)
    for begin, end, index, took, _ in trace.timeline:
        if end <= begin or len(marks[index]) >= MOST_SPANS:
            continue
        row, result = trace.rows[index], row_result(trace.rows[index])
        low, high = (100 * (ns - origin) / length for ns in (begin, end))
        share = min(took / (end - begin), 1.0)
        mark = Mark(
            f"{_line(row)}, {result}, at {plain_time(begin)}:"
            f" {plain_time(took)} of {plain_time(end - begin)}",
            low,
            max(high, low + LEAST_WIDTH),
            COLORS.get(result, "muted"),
            opacity=LEAST_OPACITY + (1 - LEAST_OPACITY) * share,
        )
        marks[index].append(mark)
    rows = [
        ChartRow(_line(row), tuple(marks[index]), plain_time(row.total_ns))
        for index, row in enumerate(trace.rows)
        if marks[index]
    ][:MOST_TIMELINES]
    if not rows:
        return None
    step = length / MOST_TICKS
    step = math.ceil(step / 10 ** math.floor(math.log10(step))) * 10 ** math.floor(math.log10(step))
    first = math.ceil(origin / step)
    ticks = [number * step for number in range(first, math.floor(trace.wall_ns / step) + 1)]
    return Chart(
        tuple(rows),
        tuple((100 * (ns - origin) / length, plain_time(ns) if ns else "0") for ns in ticks),
        "When the lines converted: the stronger the color, the more of that time they took.",
    )


SOURCE = (
    *(Column(title, right=True) for title in ("time", "calls")),
    Column("result"),
    Column("line", right=True),
    Column("source"),
)


def _sources(trace: Trace) -> Iterator[Section]:
    """Yield a section for each file with its hot lines, the costliest first."""
    files: dict[str, list[TraceRow]] = defaultdict(list)
    for row in trace.rows:
        files[row.file].append(row)
    for file, rows in sorted(files.items(), key=lambda item: -_took_ns(item[1])):
        if text := trace.sources.get(file):
            heading = f"{short_file(file)}   {plain_time(_took_ns(rows))}"
            yield Section(heading, (Table(SOURCE, tuple(_source(text, rows))),))


def _took_ns(rows: Sequence[TraceRow]) -> int:
    return sum(row.total_ns for row in rows)


def _source(
    text: Sequence[tuple[int, str]], rows: Sequence[TraceRow]
) -> Iterator[tuple[Cell, ...]]:
    hot: dict[int, list[TraceRow]] = defaultdict(list)
    for row in rows:
        hot[row.line].append(row)
    for number, line in text:
        costs = [Cell("")] * 3
        if found := hot.get(number):
            results = dict.fromkeys(map(row_result, found))
            tone: Tone = next((TONES[word] for word in reversed(TONES) if word in results), "dim")
            calls = Cell(f"{sum(row.calls for row in found):,}")
            costs = [Cell(plain_time(_took_ns(found))), calls, Cell(", ".join(results), tone)]
        yield *costs, Cell(str(number), "dim"), Cell(line, code=True)


def chrome(trace: Trace) -> str:
    """Return each conversion as an event for Perfetto, speedscope and Chrome's trace viewer.

    Raises :class:`UsageError` if the program ran without ``--chrome``.
    """
    if trace.rows and not trace.events:
        raise UsageError(
            "the trace has no single conversions: give --chrome to dlprof trace with the program"
        )
    names = [f"{_line(row)} {row.expression or row.conversion}" for row in trace.rows]
    events = [
        {
            "ph": "X",
            "name": names[row],
            "cat": trace.rows[row].result,
            "pid": trace.processes[process].pid,
            "tid": thread,
            "ts": begin / 1e3,
            "dur": took / 1e3,
        }
        for begin, took, row, process, thread in sorted(trace.events)
    ]
    content = {"traceEvents": events, "displayTimeUnit": "ns"}
    return f"{json_text.dump(content)}\n"
