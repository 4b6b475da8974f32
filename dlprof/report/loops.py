"""Conversions inside a loop, or before it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from dlprof.report.document import Cell, Column, Level, Lines, Section, Table
from dlprof.report.paths import Array, Path
from dlprof.runner.quantity import MARK, legend, plain_time, time_text
from dlprof.runner.session import (
    Placement,
    Share,
    TimeMeasure,
)
from dlprof.text.clean import first_line

NOISE = 0.05
"""A share further below zero than this is no part of a loop."""
COLUMNS = (
    Column("in the loop", right=True),
    Column("before the loop", right=True),
    Column("share", right=True),
    Column("pays from", right=True),
    Column("path"),
)

Looped = tuple[Path, Placement]


def loop_sections(arrays: Sequence[Array]) -> Iterator[Section]:
    """One for each array and operation that was looped."""
    for array in arrays:
        groups: dict[str, list[Looped]] = defaultdict(list)
        for path in array.paths:
            placement = path.case.result.placement
            if placement is not None:
                groups[placement.use or ""].append((path, placement))
        for use, looped in groups.items():
            where = f"{array.pair_text}, {array.text}" if len(arrays) > 1 else array.pair_text
            yield _section(use, looped, where)


def _section(use: str, looped: Sequence[Looped], where: str) -> Section:
    timed = [one for one in looped if _cost_ns(one[1]) is not None]
    timed.sort(key=lambda one: _cost_ns(one[1]) or 0.0)
    refused = dict.fromkeys(
        f"{placement}: {first_line(why)}"
        for _, one in looped
        for placement, why in one.refused.items()
    )
    heading = f"In a loop{f' with {use}' if use else ''}: {where}"
    rows = tuple(_loop_row(*one) for one in timed)
    times = legend(cell.text for row in rows for cell in row if not cell.code)
    tables = (Table(COLUMNS, rows, times),)
    lines = (*_advice(timed), *_implicit(looped), *(f"refused {reason}" for reason in refused))
    return Section(
        heading, (*tables * bool(rows), *((Lines(lines),) if lines else ())), Level.FIRST
    )


def _cost_ns(found: Placement) -> float | None:
    time = found.in_loop or found.hoisted
    return None if time is None else time.median_ns


def _loop_row(path: Path, found: Placement) -> tuple[Cell, ...]:
    pays = _pays_from(found)
    share = found.share
    # A part is not negative, beyond noise.
    is_part = share is None or share.median >= -NOISE or (share.ci95 or (0.0, -1.0))[1] >= 0
    return (
        Cell(_time(found.in_loop)),
        Cell(_time(found.hoisted)),
        Cell("?" if _is_disturbed(found) or not is_part else share_text(share)),
        Cell("-" if pays is None else f"{pays:,} iterations"),
        Cell(path.code, code=True),
    )


def _time(measure: TimeMeasure | None) -> str:
    return time_text(measure, measure is not None and measure.is_disturbed)


def _is_disturbed(found: Placement) -> bool:
    return any(one is not None and one.is_disturbed for one in (found.in_loop, found.hoisted))


def share_text(share: Share | None) -> str:
    """``61 ±3 %``; ``~61 %`` of one process; ``?`` where the processes do not agree."""
    if share is None:
        return "-"
    if share.ci95 is None:
        return f"{MARK}{round(100 * share.median)} %"
    if share.half is None or not share.is_known:
        return "?"
    half = 100 * share.half
    shown = "<1" if half < 0.5 else f"{half:.0f}"  # noqa: PLR2004 - no interval is of nothing
    return f"{round(100 * share.median) or 0} ±{shown} %"


def _pays_from(found: Placement) -> int | None:
    """From how many iterations on it pays to convert before the loop, where that is known."""
    known = found.share is not None and found.share.is_known and not _is_disturbed(found)
    return found.break_even_iterations if known else None


def _advice(looped: Sequence[Looped]) -> Iterator[str]:
    """The path that pays most, if one is known to."""
    paying = [(path, one) for path, one in looped if _pays_from(one) is not None and one.share]
    if not paying:
        if looped:
            yield "No loop is known to be faster with the conversion before it."
        return
    path, one = max(paying, key=lambda found: found[1].share.median if found[1].share else 0.0)
    share = one.share.median if one.share else 0.0
    yield (
        f"{path.code} takes {100 * share:.0f} % of the loop. Convert before the loop"
        f" from {_pays_from(one):,} iterations on."
    )


def _implicit(looped: Sequence[Looped]) -> Iterator[str]:
    """What the operation takes with the array itself, without a conversion."""
    times = [(path, one.implicit) for path, one in looped if one.implicit is not None]
    for path, implicit in times[:1]:
        time = plain_time(implicit.median_ns)
        yield f"{path.case.pair[1]} takes {path.source} itself: {time} per iteration."
