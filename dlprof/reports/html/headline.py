"""The verdict in one sentence, and what stands behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dlprof.clean import clean
from dlprof.reports.answer import answers
from dlprof.reports.html.entry import Entry
from dlprof.rules import SEVERITIES
from dlprof.session import FindingRecord, Session

LONGEST = 600


@dataclass(frozen=True)
class Headline:
    """``verdict`` is ``wrong``, ``slow``, ``clear`` or ``nothing``: the page's mark beside it."""

    verdict: str
    text: str
    lead: tuple[str, ...]


def headline(session: Session, everything: Sequence[Entry]) -> Headline:
    """What a reader takes away who reads nothing else."""
    measured = [entry for entry in everything if entry.measured]
    subject = subject_text(everything)
    if not measured:
        return Headline("nothing", "Nothing could be measured", (_unmeasured(everything),))
    errors, warnings = (_cases(session.findings, word) for word in SEVERITIES[:2])
    lead = _lead(session, everything)
    if errors:
        text = f"{subject}: wrong or unsafe in {cases_text(errors, everything)}"
        if warnings:
            text += f", slow for no reason in {len(warnings):,}"
        return Headline("wrong", text, lead)
    if warnings:
        text = f"{subject}: slow for no reason in {cases_text(warnings, everything)}"
        return Headline("slow", text, (*lead, "No rule found anything wrong or unsafe."))
    if all(entry.row.is_step for entry in measured):
        steps = number(len(measured), "step")
        text = f"{subject}: {steps} of inference measured; rules are about conversions alone"
        return Headline("clear", text, lead)
    unseen = sum(entry.row.unseen for entry in measured)
    if unseen == len(measured):
        text = f"{subject}: nothing is left behind to look at in {number(unseen, 'measured case')}"
        return Headline("nothing", text, lead)
    text = (
        f"{subject}: no rule found anything wrong or slow for no reason in"
        f" {number(len(measured), 'measured case')}"
    )
    return Headline("clear", text + (f"; nothing to look at in {unseen:,}" if unseen else ""), lead)


def subject_text(everything: Sequence[Entry]) -> str:
    """``torch → numpy``, or how many pairs there are."""
    pairs = list(dict.fromkeys(entry.row.pair for entry in everything))
    if len(pairs) == 1:
        return pairs[0]
    if everything and all(entry.row.is_step for entry in everything):
        return f"{len(pairs):,} models"
    return f"{len(pairs):,} pairs of frameworks"


def number(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def cases_text(found: set[int], everything: Sequence[Entry]) -> str:
    return f"{len(found):,} of {number(len(everything), 'case')}"


def _cases(findings: Sequence[FindingRecord], severity: str) -> set[int]:
    return {index for found in findings if found.severity == severity for index in found.results}


def _lead(session: Session, everything: Sequence[Entry]) -> tuple[str, ...]:
    """The worst finding, unless it is only worth knowing; the answer, where there is one."""
    lines = []
    worst = session.findings[0] if session.findings else None
    if worst is not None and worst.severity in SEVERITIES[:2]:
        lines.append(f"Worst: {_where(worst, everything)}{clean(worst.summary, LONGEST)}.")
    found = answers(entry.row for entry in everything)
    if len(found) == 1:
        lines.append(found[0][:1].upper() + found[0][1:])
    return tuple(lines)


def _where(worst: FindingRecord, everything: Sequence[Entry]) -> str:
    """The pair, where there are several: the claim alone does not say whose array ``x`` is."""
    if len({entry.row.pair for entry in everything}) == 1:
        return ""
    first = next((i for i in worst.results if 0 <= i < len(everything)), None)
    return "" if first is None else f"{everything[first].row.pair}: "


def _unmeasured(everything: Sequence[Entry]) -> str:
    if not everything:
        return "This session holds no results."
    counts: dict[str, int] = {}
    for entry in everything:
        counts[entry.row.status] = counts.get(entry.row.status, 0) + 1
    words = ", ".join(f"{count:,} {status}" for status, count in counts.items())
    return f"{subject_text(everything)}: {number(len(everything), 'case')}: {words}."
