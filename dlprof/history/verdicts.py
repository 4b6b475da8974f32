"""Changes of verdict from session to session.

Not every session answers everything: one has no diagnosis, another one crashes. So each measure is
compared with the last session that answered it, and what changed is what differs since that one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from dlprof.compare.severity import Severities
from dlprof.compare.verdicts import (
    BETTER,
    CRASHED,
    LOST,
    MEASURED,
    SCALES,
    SKIPPED,
    STATUS,
    Change,
    answers,
    changes,
    crashed_in,
)
from dlprof.history.series import Cause, Point, cause
from dlprof.session.model import Result, Verdict

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
    found: list[VerdictStep] = []
    known = _Known()
    for place, point in enumerate(taken):
        if place:
            before = taken[place - 1]
            status = (one for one in changes(before.result, point.result) if one.what == STATUS)
            found += [VerdictStep(change, cause(before, point)) for change in status]
        if point.result.status in MEASURED:
            found += known.steps(point)
    return tuple(found)


@dataclass
class _Known:
    """``measured`` is the newest session that was measured, ``answered`` by measure the newest that
    answered it, ``crashed`` the instruments that crashed since.
    """

    measured: Point | None = None
    answered: dict[str, Point] = field(default_factory=dict)
    tried: Verdict[Any] | None = None
    crashed: set[str] = field(default_factory=set)

    def steps(self, point: Point) -> list[VerdictStep]:
        """What changed with the next session that was measured, which is remembered then."""
        found = [] if self.measured is None else [*self._changes(self.measured, point)]
        self.measured, self.tried = point, point.tried or self.tried
        self.answered |= {name: point for name in NAMES if answers(point.result, name)}
        return found

    def _changes(self, measured: Point, point: Point) -> Iterator[VerdictStep]:
        for name in sorted(one for one in self.crashed if answers(point.result, one)):
            self.crashed.discard(name)
            ended = Change(name, CRASHED, getattr(point.result, name).verdict, BETTER)
            yield VerdictStep(ended, cause(measured, point))
        tried = self.tried, point.tried or self.tried
        severities = Severities(point.entry.session.results)
        for change in changes(*self._filled(measured.result, point.result), tried, severities):
            known_crash = change.after == CRASHED and change.what in self.crashed
            if change.what == STATUS or change.direction == LOST or known_crash:
                continue
            if change.after == CRASHED:
                self.crashed.add(change.what)
            name = PEAK if change.what == "peak memory" else change.what
            yield VerdictStep(change, cause(self.answered.get(name, measured), point))

    def _filled(self, measured: Result, now: Result) -> tuple[Result, Result]:
        """What is known by now, and the newer result; what that does not answer is as it was. A
        crash is an answer.
        """
        known = {name: getattr(point.result, name) for name, point in self.answered.items()}
        base = measured.model_copy(update=known)
        left = [name for name in NAMES if not (answers(now, name) or crashed_in(now, name))]
        return base, now.model_copy(update={name: getattr(base, name) for name in left})
