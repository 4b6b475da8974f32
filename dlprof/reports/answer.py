"""The sentences that answer the user: which path is cheapest and safe, and what the worst costs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import compress

from dlprof.analysis.alignment import WORDS, Steady
from dlprof.analysis.quantity import brief_text, times_text
from dlprof.reports import faults
from dlprof.reports.cell_text import told_time
from dlprof.reports.row import Row, trusted
from dlprof.reports.trip_paths import is_right, unsafe_text
from dlprof.rules.promise import NOT_LOOKED_AT
from dlprof.text.lists import listed

KINDS = {
    "view": "a view",
    "copy": "a copy",
    "varies": "a view in some processes and a copy in others",
}
ALIKE = 1.1
"""Times of a smaller ratio are not compared in words."""
SLOWER = 1.05
"""Below this ratio two paths are not called different, whatever their intervals say."""


def answers(rows: Iterable[Row]) -> list[str]:
    """One answer for each array that was converted, in the order of the rows.

    Where there are several arrays, each is named by what tells it from the others.
    """
    arrays: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        arrays.setdefault(row.array, []).append(row)
    varies = [len(set(values)) > 1 for values in zip(*arrays, strict=True)]
    steady = Steady(row.look for group in arrays.values() for row in group if row.look)
    return [
        _answer(group, " ".join(compress(array, varies)), steady) for array, group in arrays.items()
    ]


def _answer(rows: Sequence[Row], name: str, steady: Steady) -> str:
    if rows[0].is_step:
        return ""
    where = f"{name}: " if name else ""
    safe = sorted(trusted(rows), key=lambda row: row.cost_ns)
    if not safe:
        measured = [row for row in rows if row.ready is not None]
        if not measured and any(row.status == "ok" for row in rows):
            return where + "of no path is it known when its result is ready."
        return where + _none_is_safe(measured, steady)
    best = safe[0]
    sentences = [
        f"{where}cheapest{_good(best)}: {best.code}, {_kind(best, steady)}, {told_time(best)}."
    ]
    tied = [row.code for row in safe[1:] if not slower(best, row) or _may_take_less(row, best)]
    if tied:
        sentences.append(f"Not told apart from it: {listed(tied)}.")
    right = [row for row in rows if row.ready is not None and not row.changed]
    sentences += _slowest(rows, right, best)
    if best.owner == "view":
        sentences += _copy(safe, [row for row in rows if _is_copy(row)], steady)
    return " ".join(sentences)


def _slowest(rows: Sequence[Row], right: Sequence[Row], best: Row) -> Iterator[str]:
    """What the slowest costs, and of which rows it is that where slower ones stand in the table.

    What other programs took is no path's cost.
    """
    known = [row for row in right if row.is_known]
    worst = max(known, key=lambda row: row.cost_ns, default=None)
    if worst is None or not slower(best, worst):
        return
    beyond = [row for row in rows if row.ready is not None and row.cost_ns > worst.cost_ns]
    among = {
        "that is right": any(row.changed for row in beyond),
        "whose time is known": any(not row.is_known and not row.changed for row in beyond),
    }
    which = " and ".join(word for word, left_out in among.items() if left_out)
    which = f" {which}" if which else ""
    yield f"The slowest{which}, {worst.code}, takes {_as_long(worst, best)}."


def _may_take_less(row: Row, best: Row) -> bool:
    """Whether its time is not known, and was no more than that of ``best`` at least once."""
    return not row.is_known and row.ready is not None and row.ready.min_ns <= best.cost_ns


def _good(best: Row) -> str:
    """What is known of the cheapest that there is, in words."""
    if best.unchecked:
        also = f"; {best.unlooked}" if best.unlooked else ""
        return f", but its values could not be checked ({best.unchecked}{also})"
    if best.unlooked:
        return f" that is right ({best.unlooked})"
    rules = ", ".join(best.cautions)
    return f" that is safe{f' if nobody writes to the result ({rules})' if rules else ''}"


def _copy(safe: Sequence[Row], copies: Sequence[Row], steady: Steady) -> Iterator[str]:
    """What to write if a copy is needed: one that is documented, wherever the source begins."""
    offered = [row for row in safe if _is_copy(row) and _may_be_offered(row, steady)]
    documented = [row for row in offered if row.promise == "copy"]
    if documented:
        best = _plainest(documented)
        yield f"If you need a copy: {best.code}, {told_time(best)}{_unlooked(best)}."
    elif offered:
        best = _plainest(offered)
        undocumented = f"{told_time(best)}, which is not documented to copy"
        yield f"If you need a copy: {best.code}, {undocumented}{_unlooked(best)}."
    elif copies:
        yield f"If you need a copy: {_no_copy(copies, steady)}"


def _unlooked(copy: Row) -> str:
    return f" ({NOT_LOOKED_AT})" if faults.is_unlooked_copy(copy) else ""


def _no_copy(copies: Sequence[Row], steady: Steady) -> str:
    """That there is no safe copy; and one that is whole for whoever waits for it, if there is."""
    none = "no measured path is known to be a safe one"
    late = [row for row in copies if faults.only_races(row) and _may_be_offered(row, steady)]
    late = [row for row in late if not row.disturbed] or late
    late = [row for row in late if row.promise == "copy"] or late
    if not late:
        return f"{none}."
    best = _plainest(sorted(late, key=lambda row: row.cost_ns))
    how = f"wait for the result before you write x ({faults.how_seen(best)})"
    return f"{none}; {best.code}, {told_time(best)}, copies, but {how}."


def _plainest(rows: Sequence[Row]) -> Row:
    """The shortest code of those that take as long as the first, the cheapest whose time is known.

    Where no time is known the cheapest itself: it takes no longer than what was measured.
    """
    first, *rest = [row for row in rows if row.is_known] or rows[:1]
    near = [row for row in rest if row.cost_ns <= ALIKE * first.cost_ns and not slower(first, row)]
    return min([first, *near], key=lambda row: len(row.code))


def _is_copy(row: Row) -> bool:
    return row.owner == "copy" and row.ready is not None and not row.changed


def _may_be_offered(row: Row, steady: Steady) -> bool:
    """Whether it copied at every alignment of the source, and nobody asks it not to."""
    holds = row.look is None or steady.holds("copy", row.look.way, row.look.source)
    return holds and not row.forbids_copy


def _as_long(worst: Row, best: Row) -> str:
    if worst.ready is None or best.ready is None:
        return "longer"
    medians = worst.process_medians_ns, best.process_medians_ns
    times = times_text(worst.ready, best.ready, *medians) if best.is_known else ""
    return brief_text(worst.ready, medians[0]) + (f": {times} times as long" if times else "")


def _none_is_safe(measured: Sequence[Row], steady: Steady) -> str:
    if not measured:
        return "no path could be measured."
    if all(row.unseen for row in measured):
        return "no path leaves anything behind that could be looked at: none is called safe."
    if all(row.changed for row in measured):
        return "no path kept shape, dtype and values."
    if any(row.status == "ok" and not row.changed for row in measured):
        return "no path is called safe: see the findings." + _cheapest_right(measured, steady)
    return "no path was measured to the end, kept every value and does as documented."


def _cheapest_right(measured: Sequence[Row], steady: Steady) -> str:
    """What its values are right of, and why it is not safe."""
    right = [row for row in measured if is_right(row) and not row.unchecked]
    if not right:
        return ""
    best = min(right, key=lambda row: row.cost_ns)
    what = f"{best.code}, {_kind(best, steady)}, {told_time(best)}"
    return f" The cheapest that is right: {what}; {unsafe_text(best)}."


def slower(best: Row, other: Row) -> bool:
    """Whether ``other`` is clearly slower: more than 5 %, and the intervals do not touch.

    Without an interval on either side twice the time is asked for, and so it is of every process
    where the intervals are wide. Of modes the nearest two are compared.
    """
    if best.ready is None or other.ready is None or best.cost_ns <= 0:
        return False
    fastest, slowest = other.ready.modes_ns[0], best.ready.modes_ns[1]
    ratio = fastest / slowest if slowest > 0 else 0.0
    if best.ready.ci95_ns is None or other.ready.ci95_ns is None:
        return ratio > 2  # noqa: PLR2004 - see the docstring
    if best.process_medians_ns and other.process_medians_ns:
        longest = max(best.process_medians_ns)
        if min(other.process_medians_ns) > 2 * longest > 0:
            return True
    return ratio > SLOWER and other.ready.ci95_ns[0] > best.ready.ci95_ns[1]


def _kind(row: Row, steady: Steady) -> str:
    # Which of the two it is, the source's alignment decides only where aligned memory is a view.
    if row.is_view_if_aligned:
        how = {"view": "since the source is aligned", "copy": "since the source is not aligned"}
        if row.owner in how:
            refused = ", and refused elsewhere" if row.refuses_elsewhere else ""
            return f"a {row.owner} {how[row.owner]}{refused}"
    kind = KINDS.get(row.owner, "view or copy unknown")
    if row.look and row.owner in WORDS and steady.differs(row.owner, row.look.way):
        return kind + steady.where(row.owner, row.look.way, row.look.source)
    return kind
