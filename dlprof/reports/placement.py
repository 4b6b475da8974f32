"""Conversions in loops: a table of times per iteration, and the sentences that answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from dlprof.analysis.quantity import (
    is_narrow,
    loop_time_text,
    plain_time,
    process_medians,
    times_text,
)
from dlprof.reports.cell_text import told_time
from dlprof.reports.row import Row
from dlprof.session.model import Placement, Share, TimeMeasure
from dlprof.text.clean import clean, first_line
from dlprof.text.lists import listed

MOST_ROWS = 30
ITERATIONS = 1000
LONGEST_USE = 100
NOISE = 0.05
"""A share further below zero than this is no part of a loop."""


def compose(rows: Sequence[Row]) -> list[RenderableType]:
    """A block for each array and operation; empty where no placement was asked for."""
    arrays = len({row.array for row in rows})
    return [part for group in loops(rows) for part in _block(group, several=arrays > 1)]


def loops(rows: Sequence[Row]) -> list[list[Row]]:
    """The rows that were looped, those of one array and operation together."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        if row.placement is not None:
            groups.setdefault((*row.array, use_text(row)), []).append(row)
    return list(groups.values())


def answers(rows: Sequence[Row]) -> list[str]:
    """One answer for each array and operation that was looped, named where there are several."""
    groups = [group for group in loops(rows) if any(is_timed(row) for row in group)]
    several = len(groups) > 1
    return [_answer(group, _where(group[0], several)) for group in groups]


def _where(row: Row, several: bool) -> str:
    """The array, where there are several; else the environment, where there are several."""
    if several:
        return f" ({' '.join(row.array)})"
    return f" (in {row.environment})" if row.environment else ""


def _answer(rows: Sequence[Row], where: str) -> str:
    kinds = _by_kind(rows)
    if _TOLD in kinds:
        text = _costliest(max(kinds[_TOLD], key=_part))
    elif _DISTURBED in kinds:
        text = f"{_BY_OTHERS}, so whether hoisting pays is not known."
    elif _UNSURE in kinds:
        text = "the processes do not agree, so whether hoisting pays is not known."
    elif _ALIKE in kinds:
        row = min(kinds[_ALIKE], key=_in_loop_ns)
        text = (
            "converting in every iteration costs nothing that can be told from the rest:"
            f" {row.code} takes {told_time(row)} on its own, an"
            f" iteration {loop_time_text(_of(row).in_loop)}."
        )
    elif _PART in kinds:
        text = _part_of(max(kinds[_PART], key=_part))
    elif _SINGLE in kinds:
        text = "one process has no interval, so whether hoisting pays is not known."
    else:
        text = "no loop with the conversion in it was compared with one that has it before."
    marked = _DISTURBED in kinds and _TOLD in kinds
    note = [f"{MARK} marks times that other programs may have made."] if marked else []
    return " ".join([f"With {use_text(rows[0])}{where}: {text}", *_implicit(rows), *note])


_TOLD, _UNSURE, _ALIKE, _PART, _SINGLE = "told", "unsure", "alike", "part", "single"
_DISTURBED = "disturbed"
_BY_OTHERS = "other programs may have made the times of these loops"
MARK = "?"
"""Behind the time of a loop that other programs may have made."""


