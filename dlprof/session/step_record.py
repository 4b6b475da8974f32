"""What a session tells of a step of inference."""

from __future__ import annotations

from dlprof.session.evidence import Maybe, Reuse, Verdict
from dlprof.session.measured import Model, Share, TimeMeasure


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

    Of ``kept`` outputs so many have ``buffers`` of their own; ``kept_bytes`` is how much more
    memory malloc had handed out for each.
    """

    per_call: float | None = None
    bytes_per_call: float | None = None
    how: str | None = None
    reason: str | None = None
    kept: int | None = None
    buffers: int | None = None
    kept_bytes: float | None = None


class Step(Model):
    """A step of inference; the case's ``import`` is the strategy for its output. ``reuse`` is
    ``overwritten``, ``kept`` or ``unknown``: whether an output changes when further calls are made.
    """

    versus: Maybe[Versus] = None
    shape_change: Maybe[ShapeChange] = None
    allocations: Allocations | None = None
    reuse: Verdict[Reuse] | None = None
