"""From sessions to series: one for each case, machine and environment, in order of time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dlprof.analysis.case_view import CaseView
from dlprof.compare.comparison import path_of, tried_of
from dlprof.compare.match import Key, asked_for, code_key
from dlprof.compare.process import Side, median_ns, processes, steady
from dlprof.compare.statistic import STATEFUL_BYTES
from dlprof.compare.surroundings import untrusted
from dlprof.history.entry import Entry
from dlprof.history.machine import Machine, machine_of, recognised
from dlprof.session import stats
from dlprof.session.model import CaseRecord, Header, Result, Verdict


@dataclass(frozen=True)
class Point:
    """One session's word on a case.

    ``side`` are its processes, of the mode that most of them are in; empty where there is no time
    to be trusted: ``doubt`` says why. ``header`` is the session's, with the case's environment.
    ``tried`` is what the session saw of the path at chosen addresses, at whichever shape.
    """

    entry: Entry
    header: Header
    result: Result
    side: Side
    doubt: str = ""
    tried: Verdict[Any] | None = None

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
    sessions = _sessions(entries)
    for one in sessions:
        tried = tried_of(one.entry.session.results)
        for result in _unambiguous(one.entry):
            environment = result.environment or ""
            place = one.places.get(environment, one.places[""])
            machines.setdefault(place.machine)
            point = _point(one.entry, place.header, result, measure)
            point = replace(point, tried=tried.get(path_of(result)))
            where = place.machine, environment, code_key(result.case)
            found.setdefault(where, []).append(point)
    order = list(machines)
    later = _Later(sessions)
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


@dataclass(frozen=True)
class _Session:
    """An entry with the places that it measured in."""

    entry: Entry
    places: dict[str, Place]

    @property
    def environments(self) -> set[str]:
        """The names of its environments, "" for the only one."""
        return set(self.places) - {""} or {""}


def _sessions(entries: Sequence[Entry]) -> list[_Session]:
    """All sessions; where the GPUs of one have no names, its machine is the one that it can be."""
    found = [_Session(entry, _places(entry)) for entry in entries]
    known = {place.machine for one in found for place in one.places.values()}
    return [
        replace(
            one,
            places={
                name: replace(place, machine=recognised(place.machine, known))
                for name, place in one.places.items()
            },
        )
        for one in found
    ]


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
    known = CaseView(0, result)
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
    """A session that was added before and after ``--resume`` counts once, with all its rounds.

    Its first process is the same, whatever was measured later.
    """
    kept: dict[Any, Point] = {}
    for point in points:
        first = next(iter(processes(point.result, "host")), None)
        name = (point.entry.created, first, point.entry.id if first is None else "")
        if name not in kept or len(kept[name].side) <= len(point.side):
            kept[name] = point
    return list(kept.values())


class _Later:
    """Which sessions came after a point, and whether they were asked for its case."""

    def __init__(self, sessions: Sequence[_Session]) -> None:
        self._sessions = sessions
        self._at = {one.entry.id: at for at, one in enumerate(sessions)}

    def without(self, machine: Machine, last: Point) -> int:
        """How many later sessions of the machine were asked for the case of ``last`` in vain."""
        after = self._sessions[self._at[last.entry.id] + 1 :]
        return sum(_was_asked(one, machine, last) for one in after)


def _was_asked(session: _Session, machine: Machine, point: Point) -> bool:
    """In its environment. A session that holds the case twice does not lack it."""
    environment, header = point.result.environment or "", session.entry.session
    if environment not in session.environments or not header.complete or header.request == {}:
        return False
    if session.places[environment].machine != machine:
        return False
    held = any(_name(one) == _name(point.result) for one in header.results)
    return not held and asked_for(header, point.result.case)
