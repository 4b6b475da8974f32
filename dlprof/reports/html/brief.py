"""The findings that have no card: a line each, and counted where there are more than lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from dlprof.reports.html.cards import MOST_CARDS, named, severity_of
from dlprof.reports.html.entry import Entry
from dlprof.session.model import FindingRecord, Session
from dlprof.text.clean import clean

MOST_LINES = 1000
LONGEST = 200


@dataclass(frozen=True)
class Line:
    """``entry`` is the clearest case; ``others`` counts the rest of them."""

    number: int
    severity: str
    rule: str
    summary: str
    entry: Entry | None
    others: int


@dataclass(frozen=True)
class Brief:
    """``counted`` are severity, rule and number of those that have no line either."""

    lines: tuple[Line, ...]
    counted: tuple[tuple[str, str, int], ...]
    count: int


def brief(session: Session, everything: Sequence[Entry]) -> Brief:
    """All findings after those with a card: nothing is left untold."""
    rest = session.findings[MOST_CARDS:]
    lines = tuple(
        _line(number, finding, everything)
        for number, finding in enumerate(rest[:MOST_LINES], start=MOST_CARDS + 1)
    )
    kinds = Counter((severity_of(one), _rule(one)) for one in rest[MOST_LINES:])
    counted = tuple((severity, rule, count) for (severity, rule), count in kinds.items())
    return Brief(lines, counted, len(rest))


def _line(number: int, finding: FindingRecord, everything: Sequence[Entry]) -> Line:
    of = named(finding.results, everything)
    return Line(
        number=number,
        severity=severity_of(finding),
        rule=_rule(finding),
        summary=clean(finding.summary, LONGEST),
        entry=of[0] if of else None,
        others=max(len(of) - 1, 0),
    )


def _rule(finding: FindingRecord) -> str:
    return clean(f"{finding.rule} {finding.name}", 60)
