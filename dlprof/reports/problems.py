"""The findings of a session as problems: one for each rule, worst first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from dlprof.analysis.case_view import CaseView
from dlprof.errors import NoReproducer
from dlprof.evidence.reproducer import reproducer
from dlprof.evidence.rerun_command import rerun_command
from dlprof.reports.document import Lines, Problem, Section, Severity
from dlprof.reports.paths import severity_rank
from dlprof.rules import expected, observations
from dlprof.session.model import FindingRecord, Session
from dlprof.text.lists import listed

MOST_WORDS = 20
MOST_SCRIPTS = 12
"""Problems with a script of their own: a document of a long session stays small."""


def problems_of(session: Session, name: str, scripts: bool = False) -> tuple[Problem, ...]:
    """``name`` is the session in commands; ``scripts`` asks for reproducers, which take time."""
    rules: dict[str, list[FindingRecord]] = defaultdict(list)
    for finding in session.findings:
        rules[finding.rule].append(finding)
    ranked = sorted(rules.values(), key=lambda found: min(map(severity_rank, found)))
    return tuple(
        _problem(session, sorted(found, key=severity_rank), name, scripts and at < MOST_SCRIPTS)
        for at, found in enumerate(ranked)
    )


def findings_section(session: Session) -> tuple[Section, ...]:
    """Each finding with what it costs and what to do, in the order of the session."""
    if not session.findings:
        return ()
    lines = []
    for number, finding in enumerate(session.findings, 1):
        pairs = _pairs_text(session, [finding])
        where = f"{pairs}: " if pairs else ""
        kind = f"{number}. {finding.severity} {finding.rule} {finding.name}:"
        lines.append(f"{kind} {where}{finding.summary}")
        if finding.advice:
            lines.append(f"    {finding.advice}")
    return (Section("Findings", (Lines(tuple(lines)),)),)


def _pairs_text(session: Session, findings: Sequence[FindingRecord]) -> str:
    """The pairs of findings; empty where the session has one pair only."""
    if len({_pair(session, index) for index in range(len(session.results))}) <= 1:
        return ""
    return listed(dict.fromkeys(_pair(session, index) for index in _known(session, findings)))


def _problem(
    session: Session, findings: Sequence[FindingRecord], name: str, script: bool
) -> Problem:
    worst = findings[0]
    indices = _known(session, findings)
    first = session.results[indices[0]] if indices else None
    pairs = _pairs_text(session, findings)
    seen = observations(worst, [session.results[index] for index in indices])
    return Problem(
        worst.rule,
        _severity(worst),
        f"{pairs}: {_sentence(session, findings)}" if pairs else _sentence(session, findings),
        _codes(session, findings),
        " ".join(dict.fromkeys(one.advice for one in findings if one.advice)),
        (*(one.summary for one in findings), *seen),
        expected(worst, first) if first is not None else "",
        _script(session, worst) if script else "",
        _commands(session, worst, name),
    )


def _commands(session: Session, finding: FindingRecord, name: str) -> tuple[str, ...]:
    """What explains the rule, reports the finding, and measures its cases again."""
    cases = [CaseView(index, session.results[index]) for index in _known(session, [finding])]
    at = finding.against
    known = at is not None and 0 <= at < len(session.results)
    against = CaseView(at, session.results[at]) if at is not None and known else None
    again = rerun_command(cases, session, against, finding.rule)
    return (
        f"dlprof explain {finding.rule}",
        f"dlprof ticket {name} {finding.rule}",
        *([again] if again else []),
    )


def _sentence(session: Session, findings: Sequence[FindingRecord]) -> str:
    """The headline of the worst, and how many more paths the others are about.

    Of a session that was written before there were headlines it is the beginning of its summary.
    """
    worst = findings[0]
    words = worst.summary.split()
    cut = " ".join(words[:MOST_WORDS]) + (" …" if len(words) > MOST_WORDS else "")
    told = _codes(session, [worst])
    more = len(set(_codes(session, findings)) - set(told))
    return (worst.headline or cut) + (f" (+{more} paths)" if more else "")


def _codes(session: Session, findings: Sequence[FindingRecord]) -> tuple[str, ...]:
    indices = _known(session, findings)
    return tuple(dict.fromkeys(session.results[index].case.code for index in indices))


def _severity(finding: FindingRecord) -> Severity:
    known: dict[str, Severity] = {"error": "error", "warning": "warning"}
    return known.get(finding.severity, "info")


def _script(session: Session, finding: FindingRecord) -> str:
    try:
        return reproducer(session, finding).text
    except NoReproducer:
        return ""


def _known(session: Session, findings: Iterable[FindingRecord]) -> list[int]:
    """The results that the findings name, as far as the session has them."""
    indices = (index for finding in findings for index in finding.results)
    return [index for index in dict.fromkeys(indices) if 0 <= index < len(session.results)]


def _pair(session: Session, index: int) -> str:
    case = session.results[index].case
    return f"{case.producer} → {case.consumer}"
