"""The verdict in one sentence, and what stands behind it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dlprof.reports.answer import answers
from dlprof.reports.html.entry import Entry
from dlprof.reports.html.meaning import UNSAFE, WRONG, meaning
from dlprof.rules import SEVERITIES
from dlprof.session.model import FindingRecord, Session
from dlprof.text.clean import clean

LONGEST = 600


@dataclass(frozen=True)
class Headline:
    """``verdict`` is ``wrong``, ``warned``, ``clear`` or ``nothing``: the page's mark beside it."""

    verdict: str
    text: str
    lead: tuple[str, ...]


NOTHING = "Nothing could be measured"


def headline(session: Session, everything: Sequence[Entry]) -> Headline:
    """What a reader takes away who reads nothing else."""
    measured = [entry for entry in everything if entry.measured]
    subject = subject_text(everything)
    errors, warnings = (
        _meanings(session.findings, word, len(everything)) for word in SEVERITIES[:2]
    )
    untimed = any(entry.row.status == "ok" for entry in everything)
    if not measured and not (untimed and (errors or warnings)):
        text = "No time until a result is ready is known" if untimed else NOTHING
        return Headline("nothing", text, (_unmeasured(everything),))
    lead = _lead(session, everything)
    if errors or warnings:
        text = f"{subject}: {_said(errors, warnings, everything)}"
        if errors:
            return Headline("wrong", text, lead)
        return Headline("warned", text, (*lead, "No rule found an error."))
    if all(entry.row.is_step for entry in measured):
        steps = number(len(measured), "step")
        text = f"{subject}: {steps} of inference measured; rules are about conversions alone"
        return Headline("clear", text, lead)
    unseen = sum(entry.row.unseen for entry in measured)
    if unseen == len(measured):
        text = f"{subject}: nothing is left behind to look at in {number(unseen, 'measured case')}"
        return Headline("nothing", text, lead)
    known = len(session.findings)
    wasteful = ", unsafe or wasteful" if not known else " or unsafe"
    text = (
        f"{subject}: no rule found anything wrong{wasteful} in"
        f" {number(len(measured), 'measured case')}"
    )
    text += f"; {number(known, 'finding')} worth knowing" if known else ""
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


def _meanings(findings: Sequence[FindingRecord], severity: str, count: int) -> dict[str, set[int]]:
    """The cases of each meaning of a severity, worst first; of ``count`` that there are."""
    found: dict[str, set[int]] = {}
    for one in findings:
        cases = {index for index in one.results if 0 <= index < count}
        if one.severity == severity and cases:
            found.setdefault(meaning(one), set()).update(cases)
    return found


def _said(
    errors: Mapping[str, set[int]], warnings: Mapping[str, set[int]], everything: Sequence[Entry]
) -> str:
    """``wrong or unsafe in 6 of 33 cases, slow for no reason in 8``: errors in one number."""
    wrong = [(_either(errors), set().union(*errors.values()))] if errors else []
    (words, cases), *others = [*wrong, *warnings.items()]
    first = f"{words} in {len(cases):,} of {number(len(everything), 'case')}"
    return ", ".join([first, *(f"{words} in {len(cases):,}" for words, cases in others)])


def _either(meanings: Iterable[str]) -> str:
    """``wrong, unsafe or leaking memory``: values first, then safety."""
    *first, last = sorted(meanings, key=lambda words: (words != WRONG, words != UNSAFE))
    return f"{', '.join(first)} or {last}" if first else last


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
        status = "without a time" if entry.row.status == "ok" else entry.row.status
        counts[status] = counts.get(status, 0) + 1
    words = ", ".join(f"{count:,} {status}" for status, count in counts.items())
    return f"{subject_text(everything)}: {number(len(everything), 'case')}: {words}."
