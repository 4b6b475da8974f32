"""Judge a session: its findings, and its scenario's expectations of them.

An expectation is ``DLP001 on tf->*``, or ``no error on torch->numpy``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import product

from dlprof.errors import FindingsFailed, Unsure, UsageError
from dlprof.judge import (
    BY_WORD,
    NEEDS,
    RULES,
    WRITTEN,
    case_findings,
    cases_in,
)
from dlprof.judge.cases import Cases
from dlprof.judge.rule import NAME_HINT, SEVERITIES
from dlprof.runner import session_file
from dlprof.runner.catalog import Catalog
from dlprof.runner.session import ExpectationRecord, FindingRecord, Header, Result, Session
from dlprof.text.clean import first_line, nearest

WILD = frozenset("*?[")


@dataclass(frozen=True)
class PairPattern:
    """``producer`` and ``consumer`` are names, aliases or globs; ``is_two_way`` is ``<->``."""

    producer: str
    consumer: str
    is_two_way: bool = False

    def __str__(self) -> str:
        return f"{self.producer}{'<->' if self.is_two_way else '->'}{self.consumer}"

    def matches(self, pair: tuple[str, str]) -> bool:
        """Whether the pattern matches a pair of the catalog's names."""
        sides = (self.producer, self.consumer)
        directions = (sides, sides[::-1]) if self.is_two_way else (sides,)
        return any(
            fnmatchcase(pair[0], producer) and fnmatchcase(pair[1], consumer)
            for producer, consumer in directions
        )


def parse_pair(text: str) -> PairPattern:
    """Read one pair. Raises :class:`UsageError`."""
    for arrow, is_two_way in (("<->", True), ("->", False)):
        left, found, right = (word.strip() for word in text.partition(arrow))
        if found and left and right and not any(mark in left + right for mark in "<> "):
            return PairPattern(left, right, is_two_way)
    raise UsageError(f"pair {text!r} is not like tf->cupy, tf<->cupy or torch->*")


def in_catalog(pattern: PairPattern, catalog: Catalog) -> PairPattern:
    """Return the pattern in the catalog's names. Raises :class:`UsageError` for an unknown name."""
    producer, consumer = (
        word if WILD & set(word) else catalog.find(word).name
        for word in (pattern.producer, pattern.consumer)
    )
    return PairPattern(producer, consumer, pattern.is_two_way)


