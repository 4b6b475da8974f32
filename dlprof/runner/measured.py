"""What several processes measured together: times, shares, and steps of inference."""

from __future__ import annotations

import statistics

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
    """What one step allocates; None where it could not be counted.

    Of ``kept`` outputs so many have ``buffers`` of their own.
    """

    per_call: float | None = None
    bytes_per_call: float | None = None
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
