"""What several parts of a session are made of: times over processes, shares, verdicts."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="allow", populate_by_name=True, allow_inf_nan=False
    )


class ProcessSamples(Model):
    """What one process measured: samples in ns per call, each the mean of ``loops`` calls."""

    round: int
    loops: int
    samples_ns: list[float]
    page_faults_per_call: float | None = None


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
    processes: list[ProcessSamples] = []
    modes: list[Mode] = []
    same_as: str | None = None


class Verdict(Model):
    verdict: str
    evidence: dict[str, Any] = {}


class Share(Model):
    """A part of a whole, from 0 to 1; noise may carry it a little below 0."""

    median: float
    ci95: tuple[float, float] | None = None
