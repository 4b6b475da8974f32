"""What the first conversion of a process costs: a line for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from dlprof.analysis.quantity import plain_time
from dlprof.reports.row import Row

MOST = 4


def compose(rows: Sequence[Row]) -> list[Text]:
    """The longest first calls, and of how many paths none is known; nothing for several arrays."""
    measured = [row for row in rows if row.ready is not None]
    known = sorted(
        ((row.first_ns, row.code) for row in measured if row.first_ns is not None), reverse=True
    )
    if not known or len({row.array for row in measured}) > 1:
        return []
    times = ", ".join(f"{plain_time(time_ns)} {code}" for time_ns, code in known[:MOST])
    text = f"first call of a process: {times}{_rest(len(known), len(measured))}"
    return [Text(text)]


def _rest(known: int, measured: int) -> str:
    more = f", {known - MOST} more in the session" if known > MOST else ""
    unknown = measured - known
    if not unknown:
        return more
    paths = "path was" if unknown == 1 else "paths were"
    return f"{more} ({unknown} {paths} first in no process; see --first-calls)"
