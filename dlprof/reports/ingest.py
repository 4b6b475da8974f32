"""Loading host memory: who owns the result's memory, and what its bytes cost."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from dlprof.analysis.quantity import plain_time, significant, size_text
from dlprof.reports.cell_text import in_modes, told_speed, told_time
from dlprof.reports.row import Row
from dlprof.text.lists import listed

MOST_ROWS = 40
LEAST_BYTES = 1 << 20
"""Of fewer bytes the calls cost more than the memory."""
FEW_COPIES = 6
NONE_ARRAYS = 0.05
"""A peak below this share of an array is none: pages of other kinds."""


def compose(rows: Sequence[Row]) -> list[RenderableType]:
    """A block for each source that is plain host memory; empty where there is none."""
    return [
        part
        for source, group in _sources(rows).items()
        if any(_is_plain(row) for row in group)
        for part in _block(source, group)
    ]


def blocks(rows: Sequence[Row]) -> list[RenderableType]:
    """A block for each source, plain memory or not, with the times; for a report of its own."""
    return [
        part
        for source, group in _sources(rows).items()
        for part in _block(source, group, timed=True)
    ]


def _sources(rows: Sequence[Row]) -> dict[tuple[str, ...], list[Row]]:
    sources: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        if row.size_bytes >= LEAST_BYTES and row.ready is not None:
            key = (_names(row)[0], row.environment, *row.array[1:])
            sources.setdefault(key, []).append(row)
    return sources


def _is_plain(row: Row) -> bool:
    return row.protocol == "buffer" or row.path.startswith("frombuffer->")


def _names(row: Row) -> tuple[str, str]:
    """Producer and consumer."""
    producer, _, consumer = row.frameworks.partition(" → ")
    return producer, consumer


def _block(
    source: tuple[str, ...], rows: Sequence[Row], timed: bool = False
) -> list[RenderableType]:
    made = [row.create_ns for row in rows if row.create_ns]
    time = f", made in {plain_time(min(made))}" if made else ""
    where = f" in {rows[0].environment}" if rows[0].environment else ""
    name = f"{source[0]} of {size_text(rows[0].size_bytes)}{where}"
    ordered = sorted(rows, key=lambda row: row.cost_ns)
    table = _table(ordered[:MOST_ROWS], timed, min(made, default=None))
    parts: list[RenderableType] = [Text(f"\nmemory of {name}{time}:"), table]
    if len(ordered) > MOST_ROWS:
        parts.append(Text(f"… and {len(ordered) - MOST_ROWS:,} more in the session file"))
    return [*parts, *(Text(sentence) for sentence in (*_footnote(ordered), *sentences(ordered)))]


def _footnote(rows: Sequence[Row]) -> list[str]:
    changes = dict.fromkeys(other for row in rows if row.share_of_memcpy and (other := _dtype(row)))
    if not changes:
        return []
    return [
        f"* of a result of another dtype ({', '.join(changes)}): memcpy moved the source's bytes"
    ]


def _table(rows: Sequence[Row], timed: bool, made_ns: float | None) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), show_edge=False, header_style="dim")
    table.add_column("path", overflow="fold", ratio=1)
    if timed:
        table.add_column("ready", justify="right", no_wrap=True)
    table.add_column("owner", no_wrap=True)
    for title in ("memcpy", "making", "peak"):
        table.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        making = share_of_making(row, made_ns)
        cells = [owner(row), share_of_memcpy(row), making, peak_text(row)]
        ready = [told_time(row)] if timed else []
        table.add_row(row.code, *ready, *cells)
    return table


def owner(row: Row) -> str:
    """Whose memory the result lies in."""
    producer, consumer = _names(row)
    return {"view": producer, "copy": consumer}.get(row.owner, "?")


def share_of_memcpy(row: Row) -> str:
    """A copy's bandwidth as a share of memcpy's; with a star where the result has another dtype."""
    if row.share_of_memcpy is None or not row.is_known:
        return "-"
    shares = " | ".join(map(_percent, in_modes(row, row.share_of_memcpy)))
    return shares + ("*" if _dtype(row) else "")


def _dtype(row: Row) -> str:
    """The change of dtype, in words; empty where there is none."""
    return next((change for change in row.changed if change.startswith(f"{row.dtype} to ")), "")


def share_of_making(row: Row, made_ns: float | None) -> str:
    """The conversion's time as a share of ``made_ns``, the time to make such a source; nothing of
    a time that is not known.
    """
    return "-" if not made_ns or not row.is_known else _percent(row.cost_ns / made_ns)


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
        found.append(_fastest(copies))
    hungry = max(copies, key=lambda row: row.peak_arrays or 0.0, default=None)
    if hungry is not None and hungry.peak_arrays is not None:
        found.append(
            f"The most memory takes {hungry.code}: {peak_text(hungry)} arrays at its peak."
        )
    return found


def _fastest(copies: Sequence[Row]) -> str:
    """The fastest of ``copies``, which are sorted; and of which of them that is.

    One that was asked not to copy is nothing to go by, nor is a time that is not known.
    """
    many = "1 copy" if len(copies) == 1 else f"{len(copies)} copies"
    known = [row for row in copies if row.is_known]
    if not known:
        return f"Of {many} no time is known."
    best = next((row for row in known if not row.forbids_copy), known[0])
    among = {
        "that does not forbid a copy": known[0] is not best,
        "whose time is known": len(known) < len(copies),
    }
    which = " and ".join(word for word, left_out in among.items() if left_out)
    which = f" {which}" if which else ""
    wrong = f", and not right: {', '.join(best.changed)}" if best.changed else ""
    return f"Of {many} the fastest{which} is {best.code}{_speed(best)}{wrong}."


def _speed(row: Row) -> str:
    """Its bandwidth, and the share of memcpy's; nothing where its time is not known."""
    speed, share = told_speed(row), share_of_memcpy(row)
    told = f" at {speed}" if speed else ""
    return told if share == "-" else f"{told}, {share} of memcpy"


