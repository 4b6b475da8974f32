"""Changes of verdict from session to session: for the worse, for the better, or merely other.

Not every session answers everything: one has no diagnosis, another one crashes. So each measure is
compared with the last session that answered it, and what changed is what differs since that one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from dlprof.compare.verdicts import (
    BETTER,
    CRASHED,
    LOST,
    MEASURED,
    SCALES,
    SKIPPED,
    Change,
    answers,
    changes,
    crashed_in,
)
from dlprof.history.series import Cause, Point, cause
from dlprof.session.model import Result, Verdict

STATUS = "status"
PEAK = "peak_memory"
NAMES = (*SCALES, PEAK)
"""Measures that a session may leave unanswered."""


@dataclass(frozen=True)
class VerdictStep:
    """A change, and what changed since the last session that knew better."""

    change: Change
    cause: Cause


def verdict_steps(points: Sequence[Point]) -> tuple[VerdictStep, ...]:
    """All changes of a series, oldest first; what could not be told is none."""
    taken = [point for point in points if point.result.status != SKIPPED]
    if not taken:
        return ()
    memory = _Memory(taken[0])
    memory.learn(taken[0])
    return tuple(step for point in taken[1:] for step in memory.steps(point))


@dataclass
class _Memory:
    """``last`` is the newest session, ``measured`` the newest that was measured, ``known`` by
    measure the newest that answered it.
    """

    last: Point
    measured: Point | None = None
    known: dict[str, Point] = field(default_factory=dict)
    tried: Verdict[Any] | None = None
    crashed: set[str] = field(default_factory=set)

    def steps(self, point: Point) -> list[VerdictStep]:
        """What changed with the next session, which is remembered then."""
        found = [*self._of_status(point), *self._of_measures(point)]
        self.learn(point)
        return found

    def learn(self, point: Point) -> None:
        self.last = point
        self.tried = point.tried or self.tried
        if point.result.status in MEASURED:
            self.measured = point
            self.known |= {name: point for name in NAMES if answers(point.result, name)}

    def _of_status(self, point: Point) -> Iterator[VerdictStep]:
        for change in changes(self.last.result, point.result):
            if change.what == STATUS:
                yield VerdictStep(change, cause(self.last, point))

    def _of_measures(self, point: Point) -> Iterator[VerdictStep]:
        if self.measured is None or point.result.status not in MEASURED:
            return
        yield from self._recovered(self.measured, point)
        base = self._remembered(self.measured.result)
        tried = self.tried, point.tried or self.tried
        for change in changes(base, self._filled(base, point.result), tried):
            if change.what == STATUS or change.direction == LOST or self._is_old(change):
                continue
            name = PEAK if change.what == "peak memory" else change.what
            yield VerdictStep(change, cause(self.known.get(name, self.measured), point))

    def _recovered(self, measured: Point, point: Point) -> Iterator[VerdictStep]:
        for name in sorted(self.crashed):
            if answers(point.result, name):
                self.crashed.discard(name)
                word = getattr(point.result, name).verdict
                yield VerdictStep(Change(name, CRASHED, word, BETTER), cause(measured, point))

    def _is_old(self, change: Change) -> bool:
        """Whether it is a crash that was told before."""
        if change.after != CRASHED:
            return False
        old = change.what in self.crashed
        self.crashed.add(change.what)
        return old

    def _remembered(self, result: Result) -> Result:
        """A result with everything that is known by now."""
        return result.model_copy(
            update={name: getattr(point.result, name) for name, point in self.known.items()}
        )

    @staticmethod
    def _filled(base: Result, now: Result) -> Result:
        """The newer result; what it does not answer is as it was. A crash is an answer."""
        left = (name for name in NAMES if not (answers(now, name) or crashed_in(now, name)))
        return now.model_copy(update={name: getattr(base, name) for name in left})
