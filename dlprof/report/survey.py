"""Report a survey: which dtypes, layouts and shapes each path takes, as a view or a copy."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from dlprof.judge.case_view import WORDS, CaseView
from dlprof.judge.cases import coverage
from dlprof.report.document import Cell, Column, Lines, Section, Table
from dlprof.report.paths import TONES, rules_by_case
from dlprof.runner.session import Session, grouped, pair_text
from dlprof.runner.survey import PLAINEST, Label, survey_label
from dlprof.text.clean import counted, first_line

RESULTS = ("view", "copy", "narrowed", "refused", "wrong", "crash", "hangs", "?")
"""The results of arrays, in the order of the columns."""
FLOAT8 = "float8"
"""One name for all of PyTorch's, if a result has all of them."""


class SurveyResult(NamedTuple):
    """The result of an array in one word, and the rules that name it."""

    result: str
    rules: tuple[str, ...]


class ArrayGroup(NamedTuple):
    """Paths of a pair that do the same with every array."""

    codes: tuple[str, ...]
    outcomes: Mapping[SurveyResult, list[Label]]

    @property
    def counts(self) -> Counter[str]:
        """Return the number of arrays with each result."""
        counts: Counter[str] = Counter()
        for outcome, labels in self.outcomes.items():
            counts[outcome.result] += len(labels)
        return counts

    @property
    def cell(self) -> Cell:
        alike = f"and {len(self.codes) - 1} equivalent" if len(self.codes) > 1 else ""
        return Cell(self.codes[0], code=True, note=alike)


def surveyed(session: Session) -> dict[str, list[CaseView]]:
    """Return the cases of the survey by their pair, in words."""
    found = (CaseView(n, result) for n, result in enumerate(session.results) if result.case.survey)
    return grouped(found, lambda case: pair_text(case.result.case.pair))


def title(session: Session) -> tuple[str, str]:
    """Return the pairs and the arrays of a survey; empty for another session."""
    found = surveyed(session)
    arrays = {survey_label(case.result.case) for cases in found.values() for case in cases}
    pairs = next(iter(found), "") if len(found) == 1 else f"{len(found)} pairs"
    return (pairs, counted(len(arrays), "small array")) if found else ("", "")


def tables(session: Session) -> Iterator[Table]:
    """Yield a table for each pair: the number of arrays by result, for each group of paths."""
    pairs = _groups_by_pair(session)
    for pair, groups in pairs.items():
        words = [word for word in RESULTS if any(group.counts[word] for group in groups)]
        rows = []
        for group in groups:
            rules = dict.fromkeys(rule for outcome in group.outcomes for rule in outcome.rules)
            counts = (
                Cell(str(group.counts[word] or "-"), TONES.get(word, "bad")) for word in words
            )
            rows.append((*counts, group.cell, Cell(" ".join(rules))))
        path = Column("path" if len(pairs) == 1 else f"path: {pair}")
        columns = (*(Column(word, right=True) for word in words), path, Column("problem"))
        yield Table(columns, tuple(rows), is_summary=True)


def sections(session: Session) -> Iterator[Section]:
    """Yield the names of the arrays for each result, and the reasons of refusals."""
    for pair, groups in _groups_by_pair(session).items():
        rows = tuple(row for group in groups for row in _rows(group))
        columns = tuple(map(Column, ("path", "result", "arrays", "problem")))
        alike = (
            f"The same as {first}: {', '.join(codes)}"
            for first, *codes in (group.codes for group in groups)
            if codes
        )
        lines = (*_reasons(surveyed(session)[pair]), *alike)
        notes = (Lines(lines),) if lines else ()
        yield Section(f"Survey: {pair}", (Table(columns, rows), *notes))


def summary(session: Session) -> str:
    """Return the coverage: ``51 small arrays: looked at 212 of 240 (28 refused)``."""
    results = [case.result for pair in surveyed(session).values() for case in pair]
    arrays = len({survey_label(result.case) for result in results})
    return f"{arrays} small arrays: {coverage(results)}." if results else ""


def _reasons(cases: Iterable[CaseView]) -> Iterator[str]:
    """Yield each reason of a refusal once, with a path that gave it."""
    reasons: dict[str, str] = {}
    paths: dict[str, dict[str, None]] = defaultdict(dict)
    for case in cases:
        if case.result.status != "ok" and case.result.reason:
            reason = first_line(case.result.reason)
            # Refusals that differ in the name of the dtype alone are one.
            key = re.sub(re.escape(case.result.case.dtype), "", reason, flags=re.IGNORECASE)
            reasons.setdefault(key, reason)
            paths[key][case.code] = None
    for key, codes in paths.items():
        more = f" and {len(codes) - 1} more" if len(codes) > 1 else ""
        yield f"{next(iter(codes))}{more}: {reasons[key]}"