def answer(rows: Sequence[Row]) -> str:
    """What is a view, what copies and at what cost, and what was not tried; a line each.

    Where there are several environments, each line says of which it is.
    """
    names = list(dict.fromkeys(row.environment for row in rows))
    if len(names) <= 1:
        return "\n".join(_answer(rows))
    return "\n".join(
        f"{name}: {line}"
        for name in names
        for line in _answer([row for row in rows if row.environment == name])
    )


def _answer(rows: Sequence[Row]) -> list[str]:
    measured = [row for row in rows if row.ready is not None and row.size_bytes >= LEAST_BYTES]
    if not measured:
        return ["No array of a mebibyte or more was taken in.", *_missed(rows)]
    views = [row for row in measured if row.owner == "view"]
    copies = sorted((row for row in measured if row.owner == "copy"), key=lambda row: row.cost_ns)
    share = f"{len(views)} {'is a view' if len(views) == 1 else 'are views'}"
    rest = f"{len(copies)} {'copies' if len(copies) == 1 else 'copy'}"
    unknown = len(measured) - len(views) - len(copies)
    other = f"; of {unknown} it varies or is not known" if unknown else ""
    lines = [f"Of {len(measured)} ways in, {share} and {rest}{other}."]
    lines += [_views_text(views)] if views else []
    return [*lines, *(f"{_copy_text(row)}." for row in _named(copies)), *_missed(rows)]


def _views_text(views: Sequence[Row]) -> str:
    """The slowest view as its table writes it, and the memory of those whose peak was measured."""
    known = [row for row in views if row.is_known] or views
    slowest = max(known, key=lambda row: row.cost_ns)
    which = " whose time is known" if slowest is not max(views, key=_cost) else ""
    peaks = [row.peak_arrays for row in views if row.peak_arrays is not None]
    most = max(peaks, default=None)
    if most is None:
        memory = "What views add to memory was not measured"
    elif most < NONE_ARRAYS:
        of = "" if len(peaks) == len(views) else f" of the {len(peaks)} that were looked at"
        memory = f"A view{of} adds no memory"
    else:
        memory = f"The views add up to {most:.2f} arrays of memory"
    codes = listed(list(dict.fromkeys(row.code for row in views)))
    return f"{memory}; the slowest{which} takes {told_time(slowest)}: {codes}."


def _cost(row: Row) -> float:
    return row.cost_ns


def _named(copies: Sequence[Row]) -> list[Row]:
    """All of a few; of many right ones the fastest, the slowest, and the hungriest."""
    if len(copies) <= FEW_COPIES:
        return list(copies)
    right = [row for row in copies if not row.changed] or copies
    hungry = max(right, key=lambda row: row.peak_arrays or 0.0)
    return list({id(row): row for row in (right[0], right[-1], hungry)}.values())


def _copy_text(row: Row) -> str:
    peak = "" if row.peak_arrays is None else f", {peak_text(row)} arrays of memory at its peak"
    where = f"{_names(row)[0]} of {size_text(row.size_bytes)}"
    wrong = f"; it is not right: {', '.join(row.changed)}" if row.changed else ""
    return f"{row.code}, {where}: a copy in {told_time(row)}{_speed(row)}{peak}{wrong}"


def _missed(rows: Sequence[Row]) -> list[str]:
    """Large arrays that were not taken in, for want of memory."""
    skipped = [row for row in rows if row.status == "skipped" and row.ready is None]
    told = [f"{row.code} was not tried: {_why(row)}." for row in skipped[:FEW_COPIES]]
    more = len(skipped) - FEW_COPIES
    return [*told, *([f"{more:,} more were not tried."] if more > 0 else [])]


def _why(row: Row) -> str:
    reason = row.reason or "no reason given"
    return f"it {reason}" if reason.startswith("needs ") else reason
