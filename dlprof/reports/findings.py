"""Findings as text: worst first, what was found, and what to write instead."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.text import Text

from dlprof.reports.row import Row
from dlprof.session.model import FindingRecord
from dlprof.text.clean import clean
from dlprof.text.lists import listed

MOST = 12
ARROW = " → "
STYLES = {"error": "red", "warning": "yellow", "info": "cyan"}


def compose(findings: Sequence[FindingRecord], rows: Sequence[Row] = ()) -> list[RenderableType]:
    """One paragraph for each finding, and how many more there are.

    With the ``rows`` of all results, a finding is told with its pairs where there are several.
    """
    if not findings:
        return [Text("\nno findings", style="dim")]
    parts: list[RenderableType] = [Text("\nfindings, worst first:", style="dim")]
    told: dict[str, int] = {}
    for number, finding in enumerate(findings[:MOST], 1):
        first = told.setdefault(finding.advice, number)
        advice = finding.advice if first == number else f"What to do: as for {first}."
        parts.append(_paragraph(number, finding, pairs_text(finding, rows), advice))
    if len(findings) > MOST:
        parts.append(Text(f"… and {len(findings) - MOST:,} more in the session file"))
    return parts


def pairs_text(finding: FindingRecord, rows: Sequence[Row]) -> str:
    """``numpy, torch → jax``: the pairs of a finding; empty where all rows are of one pair."""
    if len({row.frameworks for row in rows}) < 2:  # noqa: PLR2004 - several
        return ""
    known = (rows[index].frameworks for index in finding.results if 0 <= index < len(rows))
    found = list(dict.fromkeys(known))
    producers = list(dict.fromkeys(pair.partition(ARROW)[0] for pair in found))
    consumers = list(dict.fromkeys(pair.partition(ARROW)[2] for pair in found))
    if len(producers) * len(consumers) == len(found):  # each of these with each of those
        return ARROW.join(filter(None, (listed(producers), listed(consumers))))
    return listed(found)


def _paragraph(number: int, finding: FindingRecord, pairs: str, advice: str) -> Text:
    text = Text(f"{number}. ")
    text.append(
        f"{clean(finding.severity)} {clean(finding.rule)} {clean(finding.name)}",
        style=STYLES.get(finding.severity, ""),
    )
    text.append(f"  {pairs}: " if pairs else "  ")
    text.append(clean(finding.summary))
    if finding.advice:
        text.append(f"\n    {clean(advice)}")
    return text
