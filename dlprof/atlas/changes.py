"""What changed between the columns of a grid, and with which version or machine it came.

Verdicts are compared between all columns, but for a race: that one is seen is chance. Times are
compared between those of one machine and one Python, by :func:`dlprof.judge.slower.are_apart`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from dlprof.atlas.cells import BY_ADDRESS, QUESTIONS
from dlprof.atlas.grid import (
    DEVICE,
    MACHINE,
    MISSING,
    PYTHON,
    Grid,
    Row,
    fact_text,
    versions_in_order,
)
from dlprof.compare import verdicts
from dlprof.compare.verdicts import RACE, SCALES
from dlprof.judge.slower import Time, are_apart, middle_ns
from dlprof.runner.quantity import plain_time

TIME = "time"
WORST_FIRST = ("crash", "hangs", "refused", *BY_ADDRESS[:0:-1], "copy", BY_ADDRESS[0], "view")
RESULTS = {word: place for place, word in enumerate(reversed(WORST_FIRST))}
"""How bad a result is; of a path that is documented to copy, a view is worse than a copy."""
PROMISED = {**RESULTS, **dict.fromkeys(("view", BY_ADDRESS[0]), RESULTS["refused"])}
WORDS: Mapping[str, Mapping[str, str]] = {
    "values": {"ok": "right values", "wrong": "wrong values"},
    "lifetime": {
        **verdicts.WORDS["lifetime"],
        "safe": "outlives its source",
        "retained": "keeps memory",
    },
    "ordering": {
        **verdicts.WORDS["ordering"],
        "host-sync": "waits for queued work",
        "device-sync": "waits for the device",
        "unordered": "races with queued work",
    },
}
"""Words of :mod:`dlprof.compare.verdicts`, but where a sentence does not name the question."""

Direction = Literal["worse", "better", "other"]


@dataclass(frozen=True)
class Change:
    """One answer of one row that is not the same in all columns.

    ``grid`` is that of its pair. ``text`` says it: ``view until jax 0.4.30, copy since 0.4.31``.
    ``axis`` is what it came with, and empty if no one thing tells. ``since`` is the newest value
    that brought another answer.
    """

    grid: Grid
    row: Row
    question: str
    text: str
    axis: str
    since: str
    direction: Direction

    @property
    def rank(self) -> tuple[int, int]:
        """Worst first: what got worse, then by the question."""
        order = (*QUESTIONS, TIME)
        return ("worse", "other", "better").index(self.direction), order.index(self.question)


def changes_of(grid: Grid) -> list[Change]:
    """All changes of a grid, worst first."""
    found = [
        change
        for pair in grid.pairs.values()
        for row in pair.rows
        for change in (*_of_verdicts(pair, row), *_of_time(pair, row))
    ]
    return sorted(found, key=lambda change: change.rank)


def badness(row: Row, question: str, word: str) -> int:
    if question == "result":
        return (PROMISED if row.case.promise == "copy" else RESULTS)[word]
    return SCALES[question][word]


def word_text(question: str, word: str) -> str:
    """A word in a sentence."""
    return WORDS.get(question, {}).get(word, word)


def _of_verdicts(grid: Grid, row: Row) -> Iterator[Change]:
    for at, question in enumerate(QUESTIONS):
        if question == RACE:
            continue
        known = {place: cell.words[at] for place, cell in row.cells.items() if cell.words[at]}
        if len(set(known.values())) > 1:
            yield _change(grid, row, question, known)


def _change(grid: Grid, row: Row, question: str, known: Mapping[int, str]) -> Change:
    """The change with the axis on which an answer depends, if it depends on one."""
    fits = [axis for axis in _axes_for(grid, row) if _decides(grid, axis, known)]
    if not fits:
        return Change(grid, row, question, _counted(grid, question, known), "", "", "other")
    axis = fits[0]
    values = {grid.columns[place].get(axis, MISSING): word for place, word in known.items()}
    order = versions_in_order(values)
    runs: list[tuple[str, list[str]]] = []
    for value in order:
        if not runs or runs[-1][0] != values[value]:
            runs.append((values[value], []))
        runs[-1][1].append(value)
    shown = [(word_text(question, word), members) for word, members in runs]
    before, after = (badness(row, question, runs[at][0]) for at in (-2, -1))
    is_version = axis not in (MACHINE, DEVICE)
    direction: Direction = "worse" if after > before else "better"
    if not is_version or after == before:
        direction = "other"
    return Change(grid, row, question, _runs_text(axis, shown), axis, runs[-1][1][0], direction)


def _axes_for(grid: Grid, row: Row) -> list[str]:
    """The axes; those of the row's own frameworks first."""
    return sorted(grid.axes, key=lambda axis: not axis.startswith(row.pair))