def _groups_by_pair(session: Session) -> dict[str, list[ArrayGroup]]:
    """Return the paths of each pair, without the arrays that the producer cannot make."""
    rules = rules_by_case(session.findings)
    pairs = surveyed(session)
    made = {
        pair: [case for case in cases if case.result.refused_at != "create"]
        for pair, cases in pairs.items()
    }
    return {pair: _groups(cases, rules) for pair, cases in made.items() if cases}


def _groups(cases: Sequence[CaseView], rules: Mapping[int, tuple[str, ...]]) -> list[ArrayGroup]:
    paths: dict[tuple[str, str], dict[Label, SurveyResult]] = defaultdict(dict)
    codes: dict[tuple[str, str], str] = {}
    for case in cases:
        record = case.result.case
        path, label = (record.export, record.import_), survey_label(record)
        outcome = SurveyResult(_word(case), rules.get(case.index, ()))
        if 0 in record.shape and case.is_right:
            # Without elements there is no memory to share or to copy.
            plainest = paths[path].get(PLAINEST, outcome)
            if plainest.result in WORDS:
                outcome = plainest
        paths[path][label] = outcome
        codes.setdefault(path, case.code)
    alike: dict[tuple[tuple[Label, SurveyResult], ...], list[str]] = defaultdict(list)
    for path, outcomes in paths.items():
        alike[tuple(outcomes.items())].append(codes[path])
    groups = []
    for outcomes_alike, names in alike.items():
        by_outcome: dict[SurveyResult, list[Label]] = defaultdict(list)
        for label, outcome in outcomes_alike:
            by_outcome[outcome].append(label)
        groups.append(ArrayGroup(tuple(sorted(names, key=len)), by_outcome))
    return sorted(groups, key=lambda group: (-group.counts["view"], -group.counts["copy"]))


def _word(case: CaseView) -> str:
    word, record = case.outcome, case.result.case
    narrowed = record.narrows_to and case.changed.dtype == (record.dtype, record.narrows_to)
    return "narrowed" if word == "wrong" and narrowed else word


def _rows(group: ArrayGroup) -> Iterator[tuple[Cell, ...]]:
    """Yield one row for each result; the path stands in the first."""
    every = [label for labels in group.outcomes.values() for label in labels]
    path = group.cell
    results: dict[str, list[Label]] = defaultdict(list)
    broken: dict[tuple[str, str], list[Label]] = defaultdict(list)
    for (result, rules), labels in group.outcomes.items():
        results[result] += labels
        for rule in rules:
            broken[result, rule] += labels
    for result, labels in sorted(results.items(), key=lambda item: -len(item[1])):
        problems = [
            rule if len(found) == len(labels) else f"{rule} ({arrays_text(found, every)})"
            for (word, rule), found in broken.items()
            if word == result
        ]
        word = Cell(result, TONES.get(result, "bad"))
        yield path, word, Cell(arrays_text(labels, every)), Cell("; ".join(problems))
        path = Cell("")


def arrays_text(labels: Sequence[Label], every: Sequence[Label]) -> str:
    """Return ``labels`` as a part of ``every``: ``all dtypes but bool; F, strided``."""
    texts = []
    for axis in dict.fromkeys(label.axis for label in labels):
        known = [label.name for label in every if label.axis == axis]
        names = _families([label.name for label in labels if label.axis == axis], known)
        missing = [label.name for label in every if label.axis == axis and label not in labels]
        missing = _families(missing, known)
        if len(names) <= len(missing) + 1:
            texts.append(", ".join(names))
        else:
            texts.append(f"all {axis}{' but ' * bool(missing)}{', '.join(missing)}")
    return "; ".join(texts)


def _families(names: Sequence[str], known: Sequence[str]) -> list[str]:
    """Return the names, with one for all dtypes of eight bits if none of them is missing."""
    family = {name for name in known if name.startswith(FLOAT8)}
    if len(family) > 1 and family <= {*names}:
        return list(dict.fromkeys(FLOAT8 if name in family else name for name in names))
    return list(names)