def pairs(patterns: Iterable[PairPattern], usable: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return the pairs of all patterns, each once, in their order.

    A glob stands for the ``usable`` frameworks, a name for itself, installed or not.
    """
    found: dict[tuple[str, str], None] = {}
    for pattern in patterns:
        producers, consumers = (
            [name for name in usable if fnmatchcase(name, word)] if WILD & set(word) else [word]
            for word in (pattern.producer, pattern.consumer)
        )
        found |= dict.fromkeys(product(producers, consumers))
        if pattern.is_two_way:
            found |= dict.fromkeys(
                (producer, consumer) for consumer, producer in product(producers, consumers)
            )
    return tuple(found)


ANY = PairPattern("*", "*")

MET, MISSED, UNKNOWN = "met", "not met", "not checked"

TIMED = frozenset({rule.id for rule in RULES if rule.times} | set(SEVERITIES) - {"error"})
"""Rules that compare times, and severities that they have: unknown after a single process."""


@dataclass(frozen=True)
class Expectation:
    """``word`` is the id of a rule or a severity; ``absent`` expects that it is not found."""

    word: str
    pair: PairPattern = ANY
    absent: bool = False

    def __str__(self) -> str:
        where = "" if self.pair == ANY else f" on {self.pair}"
        return f"{'no ' if self.absent else ''}{self.word}{where}"


def parse_expectation(text: str) -> Expectation:
    """Read one expectation. Raises :class:`UsageError`."""
    head, found, tail = text.partition(" on ")
    words = head.split()
    absent = words[:1] == ["no"]
    if len(words) != 1 + absent or (found and not tail.strip()):
        raise UsageError(f"expectation {text!r} is not like 'DLP001 on tf->*' or 'no error'")
    return Expectation(_parse_word(words[-1]), parse_pair(tail.strip()) if found else ANY, absent)


def check(
    expectations: Sequence[Expectation],
    results: Iterable[Result],
    findings: Sequence[FindingRecord],
    rounds: int,
) -> list[ExpectationRecord]:
    """Check each expectation against the findings about ``results``, all of the session."""
    all_results, records = list(results), []
    for expectation in expectations:
        found = any(
            expectation.word in (finding.rule, finding.severity)
            and expectation.pair.matches(all_results[index].case.pair)
            for finding in findings
            for index in finding.results
        )
        reason = "" if found else _unknown(expectation, all_results, rounds)
        verdict = UNKNOWN if reason else MISSED if found == expectation.absent else MET
        records.append(ExpectationRecord(text=str(expectation), verdict=verdict, reason=reason))
    return records


def _unknown(expectation: Expectation, results: Sequence[Result], rounds: int) -> str:
    """Return the reason why nothing could have been found; empty if something could.

    Reasons: a faulty probe, a pair without results, an instrument that did not look, or one
    process where times decide.
    """
    matching = [result for result in results if expectation.pair.matches(result.case.pair)]
    faults = [
        f"{'->'.join(result.case.pair)}: {result.fault}" for result in matching if result.fault
    ]
    if faults:
        return first_line(faults[0])
    measured = {result.case.pair for result in matching if result.status == "ok"}
    failed = {result.case.pair for result in matching if result.status not in ("ok", "unsupported")}
    failed -= measured
    if failed or not measured:
        pair = "->".join(min(failed)) if failed else expectation.pair
        return f"nothing of {pair} was measured"
    known = {
        result.case.pair
        for result in matching
        if result.status == "ok" and not _lacks_ownership(result)
    }
    if expectation.word in SEVERITIES and measured - known:
        return f"view or copy is unknown from {' to '.join(min(measured - known))}"
    instrument = NEEDS.get(expectation.word)
    if instrument and not any(getattr(result, instrument) for result in matching):
        return f"{instrument.replace('_', ' ')} was not measured"
    if rounds == 1 and expectation.word in TIMED:
        return "one process only, so that times cannot be told apart"
    return ""


def _lacks_ownership(result: Result) -> bool:
    """Whether the look for view or copy has failed, or cannot tell."""
    if result.ownership is None:
        return any(note.instrument == "ownership" for note in result.notes)
    return result.ownership.verdict == "unknown"


def raise_for(header: Header, verdict: str) -> None:
    """Raise :class:`FindingsFailed` or :class:`Unsure` for expectations with this verdict."""
    found = [record.text for record in header.expectations if record.verdict == verdict]
    if found:
        kind = FindingsFailed if verdict == MISSED else Unsure
        raise kind(f"expectation {verdict}: {'; '.join(found)}")


def _parse_word(word: str) -> str:
    if word.lower() in SEVERITIES:
        return word.lower()
    if word.lower() in BY_WORD:
        return BY_WORD[word.lower()].id
    hint = nearest(word, (*WRITTEN, *SEVERITIES), NAME_HINT)
    raise UsageError(f"there is no rule {word!r}: {hint}")


def load(path: str | os.PathLike[str]) -> Session:
    """Read and judge a session file. Raises :class:`SessionError` if it is not one."""
    return judged(session_file.load(path))


def judged(session: Session, cases: Cases | None = None) -> Session:
    """Return the session with its findings and the verdicts on its scenario's expectations.

    ``cases`` are those of the session, if the caller has them.
    """
    findings = case_findings(cases or cases_in(session.results))
    scenario = session.request.scenario
    expected = [parse_expectation(text) for text in (scenario.expect if scenario else ())]
    checked = check(expected, session.results, findings, session.rounds)
    return session.model_copy(update={"findings": findings, "expectations": checked})
