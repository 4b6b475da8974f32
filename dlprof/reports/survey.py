"""What the survey saw: which dtypes, layouts and shapes each path takes, and as what."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from dlprof.analysis.case_view import CaseView
from dlprof.plan.axes import shape_text
from dlprof.plan.survey import PLAIN, SHAPE
from dlprof.reports.document import Cell, Column, Lines, Section, Table, Tone
from dlprof.reports.paths import TIMES, result_of
from dlprof.session.model import CaseRecord, Session, pair_text
from dlprof.text.clean import first_line

RESULTS: Mapping[str, Tone] = {
    "crash": "bad",
    "hangs": "bad",
    "wrong": "bad",
    "narrowed": "copy",
    "view": "view",
    "copy": "copy",
    "?": "",
    "refused": "dim",
}
"""Words for what became of an array, in the order of the table."""
MOST_ROWS = 22
MOST_MISSING = 2


class Label(NamedTuple):
    """An array by what sets it apart from the others: ``dtypes``, ``layouts`` or ``shapes``."""

    axis: str
    name: str


class Group(NamedTuple):
    """Paths of a pair that do the same with every array."""

    codes: tuple[str, ...]
    results: Mapping[str, list[Label]]


def label_of(case: CaseRecord) -> Label:
    if case.shape != SHAPE:
        text = shape_text(case.shape).replace("x", TIMES) if case.shape else "scalar"
        return Label("shapes", text)
    if case.layout in PLAIN.values():
        return Label("dtypes", case.dtype)
    if case.layout == "sliced":
        return Label("unaligned arrays", f"sliced {case.dtype}")
    return Label("layouts", case.layout)


def surveyed(session: Session) -> dict[str, list[CaseView]]:
    """The cases of the survey by their pair, in words."""
    found: dict[str, list[CaseView]] = defaultdict(list)
    for index, result in enumerate(session.results):
        if result.case.survey:
            found[pair_text(result.case.pair)].append(CaseView(index, result))
    return dict(found)


def title(session: Session) -> str:
    """What a session of a survey alone looked at; empty for another."""
    found = surveyed(session)
    arrays = {label_of(case.result.case) for cases in found.values() for case in cases}
    pairs = next(iter(found)) if len(found) == 1 else f"{len(found)} pairs"
    return f"{pairs}    {len(arrays)} small arrays" if found else ""


def tables(session: Session, most: int = MOST_ROWS) -> Iterator[Table]:
    """One for each pair: a row for each result of paths that do the same."""
    pairs = surveyed(session)
    for pair, cases in pairs.items():
        unmade = _unmade(cases)
        known = [
            case
            for case in cases
            if label_of(case.result.case) not in unmade and not _is_empty(case)
        ]
        rows = [row for group in _groups(known) for row in _rows(group)]
        more = [f"… and {len(rows) - most} more lines (--full)."] if len(rows) > most else []
        if unmade:
            more.append(f"{cases[0].pair[0]} cannot make {arrays_text(unmade, ())}.")
        more += dict.fromkeys(
            case.result.case.narrows_why for case in known if _result(case) == "narrowed"
        )
        title = Column("path" if len(pairs) == 1 else f"path: {pair}")
        yield Table((Column("result"), Column("arrays"), title), tuple(rows[:most]), " ".join(more))


def section(session: Session) -> Iterator[Section]:
    """All rows, and why arrays were refused."""
    found = surveyed(session)
    if not found:
        return
    reasons: dict[str, dict[str, None]] = defaultdict(dict)
    for case in (case for cases in found.values() for case in cases):
        if case.result.status != "ok" and case.result.reason:
            reasons[first_line(case.result.reason)][case.code] = None
    lines = [
        f"{next(iter(codes))}{f' +{len(codes) - 1} alike' * (len(codes) > 1)}: {reason}"
        for reason, codes in reasons.items()
    ]
    every = len(session.results)
    yield Section("Survey", (*tables(session, every), *([Lines(tuple(lines))] if lines else [])))


def summary(session: Session) -> str:
    """One line for the first screen of a run; empty without a survey."""
    cases = [case for pair in surveyed(session).values() for case in pair]
    if not cases:
        return ""
    indices = {case.index for case in cases}
    rules = {one.rule for one in session.findings if set(one.results) <= indices}
    told = f"problems of these alone: {', '.join(sorted(rules))}" if rules else "no other problem"
    arrays = len({label_of(case.result.case) for case in cases})
    return f"Survey of {arrays} small arrays of other dtypes, layouts and shapes: {told}."


def _unmade(cases: Sequence[CaseView]) -> list[Label]:
    """The arrays that the producer cannot make."""
    unmade = (case.result.case for case in cases if case.result.refused_at == "create")
    return list(dict.fromkeys(map(label_of, unmade)))


def _is_empty(case: CaseView) -> bool:
    """Whether it came back right without elements: there is no memory to share or to copy."""
    return 0 in case.result.case.shape and case.is_right


def _groups(cases: Sequence[CaseView]) -> list[Group]:
    paths: dict[tuple[str, str], dict[Label, str]] = defaultdict(dict)
    for case in cases:
        record = case.result.case
        paths[record.export, record.import_][label_of(record)] = _result(case)
    codes: dict[tuple[str, str], str] = {}
    for case in cases:
        codes.setdefault((case.result.case.export, case.result.case.import_), case.code)
    alike: dict[tuple[tuple[Label, str], ...], list[str]] = defaultdict(list)
    for path, results in paths.items():
        alike[tuple(results.items())].append(codes[path])
    groups = []
    for outcome, names in alike.items():
        by_word: dict[str, list[Label]] = defaultdict(list)
        for label, word in outcome:
            by_word[word].append(label)
        groups.append(Group(tuple(sorted(names, key=len)), by_word))
    return sorted(groups, key=lambda group: -len(group.codes))


def _result(case: CaseView) -> str:
    word = result_of(case)
    narrows = case.result.case.narrows_to
    is_narrowed = (
        word == "wrong" and narrows and case.changed.dtype == (case.result.case.dtype, narrows)
    )
    return "narrowed" if is_narrowed else word


def _rows(group: Group) -> Iterator[tuple[Cell, ...]]:
    first, *others = group.codes
    every = [label for labels in group.results.values() for label in labels]
    path = Cell(first, code=True, note=f"+{len(others)} alike" if others else "")
    known = [word for word in RESULTS if word in group.results]
    for word in [*known, *(word for word in group.results if word not in RESULTS)]:
        text = arrays_text(group.results[word], every)
        yield Cell(word, RESULTS.get(word, "")), Cell(text), path
        path = Cell("")


def arrays_text(found: Iterable[Label], every: Iterable[Label]) -> str:
    """``all dtypes but bool; F, strided; all shapes``: of every array, the ones that are found."""
    texts = []
    chosen, known = list(found), list(every)
    for axis in dict.fromkeys(label.axis for label in chosen):
        names = [label.name for label in chosen if label.axis == axis]
        missing = [label.name for label in known if label.axis == axis and label not in chosen]
        if known and not missing and len(names) > 1:
            texts.append(f"all {axis}")
        elif known and len(missing) <= MOST_MISSING < len(names) - 1:
            texts.append(f"all {axis} but {' and '.join(missing)}")
        else:
            texts.append(", ".join(names))
    return "; ".join(texts)
