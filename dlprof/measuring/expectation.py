"""What a scenario expects to be found: ``DLP001 on tf->*``, ``no error on torch->numpy``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dlprof.errors import FindingsFailed, FindingsUnknown, UsageError
from dlprof.judge import BY_ID, BY_WORD, RULES, WRITTEN
from dlprof.judge.cost import lacks_direction
from dlprof.judge.rule import NAME_ONE, SEVERITIES
from dlprof.measuring.pairs import PairPattern
from dlprof.measuring.pairs import parse as parse_pair
from dlprof.runner.session import ExpectationRecord, FindingRecord, Header, Result
from dlprof.text.clean import first_line, nearest

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
    """Why nothing could have been found; empty where it could.

    A crash that is a finding is one; another, such as one of an import, says nothing of the pair.
    What a faulty probe did not try may be anything.
    """
    for one in seen:
        if one.is_of_faulty_probe and expectation.pair.matches(one.case.pair):
            return f"{'->'.join(one.case.pair)}: {first_line(one.reason)}"
    measured = [one for one in seen if one.status == "ok"]
    those = [one for one in measured if expectation.pair.matches(one.case.pair)]
    if not those:
        return f"nothing of {expectation.pair} was measured"
    lost = {one.case.pair for one in seen if one.status not in ("ok", "unsupported")}
    for pair in sorted(lost - {one.case.pair for one in those}):
        if expectation.pair.matches(pair):
            return f"nothing of {'->'.join(pair)} was measured"
    if lack := _untold(expectation, seen, measured, those):
        return lack
    if rounds == 1 and expectation.what in TIMED:
        return "one process only, so that times cannot be told apart"
    return ""


def _untold(
    expectation: Expectation,
    seen: Sequence[Result],
    measured: Sequence[Result],
    those: Sequence[Result],
) -> str:
    """Why the rule of the expectation could not tell of each of its conversions."""
    rule = BY_ID.get(expectation.what)
    if rule is None:
        return ""
    back = [one for one in measured if expectation.pair.matches(one.case.pair[::-1])]
    lack = rule.lack([*those, *back] if rule.lacks is lacks_direction else those)
    if lack:
        return f"not measured: {lack}"
    unknown = rule.unknown([one for one in seen if expectation.pair.matches(one.case.pair)])
    return str(unknown) if unknown.conversions else ""


def raise_for(header: Header, verdict: str) -> None:
    """Raise :class:`FindingsFailed` or :class:`FindingsUnknown` for such verdicts."""
    found = [one.text for one in header.expectations if one.verdict == verdict]
    if found:
        kind = FindingsFailed if verdict == MISSED else FindingsUnknown
        raise kind(f"expectation {verdict}: {'; '.join(found)}")


def _what(word: str) -> str:
    if word.lower() in SEVERITIES:
        return word.lower()
    if word.lower() in BY_WORD:
        return BY_WORD[word.lower()].id
    hint = nearest(word, (*WRITTEN, *SEVERITIES), NAME_ONE)
    raise UsageError(f"there is no rule {word!r}: {hint}")
