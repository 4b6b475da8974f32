"""Findings as cards: the claim, what proves it, how sure it is, what to write instead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dlprof.clean import clean
from dlprof.errors import NoReproducer
from dlprof.quantity import time_text
from dlprof.reports.html import again, evidence, rule_page
from dlprof.reports.html.entry import Entry
from dlprof.reports.html.figure import array_text
from dlprof.repro import reproducer
from dlprof.rules import SEVERITIES
from dlprof.session import FindingRecord, Session

LONGEST = 1200
FEW = 5
MOST_SCRIPTS = 12
"""Findings that have their reproducer on the page, so that a long session's page stays small."""
DIAGNOSED = frozenset(("DLP001", "DLP002", "DLP003", "DLP005", "DLP010", "DLP011", "DLP020"))
"""Rules on ordering, peak memory, lifetime and early writes."""
DIAGNOSIS = "The verdict was seen once, in a process of its own, at the first shape of each path."
MEANING = {
    "error": "wrong or unsafe",
    "warning": "slow for no reason",
    "info": "worth knowing",
}


@dataclass(frozen=True)
class Case:
    """A case that a finding is of, in words."""

    entry: Entry
    array: str
    ready: str


@dataclass(frozen=True)
class Card:
    """``number`` counts from 1, in the order of the session."""

    number: int
    severity: str
    meaning: str
    rule: str
    name: str
    summary: str
    advice: str
    evidence: list[tuple[str, str]]
    sure: str
    cases: list[Case]
    more: list[Case]
    again: str | None
    script: str | None
    about: tuple[rule_page.Part, ...]


def cards(session: Session, everything: Sequence[Entry]) -> list[Card]:
    """One for each finding, in the session's order: worst first.

    A rule is explained once, at its first finding.
    """
    explained: set[str] = set()
    found = []
    for number, finding in enumerate(session.findings, start=1):
        found.append(_card(number, finding, session, everything, finding.rule not in explained))
        explained.add(finding.rule)
    return found


def _card(
    number: int,
    finding: FindingRecord,
    session: Session,
    everything: Sequence[Entry],
    explain: bool,
) -> Card:
    of = [everything[index] for index in finding.results if 0 <= index < len(everything)]
    cases = [_case(entry) for entry in of]
    return Card(
        number=number,
        severity=finding.severity if finding.severity in SEVERITIES else "info",
        meaning=MEANING.get(finding.severity, clean(finding.severity, 60)),
        rule=clean(finding.rule, 60),
        name=clean(finding.name, 60),
        summary=clean(finding.summary, LONGEST),
        advice=clean(finding.advice, LONGEST),
        evidence=evidence.lines(finding.evidence),
        sure=sure_text(of, finding.rule),
        cases=cases[:FEW],
        more=cases[FEW:],
        again=again.command(of, session.request),
        script=_script(session, finding) if number <= MOST_SCRIPTS else None,
        about=rule_page.parts(finding.rule) if explain else (),
    )


def _script(session: Session, finding: FindingRecord) -> str | None:
    """The reproducer; None where none can be made of this session."""
    try:
        lines = reproducer(session, finding).text.splitlines()
    except NoReproducer:
        return None
    return "\n".join(clean(line, LONGEST) for line in lines)


def _case(entry: Entry) -> Case:
    row = entry.row
    return Case(entry, array_text(entry), time_text(row.ready, row.process_medians_ns))


def sure_text(of: Sequence[Entry], rule: str) -> str:
    """How often it was measured, in words: processes are what repeats, not calls."""
    if rule in DIAGNOSED and of:
        return f"{DIAGNOSIS} {_timed_text(of)}"
    return _timed_text(of)


def _timed_text(of: Sequence[Entry]) -> str:
    if not of:
        return "The finding names no case of this session."
    counts = {len(entry.result.rounds) for entry in of if entry.measured}
    if not counts:
        return "No time was measured of these cases; their status and reason are what is known."
    fewest, most = min(counts), max(counts)
    if most <= 1:
        return (
            "Timed in one process: nothing was repeated, so no interval is known."
            " Times with ~ may differ in the next process; verdicts are what this one saw."
        )
    times = str(fewest) if fewest == most else f"{fewest} to {most}"
    return f"Timed in {times} fresh processes each; ± is half a 95 % interval over them."
