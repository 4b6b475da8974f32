"""A session as a document: what was converted, what to write, what is wrong, and all the rest."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

from dlprof.judge.cases import Cases
from dlprof.judge.evidence_text import facts
from dlprof.report import loops, matrix, method, path_table, problems, steps, survey, terminal
from dlprof.report.answers import answers_of, best
from dlprof.report.document import (
    MOST_POINTS,
    Answer,
    Chart,
    Document,
    Facts,
    Level,
    Lines,
    Point,
    Problem,
    Section,
    Table,
    Tiles,
    more_rows,
)
from dlprof.report.paths import KINDS, Array, Path, arrays_of
from dlprof.runner.evidence import HandshakeEvent
from dlprof.runner.measured import ProcessSamples, TimeMeasure
from dlprof.runner.quantity import plain_time, significant, size_text
from dlprof.runner.session import Result, Session
from dlprof.text.clean import clean, counted
from dlprof.ticket.rerun_command import pair_command

LAST = "LAST"
"""The newest session, in commands."""
MOST_ARRAYS = 60
"""Arrays whose paths are all told; the session file has the others."""
WIDE, MOST_LINES, MOST_NARROW_LINES = 100, 30, 34
"""The most lines of the first screen of so many columns, and of fewer."""
MOST_PROBLEMS = 5
"""On the first screen of several pairs or arrays; the others are counted."""
NO_RESULTS = "The session has no results"


def session_document(
    session: Session,
    name: str = LAST,
    scripts: bool = False,
    width: int | None = WIDE,
    level: Level = Level.FULL,
    cases: Cases | None = None,
) -> Document:
    """What a report of ``session`` says.

    ``name`` is the session in commands that lead on. ``scripts`` asks for a reproducer of each
    problem, which takes time. The first screen fits a terminal of ``width`` columns; for a page,
    which has no ``width``, it has every path. Sections of a further ``level`` are left out.
    ``cases`` are those of the session, where somebody has them.
    """
    arrays = arrays_of(session, cases)
    inference = steps.steps_of(session)
    found = problems.problems_of(session, name, scripts)
    paths = [path for array in arrays for path in array.paths]
    drawn = tuple(survey.pictures(session)) if width is None else ()
    alone = drawn[0] if len(drawn) == 1 and not arrays else None
    told = _answers(session, arrays)
    title, scope = _title(session, arrays, len(inference))
    document = Document(
        title=title,
        scope=scope,
        context=method.versions(session),
        notices=method.notices(
            session,
            not all(path.is_undiagnosed for path in paths) or not paths,
            bool(paths or inference) or not session.results,
        ),
        answers=(*told, *steps.answers(inference)),
        problems=found,
        chart=alone or _chart(arrays, {answer.result for answer in told}),
        sections=tuple(_sections(session, arrays, level, width is None, () if alone else drawn)),
        commands=_commands(session, found, name),
    )
    if len(arrays) == 1:
        return _fitted(document, arrays[0], survey.summary(session), width)
    tables, marks = _tables(session, arrays)
    # The picture of a survey says the same as its table, which stands in a section.
    most = None if width is None or len(arrays) == 0 else MOST_PROBLEMS
    return replace(document, tables=() if alone else tables, marks=marks, most_problems=most)


def _fitted(document: Document, array: Array, tried: str, width: int | None) -> Document:
    """With as many lines in its tables as the first screen has room for; ``tried`` comes last."""

    def with_room(room: path_table.Room | None) -> Document:
        tables, marks = path_table.short_tables(array, room)
        marks = (*marks, *filter(None, [tried]))
        most = room.problems if room else None
        return replace(document, tables=tables, marks=marks, most_problems=most)

    if width is None:
        return with_room(None)

    def fits(room: path_table.Room) -> bool:
        lines = terminal.render(with_room(room), width).count("\n")
        return lines <= (MOST_LINES if width >= WIDE else MOST_NARROW_LINES)

    *rooms, least = path_table.ROOMS
    at = bisect_left(rooms, True, key=fits)  # what fits has less room
    return with_room(rooms[at] if at < len(rooms) else least)


def _title(session: Session, arrays: Sequence[Array], models: int) -> tuple[str, str]:
    """What was looked at, and how much of it."""
    scenario = session.request.scenario
    title = scenario.title if scenario is not None else ""
    if not arrays:
        surveyed, scope = ("", "") if title else survey.title(session)
        return title or surveyed or ("Steps of inference" if models else NO_RESULTS), scope
    pairs = list(dict.fromkeys(array.pair_text for array in arrays))
    same = {array.text for array in arrays}
    pair = pairs[0] if len(pairs) == 1 else f"{len(pairs)} pairs"
    scope = f"{len(same)} arrays" if len(same) > 1 else same.pop()
    return f"{title}: {pair}" if title else pair, scope


def _is_one_pair(arrays: Sequence[Array]) -> bool:
    return len({array.pair for array in arrays}) == 1


def _answers(session: Session, arrays: Sequence[Array]) -> tuple[Answer, ...]:
    if not arrays:
        found = tuple(survey.answers(session))
    else:
        found = answers_of(arrays) if _is_one_pair(arrays) else matrix.answers(arrays)
    return (*method.expectations(session), *found)


def _tables(session: Session, arrays: Sequence[Array]) -> tuple[tuple[Table, ...], tuple[str, ...]]:
    """The tables of the first screen, and what their marks mean."""
    if not arrays:
        shown = tuple(survey.tables(session))
        return shown, survey.marks(session, shown)
    fastest = [
        path
        for array in arrays
        for path in (matrix.fastest(array), *(best(array, kind) for kind in KINDS))
        if path is not None
    ]
    marks = path_table.marks_of(fastest)
    if _is_one_pair(arrays):
        return (path_table.shapes_table(arrays),), marks
    return matrix.tables(arrays), (*marks, *matrix.marks(map(matrix.fastest, arrays)))


def _sections(
    session: Session,
    arrays: Sequence[Array],
    level: Level,
    is_page: bool,
    drawn: Sequence[Tiles],
) -> Iterator[Section]:
    yield from method.scenario_sections(session)
    yield from loops.loop_sections(arrays)
    yield from steps.sections(steps.steps_of(session))
    if arrays and not _is_one_pair(arrays):
        yield from matrix.sections(arrays)
    if level is not Level.FULL:
        return
    names = _names(arrays)
    for array, name in zip(arrays[:MOST_ARRAYS], names, strict=False):
        yield path_table.full_section(array, f"All paths{name}")
    if more := more_rows(len(arrays), MOST_ARRAYS):
        yield Section("All paths", (Lines((f"{more} arrays (--json).",)),))
    yield from survey.section(session, drawn)
    yield from path_table.notes_section(arrays)
    if not is_page:  # which holds the session itself
        yield from _measured(arrays)
    yield method.method_section(session)


def _names(arrays: Sequence[Array]) -> list[str]:
    """What tells each array from the others, behind a heading."""
    several = len({array.text for array in arrays}) > 1
    told = [
        (array.pair_text * (not _is_one_pair(arrays)), array.text * several) for array in arrays
    ]
    return [f": {', '.join(filter(None, parts))}" if any(parts) else "" for parts in told]


def _chart(arrays: Sequence[Array], named: Collection[int | None]) -> Chart | None:
    """A point for each path; the answers are those of the ``named`` results."""
    axes = list(zip(*(array.name for array in arrays), strict=True))
    differs = [at for at, values in enumerate(axes) if len(set(values)) > 1]
    points: list[Point] = []
    for array in arrays:
        if len(points) >= MOST_POINTS:
            break
        group = " ".join(array.name[at] for at in differs)
        points.extend(_point(path, group, named) for path in array.paths if path.is_timed)
    return Chart("paths", tuple(points)) if points else None


def _point(path: Path, group: str, named: Collection[int | None]) -> Point:
    return Point(
        *(path.code, path.cost_ns, *path.interval_ns, path.result),
        path.worst,
        path.problems,
        group,
        path.case.index in named,
        path.rules,
        path.safety.suspected,
    )


def _commands(session: Session, found: Sequence[Problem], name: str) -> tuple[str, ...]:
    worst = found[0].rule if found else ""
    told = [f"dlprof explain {worst}", f"dlprof ticket {name} {worst}"] if worst else []
    others = pair_command(session, session.results[0].case) if session.results else ""
    return (*filter(None, [others]), *told, f"dlprof report {name} --full")


INSTRUMENTS = {
    "ownership": "view or copy",
    "values": "values",
    "alignment": "address of x",
    "fresh_source": "second conversion",
    "ordering": "queued work",
    "lifetime": "lifetime",
    "early_write": "late reads",
    "peak_memory": "peak memory",
    "settings": "settings",
    "refusal": "refusal",
    "trace": "calls of the driver",
}
"""The evidence of a result, and what each is called."""
MOST_TOLD = 4
MOST_PROCESSES = 12


def _measured(arrays: Sequence[Array]) -> Iterator[Section]:
    """What all paths of an array share, and the rest of each; the JSON has those of all arrays."""
    for array, name in zip(arrays[:MOST_TOLD], _names(arrays), strict=False):
        told = {path.code: tuple(_facts(path.case.result)) for path in array.paths}
        told = {code: found for code, found in told.items() if found}
        shared = set.intersection(*map(set, told.values())) if len(told) > 1 else set()
        common = [one for one in next(iter(told.values()), ()) if one in shared]
        blocks = [Facts((("path", "all"), *dict.fromkeys(common)))] if common else []
        blocks += [
            Facts((("path", code), *(one for one in found if one not in shared)))
            for code, found in told.items()
            if not shared.issuperset(found)
        ]
        if blocks:
            yield Section(f"Everything measured{name}", tuple(blocks))
    if more := more_rows(len(arrays), MOST_TOLD):
        yield Section("Everything measured", (Lines((f"{more} arrays (--json).",)),))


def _facts(result: Result) -> Iterator[tuple[str, str]]:
    if not result.untimed:
        yield from _times(result)
    for name, question in INSTRUMENTS.items():
        verdict: Any = getattr(result, name)
        if verdict is not None:
            told = facts(verdict.evidence, result.untimed)
            yield question, f"{verdict.verdict}{told and f': {told}'}"
    for event in result.handshake:
        yield "handshake", _event(event, result.untimed)
    if result.output:
        yield "output", clean(result.output)


def _times(result: Result) -> Iterator[tuple[str, str]]:
    for name, measure in (("ready", result.ready_time), ("call", result.host_time)):
        if measure is not None:
            yield name, _measure(measure)
    first = {
        "first call": result.first_call_ns,
        "making x": result.create_ns,
    }
    yield from ((name, plain_time(value)) for name, value in first.items() if value is not None)
    if result.first_call_peak_bytes is not None:
        yield "memory of the first call", size_text(result.first_call_peak_bytes)
    if result.phases is not None:
        parts = {
            "export": result.phases.export_ns,
            "import": result.phases.import_ns,
            "release": result.phases.release_ns,
        }
        told = [f"{name} {plain_time(ns)}" for name, ns in parts.items() if ns is not None]
        yield "parts", ", ".join(told)


def _measure(measure: TimeMeasure) -> str:
    """``171 µs (38 samples of 4 calls, 0.2 page faults a call), 174 µs (…); least 150 µs``."""
    if measure.same_as:
        return f"the same as {measure.same_as.removesuffix('_time').replace('host', 'call')}"
    least = f"least {plain_time(measure.min_ns, 3)}"
    medians = measure.medians_by_round
    processes = [
        f"{plain_time(medians[one.round], 3)} ({_samples(one)})"
        for one in measure.processes[:MOST_PROCESSES]
        if one.round in medians
    ]
    more = len(measure.processes) - MOST_PROCESSES
    left = f" and {more:,} more" if more > 0 else ""
    if not processes:
        return f"{plain_time(measure.median_ns, 3)}; {least}"
    return f"{', '.join(processes)}{left}; {least}"


def _samples(found: ProcessSamples) -> str:
    samples, calls = len(found.samples_ns), found.loops
    told = [f"{counted(samples, 'sample')} of {counted(calls, 'call')}"]
    if found.page_faults_per_call:
        told.append(f"{significant(found.page_faults_per_call, 2)} page faults a call")
    if found.disturbed:
        told.append(f"{significant(100 * found.disturbed, 2)} % disturbed")
    return ", ".join(told)


def _event(event: HandshakeEvent, untimed: bool) -> str:
    """``__dlpack__(stream=None): returned in 8.3 µs, a capsule dltensor, flags none``."""
    arguments = ", ".join(f"{name}={value}" for name, value in (event.arguments or {}).items())
    told = f"{event.call or 'a call'}({arguments}) {event.outcome or ''}".rstrip()
    if event.ns is not None and not untimed:
        told += f" in {plain_time(event.ns)}"
    capsule = ", ".join(f"{name} {value}" for name, value in (event.capsule or {}).items())
    return "; ".join(filter(None, (told, event.answer, capsule)))
