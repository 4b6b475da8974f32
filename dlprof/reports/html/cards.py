"""Findings as cards: the claim, what to do, what should be, how sure it is, how to see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from dlprof.analysis.case_view import CaseView
from dlprof.analysis.owner_times import owner_times_text
from dlprof.analysis.quantity import time_text
from dlprof.errors import NoReproducer
from dlprof.evidence.reproducer import reproducer
from dlprof.evidence.rerun_command import rerun_command
from dlprof.reports.cell_text import fault_text
from dlprof.reports.html import evidence, rule_page
from dlprof.reports.html.entry import Entry
from dlprof.reports.html.figure import array_text
from dlprof.reports.html.meaning import meaning
from dlprof.reports.html.told import coded, markdown
from dlprof.rules import SEVERITIES, expected, observations
from dlprof.session.model import FindingRecord, Session
from dlprof.text.clean import clean

LONGEST = 1200
FEW = 5
MOST_PAIRS = 2
MOST_CASES = 100
"""Cases that a card lists; the session has the others."""
MOST_CARDS = 100
"""Findings with a card of their own; the rest stands in :mod:`dlprof.reports.html.brief`."""
MOST_SCRIPTS = 12
"""Findings that have their reproducer on the page, so that a long session's page stays small."""
NO_ADVICE = "dlprof has no advice."


@dataclass(frozen=True)
class Case:
    """A case that a finding is of, in words."""

    entry: Entry
    array: str
    ready: str
    owner: str
    status: str


@dataclass(frozen=True)
class Card:
    """``number`` counts from 1, in the order of the session. ``pairs`` are those of its cases.

    ``expected`` is what should be, with its source; ``witnesses`` what each process saw;
    ``timed`` how often the times beside it were taken.
    """

    number: int
    severity: str
    meaning: str
    rule: str
    name: str
    pairs: str
    summary: Markup
    advice: Markup
    expected: Markup
    evidence: list[tuple[str, str]]
    witnesses: list[str]
    timed: str
    cases: list[Case]
    more: list[Case]
    left: int
    against: Case | None
    again: str | None
    script: str | None
    about: tuple[rule_page.Part, ...]


def cards(session: Session, everything: Sequence[Entry]) -> list[Card]:
    """One for each of the worst findings, in the session's order: worst first.

    A rule is explained once, at its first finding.
    """
    explained: set[str] = set()
    found = []
    codes = codes_by_pair(everything)
    for number, finding in enumerate(session.findings[:MOST_CARDS], start=1):
        explain = finding.rule not in explained
        found.append(_card(number, finding, session, everything, codes, explain))
        explained.add(finding.rule)
    return found


def _listed(pairs: Sequence[str]) -> str:
    """The first of them, and how many more."""
    more = len(pairs) - MOST_PAIRS
    return ", ".join(pairs[:MOST_PAIRS]) + (f" and {more} more" if more > 0 else "")


def codes_by_pair(everything: Sequence[Entry]) -> dict[str, list[str]]:
    """The ways of each pair: what a finding's words may name."""
    found: dict[str, dict[str, None]] = {}
    for entry in everything:
        found.setdefault(entry.row.pair, {})[entry.row.code] = None
    return {pair: list(codes) for pair, codes in found.items()}


def _card(
    number: int,
    finding: FindingRecord,
    session: Session,
    everything: Sequence[Entry],
    codes_of: Mapping[str, Sequence[str]],
    explain: bool,
) -> Card:
    of = named(finding.results, everything)
    against = next(iter(named([finding.against], everything)), None)
    pairs = list(dict.fromkeys(entry.row.pair for entry in of))
    others = [against.row.pair] if against else []
    codes = [code for pair in (*pairs[:FEW], *others) for code in codes_of[pair]]
    cases = [_case(entry) for entry in of[:MOST_CASES]]
    return Card(
        number=number,
        severity=severity_of(finding),
        meaning=meaning(finding),
        rule=clean(finding.rule, 60),
        name=clean(finding.name, 60),
        pairs=_listed(pairs),
        summary=coded(clean(finding.summary, LONGEST), codes),
        advice=coded(clean(finding.advice, LONGEST) or NO_ADVICE, codes),
        expected=markdown(expected(finding, of[0].result)) if of else Markup(),
        evidence=evidence.lines(finding.evidence),
        witnesses=observations(
            finding, [entry.result for entry in of[:1]], against.result if against else None
        ),
        timed=timed_text(of),
        cases=cases[:FEW],
        more=cases[FEW:],
        left=len(of) - len(cases),
        against=_case(against) if against else None,
        again=rerun_command(
            [_view(entry) for entry in of],
            session,
            _view(against) if against else None,
            finding.rule,
        ),
        script=_script(session, finding) if number <= MOST_SCRIPTS else None,
        about=rule_page.parts(finding.rule) if explain else (),
    )


def _view(entry: Entry) -> CaseView:
    return CaseView(entry.index, entry.result)


def named(indices: Sequence[int | None], everything: Sequence[Entry]) -> list[Entry]:
    """The cases of these places in the session; a place that it does not have is none."""
    return [everything[i] for i in indices if i is not None and 0 <= i < len(everything)]


def severity_of(finding: FindingRecord) -> str:
    return finding.severity if finding.severity in SEVERITIES else "info"


def _script(session: Session, finding: FindingRecord) -> str | None:
    """The reproducer; None where none can be made of this session."""
    try:
        lines = reproducer(session, finding).text.splitlines()
    except NoReproducer:
        return None
    return "\n".join(clean(line, LONGEST) for line in lines)


def _case(entry: Entry) -> Case:
    row = entry.row
    return Case(
        entry,
        f"{row.pair} {array_text(entry)}",
        time_text(row.ready, row.process_medians_ns),
        ": ".join(filter(None, (row.owner, owner_times_text(entry.result)))),
        fault_text(row),
    )


def timed_text(of: Sequence[Entry]) -> str:
    """How often it was timed, in words: processes are what repeats, not calls."""
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
