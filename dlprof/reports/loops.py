"""Conversions in loops: what an iteration takes with the conversion inside, and before the loop."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from dlprof.analysis.quantity import plain_time, time_text, times_text
from dlprof.reports.document import Cell, Column, Level, Lines, Section, Table
from dlprof.reports.paths import MARK, Array, Path
from dlprof.session.model import Placement, Share, TimeMeasure
from dlprof.text.clean import listed

NOISE = 0.05
"""A share further below zero than this is no part of a loop."""
COLUMNS = (
    Column("in the loop", right=True),
    Column("before the loop", right=True),
    Column("share", right=True),
    Column("pays from", right=True),
    Column("path"),
)


def sections(arrays: Sequence[Array]) -> Iterator[Section]:
    """One for each array and operation that was looped."""
    for array in arrays:
        groups: dict[str, list[tuple[Path, Placement]]] = defaultdict(list)
        for path in array.paths:
            if path.case.result.placement is not None:
                placement = path.case.result.placement
                groups[placement.use or ""].append((path, placement))
        for use, looped in groups.items():
            where = f"{array.pair}, {array.text}" if len(arrays) > 1 else array.pair
            yield _section(use, looped, where)


def _section(use: str, looped: Sequence[tuple[Path, Placement]], where: str) -> Section:
    if not use:
        why = next((why for _, one in looped for why in one.refused.values()), "no reason given")
        return Section(f"In a loop: {where}", (Lines((f"No loop could be measured: {why}",)),))
    timed = sorted(
        (one for one in looped if one[1].in_loop or one[1].hoisted),
        key=lambda one: (one[1].in_loop or one[1].hoisted or _NOTHING).median_ns,
    )
    table = Table(COLUMNS, tuple(_row(*one) for one in timed))
    lines = (*_sentences(looped), *_implicit(looped))
    return Section(f"In a loop with {use}: {where}", (table, Lines(lines)), Level.FIRST)


_NOTHING = TimeMeasure(median_ns=0.0, ci95_ns=None, min_ns=0.0)


def _row(path: Path, found: Placement) -> tuple[Cell, ...]:
    unsure = _is_disturbed(found)
    pays = None if unsure else _pays_from(found)
    return (
        Cell(_time(found.in_loop)),
        Cell(_time(found.hoisted)),
        Cell("?" if unsure else _part_text(found.share)),
        Cell("-" if pays is None else f"{pays:,} iterations"),
        Cell(path.code, code=True),
    )


def _time(measure: TimeMeasure | None) -> str:
    mark = MARK if measure is not None and measure.is_disturbed else ""
    return mark + time_text(measure).removeprefix(MARK)


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


def _part_text(share: Share | None) -> str:
    """The same of a part of a loop; ``?`` below zero beyond noise: a part is not negative."""
    if share is None or share.median >= -NOISE:
        return share_text(share)
    return share_text(share) if share.ci95 is not None and share.ci95[1] >= 0 else "?"


def _pays_from(found: Placement) -> int | None:
    """From how many iterations on it pays to convert before the loop, where that is known."""
    known = found.share is not None and found.share.is_known
    return found.break_even_iterations if known else None


def _sentences(looped: Sequence[tuple[Path, Placement]]) -> Iterator[str]:
    """The path that pays most, then those of which it cannot be told."""
    shared = [(path, one, one.share) for path, one in looped if one.share is not None]
    paying = [
        (path, one, share)
        for path, one, share in shared
        if _pays_from(one) is not None and not _is_disturbed(one)
    ]
    if paying:
        path, one, share = max(paying, key=lambda found: found[2].median)
        yield (
            f"{path.code} takes {100 * share.median:.0f} % of the loop. Convert before the loop"
            f" from {one.break_even_iterations:,} iterations on."
        )
    groups: dict[str, list[str]] = defaultdict(list)
    for path, one, share in shared:
        if (path, one, share) not in paying:
            groups[_why_unknown(one, share)].append(path.code)
    for why, codes in groups.items():
        yield f"{listed(codes)}: {why}"


def _why_unknown(found: Placement, share: Share) -> str:
    if _is_disturbed(found):
        return "Other programs disturbed these loops. Whether to convert before is not known."
    if share.ci95 is None:
        return "One process has no interval. Whether to convert before the loop is not known."
    if not share.is_known:
        return "The processes do not agree on the share of the loop."
    return "The two loops cannot be told apart."


def _implicit(looped: Sequence[tuple[Path, Placement]]) -> Iterator[str]:
    """What becomes of the array itself, handed to the consumer without a conversion."""
    path, _ = looped[0]
    consumer, source = path.case.pair[1], path.source
    implicit = next((one.implicit for _, one in looped if one.implicit is not None), None)
    if implicit is None:
        why = next((one.refused["implicit"] for _, one in looped if "implicit" in one.refused), "")
        if why:
            yield f"{consumer} refuses {source} without a conversion: {why.strip().splitlines()[0]}"
        return
    hoisted = [one.hoisted for _, one in looped if one.hoisted is not None]
    best = min(hoisted, key=lambda one: one.median_ns, default=None)
    beside = ""
    if best is not None and not (implicit.is_disturbed or best.is_disturbed):
        longer = implicit.median_ns >= best.median_ns
        times = times_text(implicit, best) if longer else times_text(best, implicit)
        if times:
            beside = f", {times} times {'as long' if longer else 'faster than'} the best loop"
    time = plain_time(implicit.median_ns)
    yield f"{consumer} takes {source} itself: {time} per iteration{beside}."
