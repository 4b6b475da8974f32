"""From sessions to series: one for each case, machine and environment, in order of time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dlprof import stats
from dlprof.compare.match import Key, asked_for, code_key
from dlprof.compare.process import Side, median_ns, processes, steady
from dlprof.compare.statistic import STATEFUL_BYTES
from dlprof.compare.surroundings import untrusted
from dlprof.history.entry import Entry
from dlprof.history.machine import Machine, machine_of
from dlprof.rules.known import Known
from dlprof.session import CaseRecord, Header, Result


@dataclass(frozen=True)
class Point:
    """One session's word on a case.

    ``side`` are its processes, of the mode that most of them are in; empty where there is no time
    to be trusted: ``doubt`` says why. ``header`` is the session's, with the case's environment.
    """

    entry: Entry
    header: Header
    result: Result
    side: Side
    doubt: str = ""

    @property
    def time_ns(self) -> float | None:
        return median_ns(self.side)


@dataclass(frozen=True)
class Series:
    """One case on one machine. ``missing``: later sessions that were asked for it without it."""

    case: CaseRecord
    machine: Machine
    environment: str
    points: tuple[Point, ...]
    missing: int = 0

    @property
    def timed(self) -> tuple[Point, ...]:
        return tuple(point for point in self.points if point.side)


def series_of(entries: Sequence[Entry], measure: str) -> tuple[Series, ...]:
    """All series of a history, machine by machine, cases in the order in which they came first.

    ``entries`` are in order of time. A case that a session holds twice is left out of it.
    """
    found: dict[tuple[Machine, str, Key], list[Point]] = {}
    machines: dict[Machine, None] = {}
    for entry in entries:
        places = _places(entry)
        for result in _unambiguous(entry):
            place = places.get(result.environment or "", places[""])
            machines.setdefault(place.machine)
            where = place.machine, result.environment or "", code_key(result.case)
            found.setdefault(where, []).append(_point(entry, place.header, result, measure))
    order = list(machines)
    later = _Later(entries)
    made = [
        Series(
            points[-1].result.case,
            machine,
            environment,
            tuple(_once(points)),
            later.without(machine, points[-1]),
        )
        for (machine, environment, _), points in found.items()
    ]
    return tuple(sorted(made, key=lambda one: order.index(one.machine)))


def _unambiguous(entry: Entry) -> Iterator[Result]:
    counts = Counter(_name(result) for result in entry.session.results)
    return (result for result in entry.session.results if counts[_name(result)] == 1)


def _name(result: Result) -> Key:
    return (*code_key(result.case), result.environment)


@dataclass(frozen=True)
class Place:
    """What a session measured in: its header with that environment, and the machine."""

    header: Header
    machine: Machine


def _places(entry: Entry) -> dict[str, Place]:
    """The places of a session by the name of the environment, "" for its own."""
    environments: dict[str, Mapping[str, Any]] = {"": entry.session.environment}
    for environment in entry.session.environments:
        environments.setdefault(str(environment.get("name", "")), environment)
    return {
        name: Place(
            entry.session.model_copy(
                update={"environment": dict(environment), "environments": [], "results": []}
            ),
            machine_of(environment),
        )
        for name, environment in environments.items()
    }


def _point(entry: Entry, header: Header, result: Result, measure: str) -> Point:
    doubt = _doubt(header, result, measure)
    side = () if doubt else _of_one_mode(processes(result, measure))
    return Point(entry, header, result, side, doubt or ("" if side else "no such time"))


def _doubt(header: Header, result: Result, measure: str) -> str:
    """Why the time of a result is not to be trusted, as :mod:`dlprof.compare` has it."""
    if result.status != "ok":
        return f"{result.status}: {result.reason or 'no reason given'}"
    known = Known(0, result)
    stateful = known.owner != "view" and known.size_bytes >= STATEFUL_BYTES
    if stateful or not steady(result, measure):
        return untrusted(header) or ""
    return ""


def _of_one_mode(side: Side) -> Side:
    """The processes of the mode that most are in, the slower one on a tie."""
    if not side:
        return side
    modes = stats.find_modes(
        [process.time_ns for process in side], [process.page_faults for process in side]
    )
    largest = max(modes, key=lambda mode: (len(mode), side[mode[0]].time_ns))
    return tuple(side[index] for index in sorted(largest))


def _once(points: Iterable[Point]) -> list[Point]:
    """A session that was added before and after ``--resume`` counts once, with all its rounds."""
    kept: dict[Any, Point] = {}
    for point in points:
        first = point.side[0] if point.side else None
        name = (point.entry.created, first, point.entry.id if first is None else "")
        if name not in kept or len(kept[name].side) <= len(point.side):
            kept[name] = point
    return list(kept.values())


class _Later:
    """Which sessions came after a point, and whether they were asked for its case."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._entries = entries
        self._machines = [machine_of(entry.session.environment) for entry in entries]
        self._places = {entry.id: place for place, entry in enumerate(entries)}

    def without(self, machine: Machine, last: Point) -> int:
        """How many later sessions of the machine were asked for the case of ``last`` in vain."""
        after = range(self._places[last.entry.id] + 1, len(self._entries))
        return sum(
            self._machines[place] == machine and _was_asked(self._entries[place].session, last)
            for place in after
        )


def _was_asked(header: Header, point: Point) -> bool:
    return header.complete and header.request != {} and asked_for(header, point.result.case)
