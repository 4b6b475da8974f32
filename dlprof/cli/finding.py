"""FINDING on the command line: a number as the report shows it, or a rule."""

from __future__ import annotations

from rich.text import Text

from dlprof.errors import UsageError
from dlprof.reports.terminal import printed
from dlprof.rules import RULES
from dlprof.session.model import FindingRecord, Session
from dlprof.text.clean import clean

NONE = "There are no findings in this session, and so there is nothing to {do}.\n"


def choose(session: Session, word: str | None) -> FindingRecord:
    """The finding that a word names; the worst one without a word.

    Raises :class:`UsageError` where there is none of this number or rule.
    """
    found = session.findings
    if word is None:
        return found[0]
    if word.isascii() and word.isdigit():
        number = int(word[:9])
        if not 1 <= number <= len(found):
            raise UsageError(f"there is no finding {clean(word, 20)}: {_known(found)}")
        return found[number - 1]
    rules = {name.lower(): rule.id for rule in RULES for name in (rule.id, rule.name)}
    rule = rules.get(word.lower())
    for finding in found:
        if finding.rule == rule:
            return finding
    what = "finds nothing in this session" if rule else "is neither a number nor a rule"
    raise UsageError(f"{clean(word, 40)!r} {what}: {_known(found)}")


def listed(session: Session, width: int) -> str:
    """Number, rule and summary of every finding, worst first."""
    if not session.findings:
        return NONE.format(do="reproduce")
    lines = [
        clean(f"{number}. {found.severity} {found.rule} {found.name}: {found.summary}")
        for number, found in enumerate(session.findings, 1)
    ]
    return printed(Text("\n".join(lines)), width)


def _known(found: list[FindingRecord]) -> str:
    if not found:
        return "the session has no findings"
    rules = ", ".join(dict.fromkeys(clean(finding.rule, 20) for finding in found))
    return f"it has 1 to {len(found)}, of {rules}"
