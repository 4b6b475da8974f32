"""What a session holds of the run as a whole: the machine's speed, trips there and back."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from dlprof.measured import Model, TimeMeasure


class Reference(Model):
    """What one process took for what no framework has a part in; see docs/gate.md."""

    round: int
    empty_call_ns: Annotated[float, Field(gt=0)]
    memcpy_ns: Annotated[float, Field(gt=0)]
    memcpy_bytes: int
    python_ns: Annotated[float, Field(gt=0)]
    environment: str = ""


class RoundTrip(Model):
    """Trips there and back in a row, by the results with the indices ``there`` and ``back``.

    ``idle`` is the time per trip. ``parts`` are ns of one trip: each half, the first and the last
    of them, and the wait at the end. ``loaded`` is ns of the first trip's halves and of the others
    behind ``queued_ns`` of work of the producer of ``loaded_from``, which begins those trips;
    ``not_loaded`` says why there is none, ``reason`` why nothing.
    """

    there: int
    back: int
    iterations: int
    idle: TimeMeasure | None = None
    parts: dict[str, float] = {}
    loaded: dict[str, float] | None = None
    loaded_from: str = "there"
    restarted: str | None = None
    """Why each trip begins with the same array, if what comes back cannot go again."""
    not_loaded: str | None = None
    reason: str | None = None