def _decides(grid: Grid, axis: str, known: Mapping[int, str]) -> bool:
    """Whether the value on an axis alone says which answer a column has."""
    found: dict[str, str] = {}
    return all(
        found.setdefault(grid.columns[place].get(axis, MISSING), word) == word
        for place, word in known.items()
    )


def _runs_text(axis: str, runs: Sequence[tuple[str, Sequence[str]]]) -> str:
    """``view until jax 0.4.30, copy since 0.4.31``; of machines ``view on A, copy on B``."""
    if axis in (MACHINE, DEVICE):
        word = "on" if axis == MACHINE else "on a device that is"
        return "; ".join(f"{said} {word} {', '.join(members)}" for said, members in runs)
    parts = []
    for at, (said, members) in enumerate(runs):
        first, last = members[0], members[-1]
        if at == 0:
            parts.append(f"{said} until {fact_text(axis, last)}")
        elif at == len(runs) - 1:
            parts.append(f"{said} since {first}")
        else:
            parts.append(f"{said} in {first}" + (f" to {last}" if last != first else ""))
    return ", ".join(parts)


def _counted(grid: Grid, question: str, known: Mapping[int, str]) -> str:
    """An answer that no one axis decides: the rarer ones with their columns."""
    places: dict[str, list[int]] = defaultdict(list)
    for place, word in known.items():
        places[word].append(place)
    rarest, *others = sorted(places, key=lambda word: (len(places[word]), word))
    first = min(places[rarest])
    more = f" and {len(places[rarest]) - 1} more" if len(places[rarest]) > 1 else ""
    rest = ", ".join(f"{word_text(question, one)} in {len(places[one])}" for one in others)
    return f"{word_text(question, rarest)} with {grid.label(first)}{more}; {rest}"


def _of_time(grid: Grid, row: Row) -> Iterator[Change]:
    """The first axis along which the time changed, on each machine and Python."""
    sides: dict[tuple[str, ...], dict[int, Time]] = defaultdict(dict)
    for place, cell in row.cells.items():
        if cell.time is not None and cell.time.interval_ns is not None:
            facts = grid.columns[place]
            sides[tuple(facts.get(name, "") for name in (MACHINE, PYTHON, DEVICE))][place] = (
                cell.time
            )
    for times in sides.values():
        for axis in _axes_for(grid, row) if len(times) > 1 else ():
            by_value: dict[str, list[Time]] = defaultdict(list)
            for place, time in times.items():
                by_value[grid.columns[place].get(axis, MISSING)].append(time)
            levels = _levels(by_value)
            if len(levels) > 1:
                yield _time_change(grid, row, axis, levels)
                break


_Level = tuple[list[str], list[Time]]


def _levels(by_value: Mapping[str, Sequence[Time]]) -> list[_Level]:
    """Values of an axis whose times belong together, in order."""
    levels: list[_Level] = []
    for value in versions_in_order(by_value):
        times = [*by_value[value]]
        if levels and not are_apart(levels[-1][1], times):
            levels[-1][0].append(value)
            levels[-1][1].extend(times)
        else:
            levels.append(([value], times))
    return levels


def _time_change(grid: Grid, row: Row, axis: str, levels: Sequence[_Level]) -> Change:
    runs = [(plain_time(middle_ns(times)), values) for values, times in levels]
    before, after = (middle_ns(levels[at][1]) for at in (-2, -1))
    direction: Direction = "worse" if after > before else "better"
    return Change(grid, row, TIME, _runs_text(axis, runs), axis, levels[-1][0][0], direction)
