"""Conversions in loops: a table of times per iteration, and the sentences that answer."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from dlprof.clean import clean, first_line
from dlprof.quantity import plain_time, ratio_text, time_text
from dlprof.reports.answer import listed
from dlprof.reports.row import Row
from dlprof.session import Placement, Share, TimeMeasure

MOST_ROWS = 30
ITERATIONS = 1000
LONGEST_USE = 100
WIDEST_SHARE = 0.25
"""A share whose interval reaches further to either side is not written as a number."""


def compose(rows: Sequence[Row]) -> list[RenderableType]:
    """A block for each array and operation; empty where no placement was asked for."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        if row.placement is not None:
            key = (*row.array, clean(row.placement.use or "", LONGEST_USE))
            groups.setdefault(key, []).append(row)
    arrays = len({row.array for row in rows})
    return [part for group in groups.values() for part in _block(group, several=arrays > 1)]


def _block(rows: Sequence[Row], several: bool) -> list[RenderableType]:
    where = f" ({' '.join(rows[0].array)})" if several else ""
    use = _use(rows[0])
    if not use:
        return [Text(f"\nno loop could be measured{where}: {_refusal(rows)}")]
    parts: list[RenderableType] = [Text(f"\nper iteration of a loop with {use}{where}:")]
    timed = [row for row in rows if _looped(row)]
    if timed:
        parts.append(_table(sorted(timed, key=_in_loop_ns)[:MOST_ROWS]))
    if len(timed) > MOST_ROWS:
        parts.append(Text(f"… and {len(timed) - MOST_ROWS:,} more in the session file"))
    return [*parts, *(Text(sentence) for sentence in sentences(rows))]


def _table(rows: Sequence[Row]) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), show_edge=False, header_style="dim")
    table.add_column("path", overflow="fold", ratio=1)
    for title in ("in-loop", "hoisted", "share", "pays from"):
        table.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        found = row.placement or Placement(use=None)
        table.add_row(
            row.code,
            _time_text(found.in_loop),
            _time_text(found.hoisted),
            share_text(found.share),
            "-" if found.break_even_iterations is None else f"{found.break_even_iterations:,}",
        )
    return table


def share_text(share: Share | None) -> str:
    """``61 ±3 %``; ``~61 %`` for a single process; ``?`` where processes do not agree."""
    if share is None:
        return "-"
    if share.ci95 is None:
        return f"~{100 * share.median:.0f} %"
    half = max(share.ci95[1] - share.median, share.median - share.ci95[0])
    if half > WIDEST_SHARE:
        return "?"
    return f"{100 * share.median:.0f} ±{100 * half:.0f} %"


def _time_text(measure: TimeMeasure | None) -> str:
    processes = measure.processes if measure is not None else []
    return time_text(measure, [one.samples_ns[0] for one in processes if one.samples_ns])


def sentences(rows: Sequence[Row]) -> list[str]:
    """What the loops answer: the costliest path, those not told apart, what x itself costs."""
    looped = [(row, row.placement, row.placement.share) for row in rows if row.placement]
    found = [(row, placement, share.median) for row, placement, share in looped if share]
    told = [one for one in found if one[1].break_even_iterations is not None]
    answer = []
    if told:
        answer.append(_costliest(*max(told, key=lambda one: one[2])))
    if found and len(told) < len(found):
        alike = [row.code for row, placement, _ in found if placement.break_even_iterations is None]
        answer.append(_not_told(alike, found[0][1]))
    return [*answer, *_implicit(rows)]


def _not_told(codes: Sequence[str], found: Placement) -> str:
    if found.in_loop is not None and len(found.in_loop.processes) == 1:
        return "One process has no interval: from how many iterations on hoisting pays is unknown."
    return f"Not told apart, inside the loop and before it: {listed(codes)}."


def _costliest(row: Row, found: Placement, share: float) -> str:
    in_loop, hoisted = _median(found.in_loop), _median(found.hoisted)
    whole = ITERATIONS * in_loop, row.cost_ns + ITERATIONS * hoisted
    unclear = share_text(found.share) == "?"
    part = "makes the loop longer" if unclear else f"takes {100 * share:.0f} % of the loop"
    return (
        f"{row.code} {part}: {plain_time(in_loop)} per iteration with it inside,"
        f" {plain_time(hoisted)} with it before. Hoisting pays from"
        f" {found.break_even_iterations:,} iterations on; {ITERATIONS:,} take"
        f" {plain_time(whole[1])} instead of {plain_time(whole[0])}."
    )


def _implicit(rows: Sequence[Row]) -> list[str]:
    """What becomes of the foreign array itself, once for all paths: none has a part in it."""
    times = [row.placement for row in rows if row.placement is not None and row.placement.implicit]
    consumer = rows[0].pair.rpartition(" ")[2]
    if not times:
        reason = _refused(rows, "implicit")
        return [f"Handed x itself, {consumer} refuses: {reason}"] if reason else []
    first = times[0]
    text = f"Handed x itself, {consumer} takes {_time_text(first.implicit)} per iteration"
    hoisted = min((_median(one.hoisted) for one in times if one.hoisted), default=0.0)
    if hoisted > 0:
        text += f", {ratio_text(_median(first.implicit) / hoisted)} times the best hoisted loop"
    return [f"{text}."]


def _refusal(rows: Sequence[Row]) -> str:
    words = [word for row in rows if row.placement for word in row.placement.refused.values()]
    return first_line(words[0]) if words else "no reason was given"


def _refused(rows: Sequence[Row], name: str) -> str | None:
    words = [
        row.placement.refused[name]
        for row in rows
        if row.placement is not None and name in row.placement.refused
    ]
    return first_line(words[0]) if words else None


def _use(row: Row) -> str:
    return clean(row.placement.use or "", LONGEST_USE) if row.placement else ""


def _looped(row: Row) -> bool:
    return row.placement is not None and bool(row.placement.in_loop or row.placement.hoisted)


def _in_loop_ns(row: Row) -> float:
    found = row.placement
    return _median(found.in_loop or found.hoisted) if found else 0.0


def _median(measure: TimeMeasure | None) -> float:
    return measure.median_ns if measure is not None else 0.0
