"""Findings as text: worst first, what was found, and what to write instead."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.text import Text

from dlprof.clean import clean
from dlprof.session import FindingRecord

MOST = 12
STYLES = {"error": "red", "warning": "yellow", "info": "cyan"}


def compose(findings: Sequence[FindingRecord]) -> list[RenderableType]:
    """One paragraph for each finding, and how many more there are."""
    if not findings:
        return [Text("\nno findings", style="dim")]
    parts: list[RenderableType] = [Text("\nfindings, worst first:", style="dim")]
    parts += [_paragraph(number, finding) for number, finding in enumerate(findings[:MOST], 1)]
    if len(findings) > MOST:
        parts.append(Text(f"… and {len(findings) - MOST:,} more in the session file"))
    return parts


def _paragraph(number: int, finding: FindingRecord) -> Text:
    text = Text(f"{number}. ")
    text.append(
        f"{clean(finding.severity)} {clean(finding.rule)} {clean(finding.name)}",
        style=STYLES.get(finding.severity, ""),
    )
    text.append(f"  {clean(finding.summary)}")
    if finding.advice:
        text.append(f"\n    {clean(finding.advice)}")
    return text