def _by_kind(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """The rows of which two loops were compared, by what came of it."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        if row.placement is not None and row.placement.share is not None:
            found.setdefault(_kind(row, row.placement, row.placement.share), []).append(row)
    return found


def _kind(row: Row, found: Placement, share: Share) -> str:
    if any(is_disturbed(one) for one in (found.in_loop, found.hoisted)):
        return _DISTURBED
    if _pays_from(found) is not None:
        return _TOLD
    if share.ci95 is None:
        return _SINGLE
    if not share.is_known:
        return _UNSURE
    # Without the conversion's own time nobody can tell from where on it pays.
    return _PART if share.ci95[0] > 0 and row.ready is None else _ALIKE


def _part_of(row: Row) -> str:
    return (
        f"{row.code} takes {share_text(_of(row).share)} of the loop; from where on hoisting pays is"
        " not known, since its own time is not."
    )


def _of(row: Row) -> Placement:
    return row.placement or Placement(use=None)


def _part(row: Row) -> float:
    share = _of(row).share
    return share.median if share is not None else 0.0


def _block(rows: Sequence[Row], several: bool) -> list[RenderableType]:
    where = _where(rows[0], several)
    use = use_text(rows[0])
    if not use:
        return [Text(f"\nno loop could be measured{where}: {_refusal(rows)}")]
    parts: list[RenderableType] = [Text(f"\nper iteration of a loop with {use}{where}:")]
    timed = [row for row in rows if is_timed(row)]
    if timed:
        parts.append(_table(sorted(timed, key=_in_loop_ns)[:MOST_ROWS]))
    if len(timed) > MOST_ROWS:
        parts.append(Text(f"… and {len(timed) - MOST_ROWS:,} more in the session file"))
    return [*parts, *(Text(sentence) for sentence in sentences(rows))]


def _table(rows: Sequence[Row]) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), show_edge=False, header_style="dim")
    table.add_column("path", overflow="fold", ratio=1)
    for title in TITLES:
        table.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(row.code, *(cell(title)(row) for title in TITLES))
    return table


TITLES = ("in-loop", "hoisted", "share", "pays from")


def cell(title: str) -> Callable[[Row], str]:
    """What stands under one of :data:`TITLES`, or under ``implicit``."""

    def text(row: Row) -> str:
        found = row.placement or Placement(use=None)
        disturbed = any(is_disturbed(one) for one in (found.in_loop, found.hoisted))
        if title == "share":
            return MARK if disturbed else part_text(found.share)
        if title == "pays from":
            pays = None if disturbed else _pays_from(found)
            return "-" if pays is None else f"{pays:,}"
        measure = getattr(found, title.replace("-", "_"))
        return loop_time_text(measure) + (MARK if is_disturbed(measure) else "")

    return text


def is_disturbed(measure: TimeMeasure | None) -> bool:
    """Whether the time of a loop may be that of other programs."""
    return measure is not None and measure.is_disturbed


def share_text(share: Share | None) -> str:
    """``61 ±3 %``, ``99 ±<1 %``; ``~61 %`` of one process; ``?`` where they do not agree."""
    if share is None:
        return "-"
    if share.ci95 is None:
        return f"~{round(100 * share.median)} %"
    if share.half is None or not share.is_known:
        return "?"
    half = 100 * share.half
    shown = "<1" if half < 0.5 else f"{half:.0f}"  # noqa: PLR2004 - no interval is of nothing
    return f"{round(100 * share.median)} ±{shown} %"


def part_text(share: Share | None) -> str:
    """The same of a part of a loop; ``?`` below zero beyond noise, for a part is not negative."""
    if share is None or share.median >= -NOISE:
        return share_text(share)
    return share_text(share) if share.ci95 is not None and share.ci95[1] >= 0 else "?"


def _pays_from(found: Placement) -> int | None:
    """The break-even; of a session that has one for a share that is no number, none."""
    known = found.share is not None and found.share.is_known
    return found.break_even_iterations if known else None


def sentences(rows: Sequence[Row]) -> list[str]:
    """What the loops answer: the costliest path, those not told apart, what x itself costs."""
    kinds = _by_kind(rows)
    answer = [_costliest(max(kinds[_TOLD], key=_part))] if _TOLD in kinds else []
    answer += [_part_of(max(kinds[_PART], key=_part))] if _PART in kinds else []
    answer += [
        f"{words}: {listed([row.code for row in kinds[kind]])}."
        for kind, words in _NOT_TOLD.items()
        if kind in kinds
    ]
    return [*answer, *_implicit(rows)]


_NOT_TOLD = {
    _ALIKE: "Not told apart, inside the loop and before it",
    _SINGLE: "One process has no interval, so that from where on hoisting pays is unknown",
    _UNSURE: "The processes do not agree on its part of the loop",
    _DISTURBED: f"{MARK} Other programs may have made these times",
}


def _costliest(row: Row) -> str:
    found = _of(row)
    return (
        f"{row.code} takes {100 * _part(row):.0f} % of the loop: {loop_time_text(found.in_loop)}"
        f" per iteration with it inside, {loop_time_text(found.hoisted)} with it before. Hoisting"
        f" pays from {found.break_even_iterations:,} iterations on{_many(row, found)}."
    )


def _many(row: Row, found: Placement) -> str:
    """What many iterations take; nothing where a time is a range, or falls into modes."""
    measures = [one for one in (found.in_loop, found.hoisted) if one is not None]
    if any(one.modes or not is_narrow(one) for one in measures):
        return ""
    before = row.cost_ns + ITERATIONS * _median(found.hoisted)
    inside = ITERATIONS * _median(found.in_loop)
    return f"; {ITERATIONS:,} take {plain_time(before)} instead of {plain_time(inside)}"


def _implicit(rows: Sequence[Row]) -> list[str]:
    """What becomes of the foreign array itself, once for all paths: none has a part in it."""
    times = [row.placement for row in rows if row.placement is not None and row.placement.implicit]
    consumer = rows[0].frameworks.rpartition(" ")[2]
    if not times:
        reason = _refused(rows, "implicit")
        return [f"Handed x itself, {consumer} refuses: {reason}"] if reason else []
    first = times[0]
    taken = loop_time_text(first.implicit) + (MARK if is_disturbed(first.implicit) else "")
    text = f"Handed x itself, {consumer} takes {taken} per iteration"
    hoisted = [one.hoisted for one in times if one.hoisted and one.hoisted.median_ns > 0]
    best = min(hoisted, key=_median, default=None)
    return [f"{text}{_beside_hoisted(first.implicit, best)}."]


def _beside_hoisted(implicit: TimeMeasure | None, hoisted: TimeMeasure | None) -> str:
    """How many times the best hoisted loop it takes, where the two can be told apart."""
    if implicit is None or hoisted is None or is_disturbed(implicit) or is_disturbed(hoisted):
        return ""
    longer, shorter = sorted((implicit, hoisted), key=_median, reverse=True)
    told = _times(longer, shorter)
    if not told:
        return ", which cannot be told from the best hoisted loop"
    if longer is implicit:
        return f", {told} times the best hoisted loop"
    return f"; the best hoisted loop takes {told} times as long"


def _times(longer: TimeMeasure, shorter: TimeMeasure) -> str:
    """Empty where the intervals overlap, or there are none."""
    ends = longer.ci95_ns, shorter.ci95_ns
    if all(ends) and ends[0] and ends[1] and ends[0][0] <= ends[1][1]:
        return ""
    return times_text(longer, shorter, process_medians(longer), process_medians(shorter))


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


def use_text(row: Row) -> str:
    """The operation in the loop; empty where none could be had."""
    return clean(row.placement.use or "", LONGEST_USE) if row.placement else ""


def is_timed(row: Row) -> bool:
    """Whether a loop has a time with the conversion inside or before it."""
    return row.placement is not None and bool(row.placement.in_loop or row.placement.hoisted)


def _in_loop_ns(row: Row) -> float:
    found = row.placement
    return _median(found.in_loop or found.hoisted) if found else 0.0


def _median(measure: TimeMeasure | None) -> float:
    return measure.median_ns if measure is not None else 0.0
