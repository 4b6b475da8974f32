"""Loading host memory: who owns the result's memory, and what its bytes cost."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from dlprof.quantity import plain_time, significant, size_text
from dlprof.reports.answer import listed
from dlprof.reports.row import Row

MOST_ROWS = 40
LEAST_BYTES = 1 << 20
"""Of fewer bytes the calls cost more than the memory."""
NONE_ARRAYS = 0.05
"""A peak below this share of an array is none: pages of other kinds."""


def compose(rows: Sequence[Row]) -> list[RenderableType]:
    """A block for each source that is plain host memory; empty where there is none."""
    sources: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        if row.size_bytes >= LEAST_BYTES and row.ready is not None:
            key = (_names(row)[0], row.environment, *row.array[1:])
            sources.setdefault(key, []).append(row)
    return [
        part
        for source, group in sources.items()
        if any(_is_plain(row) for row in group)
        for part in _block(source, group)
    ]


def _is_plain(row: Row) -> bool:
    return row.protocol == "buffer" or row.path.startswith("frombuffer->")


def _names(row: Row) -> tuple[str, str]:
    """Producer and consumer."""
    producer, _, consumer = row.frameworks.partition(" → ")
    return producer, consumer


def _block(source: tuple[str, ...], rows: Sequence[Row]) -> list[RenderableType]:
    made = [row.create_ns for row in rows if row.create_ns]
    time = f", made in {plain_time(min(made))}" if made else ""
    where = f" in {rows[0].environment}" if rows[0].environment else ""
    name = f"{source[0]} of {size_text(rows[0].size_bytes)}{where}"
    ordered = sorted(rows, key=lambda row: row.cost_ns)
    parts: list[RenderableType] = [Text(f"\nmemory of {name}{time}:"), _table(ordered[:MOST_ROWS])]
    if len(ordered) > MOST_ROWS:
        parts.append(Text(f"… and {len(ordered) - MOST_ROWS:,} more in the session file"))
    return [*parts, *(Text(sentence) for sentence in sentences(ordered))]


def _table(rows: Sequence[Row]) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), show_edge=False, header_style="dim")
    table.add_column("path", overflow="fold", ratio=1)
    table.add_column("owner", no_wrap=True)
    for title in ("memcpy", "making", "peak"):
        table.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            row.code, owner(row), share_of_memcpy(row), share_of_making(row), peak_text(row)
        )
    return table


def owner(row: Row) -> str:
    """Whose memory the result lies in."""
    producer, consumer = _names(row)
    return {"view": producer, "copy": consumer}.get(row.owner, "?")


def share_of_memcpy(row: Row) -> str:
    """A copy's bandwidth as a share of memcpy's."""
    return "-" if row.share_of_memcpy is None else _percent(row.share_of_memcpy)


def share_of_making(row: Row) -> str:
    """The conversion's time as a share of the time to make its source."""
    return "-" if not row.create_ns else _percent(row.cost_ns / row.create_ns)


def peak_text(row: Row) -> str:
    """Arrays of memory at the peak, beyond the source."""
    if row.peak_arrays is None:
        return "?"
    return "0" if row.peak_arrays < NONE_ARRAYS else f"{row.peak_arrays:.2f}"


def _percent(share: float) -> str:
    return "<0.1 %" if share < 0.001 else f"{significant(100 * share, 2)} %"  # noqa: PLR2004


def sentences(rows: Sequence[Row]) -> list[str]:
    """What is a view and what copies, with the fastest and the hungriest copy."""
    views = [row for row in rows if row.owner == "view"]
    copies = [row for row in rows if row.owner == "copy"]
    found = []
    if views:
        found.append(
            f"Views of the memory of {_names(rows[0])[0]}, which stays its owner:"
            f" {listed([row.code for row in views])}."
        )
    if copies:
        best = copies[0]
        speed = "" if best.gb_per_s is None else f" at {best.gb_per_s:.2g} GB/s"
        share = "" if best.share_of_memcpy is None else f", {share_of_memcpy(best)} of memcpy"
        found.append(f"Of {len(copies)} copies the fastest is {best.code}{speed}{share}.")
    hungry = max(copies, key=lambda row: row.peak_arrays or 0.0, default=None)
    if hungry is not None and hungry.peak_arrays is not None:
        found.append(
            f"The most memory takes {hungry.code}: {peak_text(hungry)} arrays at its peak."
        )
    return found
