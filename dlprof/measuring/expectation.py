"""What a scenario expects to be found: ``DLP001 on tf->*``, ``no error on torch->numpy``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import product

from dlprof.errors import FindingsFailed, Unsure, UsageError
from dlprof.judge import BY_WORD, NEEDS, RULES, WRITTEN
from dlprof.judge.rule import NAME_ONE, SEVERITIES
from dlprof.runner.catalog import Catalog
from dlprof.runner.session import ExpectationRecord, FindingRecord, Header, Result
from dlprof.text.clean import first_line, nearest

WILD = frozenset("*?[")


@dataclass(frozen=True)
class PairPattern:
    """``producer`` and ``consumer`` are names, aliases or globs; ``both`` is either direction."""

    producer: str
    consumer: str
    both: bool = False

    def __str__(self) -> str:
        return f"{self.producer}{'<->' if self.both else '->'}{self.consumer}"

    def matches(self, pair: tuple[str, str]) -> bool:
        """Whether a pair of the catalog's names is one of these."""
        sides = (self.producer, self.consumer)
        directions = (sides, sides[::-1]) if self.both else (sides,)
        return any(
            fnmatchcase(pair[0], producer) and fnmatchcase(pair[1], consumer)
            for producer, consumer in directions
        )


def parse_pair(text: str) -> PairPattern:
    """Read one pair. Raises :class:`UsageError`."""
    for arrow, both in (("<->", True), ("->", False)):
        left, found, right = (word.strip() for word in text.partition(arrow))
        if found and left and right and not any(mark in left + right for mark in "<> "):
            return PairPattern(left, right, both)
    raise UsageError(f"pair {text!r} is not like tf->cupy, tf<->cupy or torch->*")


def named(pattern: PairPattern, catalog: Catalog) -> PairPattern:
    """The same in the catalog's names. Raises :class:`UsageError` for an unknown framework."""
    producer, consumer = (
        word if WILD & set(word) else catalog.named(word).name
        for word in (pattern.producer, pattern.consumer)
    )
    return PairPattern(producer, consumer, pattern.both)


def pairs(
    patterns: Sequence[PairPattern], catalog: Catalog, able: Iterable[str]
) -> tuple[tuple[str, str], ...]:
    """Return the pairs of all patterns, each once, in their order.

    A glob stands for the frameworks of ``able``, a name for itself, installed or not. Raises
    :class:`UsageError` for an unknown framework.
    """
    found: dict[tuple[str, str], None] = {}
    usable = list(dict.fromkeys(able))
    for pattern in patterns:
        whole = named(pattern, catalog)
        producers, consumers = (
            [name for name in usable if fnmatchcase(name, word)] if WILD & set(word) else [word]
            for word in (whole.producer, whole.consumer)
        )
        found |= dict.fromkeys(product(producers, consumers))
        if pattern.both:
            found |= dict.fromkeys((one, other) for other, one in product(producers, consumers))
    return tuple(found)


ANY = PairPattern("*", "*")

MET, MISSED, UNKNOWN = "met", "not met", "not checked"

TIMED = frozenset({rule.id for rule in RULES if rule.times} | set(SEVERITIES) - {"error"})
"""What one process hardly tells: rules that compare times, whose findings are no errors."""


@dataclass(frozen=True)
class Expectation:
    """``what`` is the id of a rule or a severity; ``absent`` expects that it is not found."""

    what: str
    pair: PairPattern = ANY
    absent: bool = False

    def __str__(self) -> str:
        where = "" if self.pair == ANY else f" on {self.pair}"
        return f"{'no ' if self.absent else ''}{self.what}{where}"


def parse(text: str) -> Expectation:
    """Read one expectation. Raises :class:`UsageError`."""
    head, found, tail = text.partition(" on ")
    words = head.split()
    absent = words[:1] == ["no"]
    if len(words) != 1 + absent or (found and not tail.strip()):
        raise UsageError(f"expectation {text!r} is not like 'DLP001 on tf->*' or 'no error'")
    return Expectation(_what(words[-1]), parse_pair(tail.strip()) if found else ANY, absent)


def check(
    expectations: Sequence[Expectation],
    results: Iterable[Result],
    findings: Sequence[FindingRecord],
    rounds: int,
) -> list[ExpectationRecord]:
    """Whether each is met by the findings about ``results``, which are all of the session."""
    seen, records = list(results), []
    for one in expectations:
        found = any(
            one.what in (finding.rule, finding.severity) and one.pair.matches(seen[index].case.pair)
            for finding in findings
            for index in finding.results
        )
        reason = "" if found else _unknown(one, seen, rounds)
        verdict = UNKNOWN if reason else MISSED if found == one.absent else MET
        records.append(ExpectationRecord(text=str(one), verdict=verdict, reason=reason))
    return records


def _unknown(expectation: Expectation, seen: Sequence[Result], rounds: int) -> str:
    """Why nothing could have been found; empty if it could.

    Reasons: a faulty probe, a pair without results, an instrument that did not look, or one
    process where times decide.
    """
    those = [one for one in seen if expectation.pair.matches(one.case.pair)]
    faults = [f"{'->'.join(one.case.pair)}: {one.fault}" for one in those if one.fault]
    if faults:
        return first_line(faults[0])
    measured = {one.case.pair for one in those if one.status == "ok"}
    lost = {one.case.pair for one in those if one.status not in ("ok", "unsupported")} - measured
    if lost or not measured:
        pair = "->".join(min(lost)) if lost else expectation.pair
        return f"nothing of {pair} was measured"
    instrument = NEEDS.get(expectation.what)
    if instrument and not any(getattr(one, instrument) for one in those):
        return f"{instrument.replace('_', ' ')} was not looked at"
    if rounds == 1 and expectation.what in TIMED:
        return "one process only, so that times cannot be told apart"
    return ""


def raise_for(header: Header, verdict: str) -> None:
    """Raise :class:`FindingsFailed` or :class:`Unsure` for such verdicts."""
    found = [one.text for one in header.expectations if one.verdict == verdict]
    if found:
        kind = FindingsFailed if verdict == MISSED else Unsure
        raise kind(f"expectation {verdict}: {'; '.join(found)}")


def _what(word: str) -> str:
    if word.lower() in SEVERITIES:
        return word.lower()
    if word.lower() in BY_WORD:
        return BY_WORD[word.lower()].id
    hint = nearest(word, (*WRITTEN, *SEVERITIES), NAME_ONE)
    raise UsageError(f"there is no rule {word!r}: {hint}")
