"""What a comparison is: plain records, which reports and exit codes are made from."""

from __future__ import annotations

from dataclasses import dataclass

from dlprof.compare.match import Key
from dlprof.compare.speed import Speed
from dlprof.compare.surroundings import Difference
from dlprof.compare.verdicts import Change
from dlprof.plan.floors import Floor
from dlprof.session.model import CaseRecord, Header

INVALID, NEW, GONE = "INVALID", "NEW", "GONE"
"""The words that no statistic gives; the others are in :mod:`dlprof.compare.decision`."""

TIMED = ("ok", "invalid")
"""Statuses of a case that was measured to the end."""


@dataclass(frozen=True)
class Time:
    """What one measure says of one case.

    ``ratio`` is HEAD's time over BASE's, ``interval`` its 95 % interval, and ``corrected`` the
    interval at the level of one case of the suite, of which the lower end decides on SLOWER. None
    where there is none. ``rounds`` is about how many would tell, where that is known;
    ``noisy`` if that is too many. ``shifted`` if what all cases share leaves it open, ``open_`` if
    what the reference costs cannot tell of the machine does. ``beyond``
    if it is slower than was asked for, and within a floor that a calibration raised.
    """

    measure: str
    word: str
    floor: Floor
    base_ns: float | None = None
    head_ns: float | None = None
    ratio: float | None = None
    interval: tuple[float, float] | None = None
    corrected: tuple[float, float] | None = None
    processes: tuple[int, int] = (0, 0)
    reason: str = ""
    note: str = ""
    rounds: int | None = None
    shifted: bool = False
    open_: bool = False
    noisy: bool = False
    beyond: bool = False


@dataclass(frozen=True)
class Compared:
    """One case on both sides. ``reasons`` are what a side says of a status that is not ok.

    ``environment`` is where the sides measured it, if they have several. ``looked_at`` are the
    measures of :data:`~dlprof.compare.verdicts.SCALES` that both know, ``lost`` those that BASE
    knows and HEAD did not look at.
    """

    case: CaseRecord
    times: tuple[Time, ...]
    changes: tuple[Change, ...] = ()
    asked: bool = True
    statuses: tuple[str | None, str | None] = (None, None)
    reasons: tuple[str | None, str | None] = (None, None)
    looked_at: frozenset[str] = frozenset()
    lost: frozenset[str] = frozenset()
    environment: str = ""
    failed_once: bool = False
    """Whether one of two passes refused it or crashed, and the other did not."""
    judged: bool = True
    """Whether a time of it was to be judged; a scenario may take them out."""
    unconfirmed: bool = False
    """Whether one pass called it slower, and the other came to no answer."""
    apart: str = ""
    """What tells it from others with the same code, see :func:`dlprof.compare.comparison.apart`."""


@dataclass(frozen=True)
class Comparison:
    """``common`` is the ratio that all cases share, 1 where they share none."""

    base: Header
    head: Header
    cases: tuple[Compared, ...]
    floors: tuple[Floor, ...]
    differences: tuple[Difference, ...]
    common: float = 1.0
    ambiguous: tuple[Key, ...] = ()
    invalid: str | None = None
    """Why no time of these sessions can be compared."""
    speed: Speed | None = None
    """What HEAD's times were normalised by."""
    told: tuple[str, ...] = ()
    """How it was measured, in sentences: rounds, why they stopped, what was normalised."""
    measured_here: bool = False
    """Whether rounds could be added: by a gate that measures, and not in two finished sessions."""
    load: str | None = None
    """Which session other programs disturbed so much that times of few calls cannot be compared."""
    sightless: str = ""
    """Why no regression could have been told, in a gate that came to few rounds or was stopped."""

    def words(self) -> list[str]:
        return [time.word for case in self.cases for time in case.times]
