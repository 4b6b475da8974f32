"""What several processes measured together: times, shares, steps of inference, and trips."""

from __future__ import annotations

import statistics
from typing import Annotated, Any

from pydantic import BeforeValidator

from dlprof.runner.evidence import Many, Maybe, Model, Reuse, Samples, Verdict

DISTURBED = 0.5
"""From this share of a process's samples on, its median is one of a disturbed sample."""
WIDEST_SHARE = 0.25
"""A share whose interval reaches further to either side is not written as a number."""


class ProcessSamples(Model):
    """What one process measured: samples in ns per call, each the mean of ``loops`` calls.

    ``disturbed`` is the share of samples of which half or more is the time of other programs; None
    where nobody knows.
    """

    round: int
    loops: int
    samples_ns: Samples
    page_faults_per_call: float | None = None
    disturbed: float | None = None


class Mode(Model):
    """Processes that agree among themselves and with no others."""

    median_ns: float
    rounds: list[int]
    page_faults_per_call: float | None = None


class TimeMeasure(Model):
    """A time per call: the median of the process medians and its interval.

    ``ci95_ns`` is None for a single process and where there are several ``modes``.
    ``same_as`` names the measure that this one repeats; it then has no samples of its own.
    """

    median_ns: float
    ci95_ns: tuple[float, float] | None
    min_ns: float
    processes: Many[ProcessSamples] = []
    modes: list[Mode] = []
    same_as: str | None = None

    @property
    def is_disturbed(self) -> bool:
        """Whether in half of the processes half of the samples are the time of other programs."""
        disturbed = 0
        for one in self.processes:  # a generator would take most of the time of many reports
            disturbed += (one.disturbed or 0.0) >= DISTURBED
        return 0 < len(self.processes) <= 2 * disturbed

    @property
    def is_repeated(self) -> bool:
        """Whether it is known how far processes differ."""
        return self.ci95_ns is not None or bool(self.modes)

    @property
    def medians_by_round(self) -> dict[int, float]:
        """The median of each process in ns by its round, as far as its samples are there."""
        known = (one for one in self.processes if one.samples_ns)
        return {one.round: statistics.median(one.samples_ns) for one in known}

    @property
    def interval_ns(self) -> tuple[float, float] | None:
        """The interval, or from the fastest to the slowest mode; None for one process."""
        return self.modes_ns if self.modes else self.ci95_ns

    @property
    def modes_ns(self) -> tuple[float, float]:
        """The fastest and the slowest mode; twice the median where there are none."""
        found = [mode.median_ns for mode in self.modes] or [self.median_ns]
        return min(found), max(found)


class Share(Model):
    """A part of a whole, from 0 to 1; noise may carry it a little below 0."""

    median: float
    ci95: tuple[float, float] | None = None

    @property
    def half(self) -> float | None:
        """How far the interval reaches to its longer side; None for a single process."""
        if self.ci95 is None:
            return None
        return max(self.ci95[1] - self.median, self.median - self.ci95[0])

    @property
    def is_known(self) -> bool:
        """Whether the processes agree well enough for it to be a number."""
        return self.half is not None and self.half <= WIDEST_SHARE


class Versus(Model):
    """A strategy and ``fresh``, an output allocated at each call, sampled in turn: time per step,
    and per step with its output read. ``saved`` is what the strategy takes less, as a share of
    ``fresh``; below 0 it takes more. Of ``fresh`` itself there is ``reading`` alone.
    """

    step: Maybe[TimeMeasure] = None
    fresh: Maybe[TimeMeasure] = None
    reading: Maybe[TimeMeasure] = None
    fresh_reading: Maybe[TimeMeasure] = None
    saved: Maybe[Share] = None
    saved_reading: Maybe[Share] = None


class ShapeChange(Model):
    """Time per step where the shape stays and where it changes at each call, both shapes alike.

    ``shape`` is the other one. ``cost_ns`` is what a change adds to a step: the median over
    processes, each of which compares its own loops, with its interval.
    """

    shape: tuple[int, ...]
    steady: TimeMeasure
    other: TimeMeasure
    changing: TimeMeasure
    cost_ns: float
    cost_ci95_ns: tuple[float, float] | None = None


class Allocations(Model):
    """What one step allocates; None where it could not be counted, with the ``reason``.

    Of ``kept`` outputs so many have ``buffers`` of their own.
    """

    per_call: float | None = None
    bytes_per_call: float | None = None
    how: str | None = None
    reason: str | None = None
    kept: int | None = None
    buffers: int | None = None


class Step(Model):
    """A step of inference; the case's ``import`` is the strategy for its output. ``reuse`` is
    ``overwritten``, ``kept`` or ``unknown``: whether an output changes when further calls are made.
    """

    versus: Maybe[Versus] = None
    shape_change: Maybe[ShapeChange] = None
    allocations: Allocations | None = None
    reuse: Verdict[Reuse] | None = None


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
    of the others behind ``queued_ns`` of work of the producer of ``loaded_from``, which begins
    those trips; ``not_loaded`` says why there is none, ``reason`` why nothing.
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
