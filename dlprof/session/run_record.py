"""What a session holds of the run as a whole: trips there and back."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator

from dlprof.session.evidence import Maybe
from dlprof.session.measured import Model, TimeMeasure


def _known(parts: Any) -> Any:
    """The parts that are numbers."""
    if not isinstance(parts, dict):
        return parts
    return {name: value for name, value in parts.items() if value is not None}


class WayLook(Model):
    """How often a way was a view or a copy, and at multiples of which bytes those sources began."""

    views: int = 0
    copies: int = 0
    unknown: int = 0
    view_alignments: list[int] = []
    copy_alignments: list[int] = []


class TripLook(Model):
    """What one process saw of both ways in its trips."""

    there: WayLook = WayLook()
    back: WayLook = WayLook()


class TripProcess(Model):
    """What one process of trips saw: ``in_a_row`` in the last trip of each run that ``idle`` tells
    of, ``by_halves`` in each trip of the runs that ``parts`` tells of.
    """

    round: int
    in_a_row: TripLook
    by_halves: TripLook


class Refused(Model):
    """A result whose path was to be taken, and why it was not."""

    result: int
    reason: str


class RoundTrip(Model):
    """Trips there and back in a row, by the results with the indices ``there`` and ``back``.

    ``idle`` is the time per trip. ``parts`` are ns of one trip in which the result of each half is
    waited for: each half, the same until its call returns, the release of what the trip before
    made, and the first and the last of the trips. ``loaded`` is ns of the first trip's halves and
    of the others
    behind ``queued_ns`` of work of the producer of ``loaded_from``, which begins those trips;
    ``not_loaded`` says why there is none, ``reason`` why nothing.
    """

    there: int
    back: int
    iterations: int
    idle: Maybe[TimeMeasure] = None
    parts: Annotated[dict[str, float], BeforeValidator(_known)] = {}
    processes: list[TripProcess] = []
    refused: list[Refused] = []
    """Paths that were cheaper and did not work for the array of the trips."""
    loaded: Maybe[dict[str, float]] = None
    loaded_from: str = "there"
    restarted: str | None = None
    """Why each trip begins with the same array, if what comes back cannot go again."""
    not_loaded: str | None = None
    reason: str | None = None
