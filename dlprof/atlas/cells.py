"""One session as cells: of each case the verdicts in words, its safety, the rules and the time.

A session is read as every report reads it, and its cells alone are kept.
"""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

from dlprof.compare.verdicts import MEASURED, SCALES
from dlprof.judge import cases_in, with_findings
from dlprof.judge.case_view import PLACES, CaseView
from dlprof.judge.cases import Cases
from dlprof.judge.safety import Safety
from dlprof.judge.slower import Time
from dlprof.runner import session as model
from dlprof.runner.session import CaseRecord, Header, Result
from dlprof.text.clean import first_line

QUESTIONS = ("result", "values", "lifetime", "early_write", "ordering")
"""What a cell answers; the most important first."""
AT_ADDRESSES = ("view", "copy", "refused")
"""What the address of an array may decide between."""
OR = " or "
AT_BEST = {
    OR.join(words): words[0] for count in (2, 3) for words in combinations(AT_ADDRESSES, count)
}
"""What the paths are at best where it does: a ``view``, for ``view or copy``."""
BY_ADDRESS = tuple(AT_BEST)
NOT_JUDGED = Safety("unmeasured")


class Cell(NamedTuple):
    """``words`` answer :data:`QUESTIONS`; an empty one is unknown. ``reason`` is a refusal's."""

    words: tuple[str, ...]
    reason: str = ""
    rules: tuple[str, ...] = ()
    time: Time | None = None
    by_chance: bool = False
    """Whether nothing looked if the address decides between this result and another."""
    safety: Safety = NOT_JUDGED
    offered: str = ""
    """The kind as which it may be written: see :meth:`dlprof.judge.cases.Cases.offered`."""
    new_ns: float | None = None
    """Of a copy that the framework keeps: the time with a new array. Infinite if not known."""

    @property
    def result(self) -> str:
        return self.words[0]

    def word(self, question: str) -> str:
        return self.words[QUESTIONS.index(question)]


@dataclass(frozen=True)
class SessionCells:
    """A session without its results; ``cells`` are those of its cases."""

    header: Header
    cells: tuple[tuple[CaseRecord, Cell], ...]


def read(path: str | os.PathLike[str], content: bytes | None = None) -> SessionCells:
    """The cells of a session file. Raises as :func:`dlprof.runner.session.load`.

    ``content`` is that of a file elsewhere, of which ``path`` is the address.
    """
    session = model.load(path, content)
    cases = cases_in(session.results)
    session = with_findings(session, cases)
    cases = cases.with_findings(session.findings)
    rules: dict[int, set[str]] = defaultdict(set)
    for finding in session.findings:
        for index in finding.results if not finding.subject else ():
            rules[index].add(finding.rule)
    by_address = _by_address(cases.cases)
    cells = tuple(
        (
            case.result.case,
            _cell(cases, case, tuple(sorted(rules[case.index])), by_address.get(_path(case))),
        )
        for case in cases.cases
    )
    return SessionCells(session.model_copy(update={"results": []}), cells)


def _cell(cases: Cases, case: CaseView, rules: tuple[str, ...], met: str | None) -> Cell:
    """The cell of a case; ``met`` is what the path is by the address, if that is known."""
    result = case.result
    is_whole = result.status in MEASURED
    word = _worst(result, "ownership") if is_whole else case.failure
    reason = first_line(result.reason) if result.reason and not is_whole else ""
    may_vary = word in AT_ADDRESSES
    if met in BY_ADDRESS and may_vary:
        word = str(met)
    others = (_worst(result, name) if is_whole else "" for name in QUESTIONS[1:])
    return Cell(
        (word, *others),
        reason,
        rules,
        _time(case),
        # A survey puts its arrays where it wants them.
        by_chance=may_vary and met is None and not case.surveyed,
        safety=cases.safety(case),
        offered=cases.offered(case),
        new_ns=(case.new_ns or math.inf) if case.is_cached_copy else None,
    )


def _worst(result: Result, name: str) -> str:
    """The worst word of an instrument that a measure knows: a user may meet it."""
    scale, verdict = SCALES[name], getattr(result, name)
    words = [word for word, _ in verdict.seen if word in scale] if verdict is not None else []
    return max(words, key=scale.__getitem__, default="")


_Path = tuple[str, ...]


def _path(case: CaseView) -> _Path:
    """The conversion at any dtype."""
    return case.path[:4]


def _by_address(cases: Iterable[CaseView]) -> Mapping[_Path, str]:
    """The paths that *alignment* looked at, and what it saw of each at all its places."""
    found: dict[_Path, set[str]] = defaultdict(set)
    for case in cases:
        if (tried := case.result.alignment) is not None:
            words = {word for place in PLACES for word in tried.evidence.words_at(place)}
            found[_path(case)] |= words
    return {
        path: OR.join(word for word in AT_ADDRESSES if word in seen)
        for path, seen in found.items()
        if seen
    }


def _time(case: CaseView) -> Time | None:
    """The ready time, if it is the path's own."""
    ready = case.ready
    if ready is None or not case.is_known or ready.median_ns <= 0:
        return None
    return Time(ready.median_ns, ready.interval_ns)
