"""A session as a document: what was converted, what to write, what is wrong, and all the rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dlprof.judge.cases import Cases
from dlprof.judge.evidence_text import facts as evidence_facts
from dlprof.report import method, path_table, problems, steps, survey
from dlprof.report.answers import answers_of, best, condition
from dlprof.report.chart import paths_chart
from dlprof.report.document import (
    Answer,
    Document,
    Problem,
    Section,
    Table,
    facts,
)
from dlprof.report.paths import KINDS, Array, Path, arrays_of
from dlprof.runner.quantity import size_text
from dlprof.runner.session import Result, Session
from dlprof.text.clean import clean
from dlprof.ticket.reproducer import pair_command

LAST = "LAST"
"""The newest session, in commands."""
MOST_ARRAYS, MOST_TOLD = 60, 4
"""Arrays whose paths have a section, and those whose evidence has one; the session file has all."""


WORDS = {
    "view": "is a view",
    "copy": "is a copy",
    "wrong": "gives wrong values",
    "refused": "is refused",
    "crash": "crashes",
    "hangs": "hangs",
    "varies": "is a view in some processes, a copy in others",
}


def session_document(
    session: Session, name: str = LAST, scripts: bool = False, cases: Cases | None = None
) -> Document:
    """The report of ``session``.

    ``name`` is the session in commands that lead on. ``scripts`` asks for a reproducer of each
    problem, which takes time. ``cases`` are those of the session, if the caller has them.
    """
    arrays = arrays_of(session, cases)
    inference = steps.steps_of(session)
    found = problems.problems_of(session, name, scripts)
    paths = [path for array in arrays for path in array.paths]
    title, scope = _title(session, arrays, bool(inference))
    answers = (*_answers(arrays), *steps.answers(inference))
    tables, marks = _tables(session, arrays)
    return Document(
        title=title,
        scope=scope,
        context=method.versions(session),
        notices=method.notices(session, [path.case.result for path in paths]),
        answers=answers,
        tables=tables,
        marks=(*marks, *filter(None, [survey.summary(session)])),
        problems=found,
        chart=paths_chart(arrays, {answer.result for answer in answers}),
        sections=tuple(_sections(session, arrays)),
        commands=_commands(session, found, name),
    )


def _title(session: Session, arrays: Sequence[Array], has_steps: bool) -> tuple[str, str]:
    """What was looked at, and how much of it."""
    scenario = session.request.scenario
    title = scenario.title if scenario else ""
    if not arrays:
        pair, scope = survey.title(session)
        return title or pair or ("Steps of inference" if has_steps else "No results"), scope
    pairs = list(dict.fromkeys(array.pair_text for array in arrays))
    same = {array.text for array in arrays}
    pair = pairs[0] if len(pairs) == 1 else f"{len(pairs)} pairs"
    scope = f"{len(same)} arrays" if len(same) > 1 else same.pop()
    return f"{title}: {pair}" if title else pair, scope


def _is_one_pair(arrays: Sequence[Array]) -> bool:
    return len({array.pair for array in arrays}) == 1


def _is_one_path(arrays: Sequence[Array]) -> bool:
    return len(arrays) == len(arrays[0].paths) == 1


def _answers(arrays: Sequence[Array]) -> tuple[Answer, ...]:
    if not arrays:
        return ()
    if _is_one_path(arrays):
        return (_sentence(arrays[0].paths[0]),)
    return answers_of(arrays) if _is_one_pair(arrays) else path_table.pair_answers(arrays)


def _sentence(path: Path) -> Answer:
    """``numpy.asarray(x) is a view: 1.6 µs, nothing copied.``"""
    copied = {"view": "nothing copied", "copy": f"{size_text(path.case.size_bytes)} copied"}
    parts = (path.brief_time, copied.get(path.result, ""), "" if path.is_measured else path.reason)
    details = ", ".join(filter(None, parts))
    said = f"{path.code} {WORDS.get(path.result, 'may be a view or a copy')}"
    sentence = f"{said}: {details.rstrip('.')}." if details else f"{said}."
    when = condition(path)
    told = f"{sentence} {when[:1].upper()}{when[1:]}." if when else sentence
    return Answer(told, result=path.case.index)


def _tables(session: Session, arrays: Sequence[Array]) -> tuple[tuple[Table, ...], tuple[str, ...]]:
    """The tables of the first screen, and what their marks mean."""
    if not arrays:
        return tuple(survey.tables(session)), ()
    if _is_one_path(arrays):
        return (), path_table.marks_of(arrays[0].paths)
    if len(arrays) == 1:
        table, marks = path_table.short_table(arrays[0])
        return (table,), marks
    if _is_one_pair(arrays):
        shown = [path for array in arrays for kind in KINDS if (path := best(array, kind))]
        return (path_table.shapes_table(arrays),), path_table.marks_of(shown)
    chosen = [path for array in arrays if (path := path_table.standing_for(array))]
    marks = (*path_table.marks_of(chosen), *path_table.condition_marks(chosen))
    return (path_table.pair_table(arrays),), marks


def _sections(session: Session, arrays: Sequence[Array]) -> Iterator[Section]:
    yield from method.scenario_sections(session)
    yield from steps.loop_sections(arrays)
    yield from steps.step_sections(steps.steps_of(session))
    if arrays and not _is_one_pair(arrays):
        yield from path_table.pair_sections(arrays)
    names = _names(arrays)
    for array, name in zip(arrays[:MOST_ARRAYS], names, strict=False):
        yield path_table.full_section(array, f"All paths{name}")
    yield from survey.sections(session)
    for array, name in zip(arrays[:MOST_TOLD], names, strict=False):
        told = [
            facts([("path", path.code), *found])
            for path in array.paths
            if (found := tuple(_facts(path.case.result)))
        ]
        yield Section(f"Everything measured{name}", tuple(told))
    yield method.method_section(session)


def _names(arrays: Sequence[Array]) -> list[str]:
    """What tells each array from the others, behind a heading."""
    several = len({array.text for array in arrays}) > 1
    told = [
        (array.pair_text * (not _is_one_pair(arrays)), array.text * several) for array in arrays
    ]
    return [f": {', '.join(filter(None, parts))}" if any(parts) else "" for parts in told]


def _commands(session: Session, found: Sequence[Problem], name: str) -> tuple[str, ...]:
    worst = found[0].rule if found else ""
    told = [f"dlprof explain {worst}", f"dlprof ticket {name} {worst}"] if worst else []
    others = pair_command(session)
    return (*filter(None, [others]), *told, f"dlprof report {name} --full")


INSTRUMENTS = (
    *("ownership", "values", "alignment", "fresh_source", "ordering", "lifetime", "early_write"),
    *("peak_memory", "settings", "refusal", "trace"),
)
"""The evidence of a result."""


def _facts(result: Result) -> Iterator[tuple[str, str]]:
    for name in INSTRUMENTS:
        verdict: Any = getattr(result, name)
        if verdict is not None:
            told = evidence_facts(verdict.evidence, result.untimed)
            yield name.replace("_", " "), f"{verdict.verdict}{told and f': {told}'}"
    if result.output:
        yield "output", clean(result.output)
