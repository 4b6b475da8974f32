"""A result as a history keeps it: everything that comparisons read, in little space."""

from __future__ import annotations

from typing import Any

from dlprof.analysis.known import mapping
from dlprof.compare.process import time_ns
from dlprof.session.model import ProcessSamples, Result, TimeMeasure
from dlprof.session.slim import slim


def reduced(result: Result) -> Result:
    """The result with one sample per process: the value that comparisons take of it.

    :func:`dlprof.compare.process.processes` finds the same in both.
    """
    times: dict[str, Any] = {
        name: _one_sample_each(measure)
        for name in ("host_time", "ready_time")
        if (measure := getattr(result, name)) is not None
    }
    warm = mapping((result.device_time or {}).get("warm")).get("median_ns")
    lighter = {
        **times,
        "device_time": None if warm is None else {"warm": {"median_ns": warm}},
        "handshake": [],
        "placement": None,
    }
    return slim(result).model_copy(update=lighter)


def _one_sample_each(measure: TimeMeasure) -> TimeMeasure:
    return measure.model_copy(update={"processes": [_one(one) for one in measure.processes]})


def _one(process: ProcessSamples) -> ProcessSamples:
    samples = [time_ns(process)] if process.samples_ns else []
    return process.model_copy(update={"samples_ns": samples})
