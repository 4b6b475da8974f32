"""What the marks of a table of paths mean, of which paths."""

from __future__ import annotations

from collections.abc import Sequence

from dlprof.reports import faults
from dlprof.reports.cell_text import WHY_DISTURBED, WHY_SCATTERED
from dlprof.reports.row import Row
from dlprof.text.lists import listed


def footnotes(measured: Sequence[Row]) -> list[str]:
    """What the star of a result means, of which paths, where it means several things; which times
    are disturbed or scattered; and what a mark of torn copies means.
    """
    paths: dict[str, list[str]] = {}
    for row in measured:
        if row.depends:
            paths.setdefault(row.depends, []).append(row.code)
    disturbed = [row.code for row in measured if row.disturbed]
    scattered = [row.code for row in measured if row.scattered and not row.disturbed]
    lines = [
        f"{why}: {listed(codes)}"
        for why, codes in ((WHY_DISTURBED, disturbed), (WHY_SCATTERED, scattered))
        if codes
    ]
    lines += faults.notes(measured)
    if len(paths) == 1:
        return [*(f"* {depends}" for depends in paths), *lines]
    return [*(f"* {depends}: {listed(codes)}" for depends, codes in paths.items()), *lines]
