"""FINDING on the command line: a number as the report shows it, or a rule."""

from __future__ import annotations

from rich.text import Text

from dlprof.errors import UsageError
from dlprof.reports.terminal import printed
from dlprof.rules import BY_WORD
from dlprof.session.model import FindingRecord, Session
from dlprof.text.clean import clean

NONE = "There are no findings in this session.\n"


def choose(session: Session, word: str | None) -> FindingRecord:
    """The finding that a word names; the worst one without a word.

    Raises :class:`UsageError` where there is none of this number or rule.
    """
    found = session.findings
    rule = BY_WORD.get(word.lower()) if word is not None else None
    for number, finding in enumerate(found, start=1):
        if word is None or word == str(number) or (rule and finding.rule == rule.id):
            return finding
    known = ", ".join(dict.fromkeys(finding.rule for finding in found))
    has = f"it has findings 1 to {len(found)}, of {known}" if found else "it has none"
    raise UsageError(f"the session has no finding {clean(str(word), 40)!r}: {has}")


def listed(session: Session, width: int) -> str:
    """Number, rule and summary of every finding, worst first."""
    lines = [clean(f"{number}. {found.line}") for number, found in enumerate(session.findings, 1)]
    return printed(Text("\n".join(lines)), width) if lines else NONE
