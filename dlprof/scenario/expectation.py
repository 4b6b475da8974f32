"""What a scenario expects to be found: ``DLP001 on tf->*``, ``no error on torch->numpy``."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from dlprof.catalog import Catalog
from dlprof.errors import UsageError
from dlprof.rules import NEEDS, RULES
from dlprof.rules.finding import SEVERITIES
from dlprof.scenario.pairs import PairPattern, named
from dlprof.scenario.pairs import parse as parse_pair
from dlprof.session import ExpectationRecord, FindingRecord, Result

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

    def claims(self, finding: FindingRecord) -> bool:
        return self.what in (finding.rule, finding.severity)


def parse(text: str) -> Expectation:
    """Read one expectation. Raises :class:`UsageError`."""
    head, found, tail = text.partition(" on ")
    words = head.split()
    absent = words[:1] == ["no"]
    if len(words) != 1 + absent or (found and not tail.strip()):
        raise UsageError(f"expectation {text!r} is not like 'DLP001 on tf->*' or 'no error'")
    return Expectation(_what(words[-1]), parse_pair(tail.strip()) if found else ANY, absent)


def resolve(expectation: Expectation, catalog: Catalog) -> Expectation:
    """The same in the catalog's names. Raises :class:`UsageError` for an unknown framework."""
    return replace(expectation, pair=named(expectation.pair, catalog))


def check(
    expectations: Iterable[Expectation],
    results: Iterable[Result],
    findings: Sequence[FindingRecord],
    rounds: int,
) -> list[ExpectationRecord]:
    """Whether each is met by the findings about ``results``, which are all of the session."""
    seen = [_Seen.of(result) for result in results]
    return [_check(one, seen, findings, rounds) for one in expectations]


@dataclass(frozen=True)
class _Seen:
    """What must be known of a result, in little memory."""

    pair: tuple[str, str]
    measured: bool
    known: frozenset[str]

    @classmethod
    def of(cls, result: Result) -> _Seen:
        parts = {name: getattr(result, name) for name in set(NEEDS.values())}
        known = {name for name, part in parts.items() if part and part.verdict != "unknown"}
        pair = result.case.producer, result.case.consumer
        return cls(pair, result.status in ("ok", "crashed"), frozenset(known))


def _check(
    expectation: Expectation,
    seen: Sequence[_Seen],
    findings: Sequence[FindingRecord],
    rounds: int,
) -> ExpectationRecord:
    found = any(
        expectation.claims(finding) and expectation.pair.matches(seen[index].pair)
        for finding in findings
        for index in finding.results
        if 0 <= index < len(seen)
    )
    reason = "" if found else _blind(expectation, seen, rounds)
    verdict = UNKNOWN if reason else MISSED if found == expectation.absent else MET
    return ExpectationRecord(text=str(expectation), verdict=verdict, reason=reason)


def _blind(expectation: Expectation, seen: Sequence[_Seen], rounds: int) -> str:
    """Why nothing could have been found; empty where it could."""
    those = [one for one in seen if expectation.pair.matches(one.pair) and one.measured]
    if not those:
        return f"nothing of {expectation.pair} was measured"
    instrument = NEEDS.get(expectation.what)
    if instrument and not any(instrument in one.known for one in those):
        return f"{instrument.replace('_', ' ')} was not measured, or could not be told"
    if rounds == 1 and expectation.what in TIMED:
        return "one process only, so that times cannot be told apart"
    return ""


def _what(word: str) -> str:
    names = {name.lower(): rule.id for rule in RULES for name in (rule.id, rule.name)}
    names |= {severity: severity for severity in SEVERITIES}
    if word.lower() in names:
        return names[word.lower()]
    near = difflib.get_close_matches(word.lower(), names, n=1)
    hint = f"did you mean {names[near[0]]!r}?" if near else "name a rule or a severity"
    raise UsageError(f"there is no rule {word!r}: {hint}")
