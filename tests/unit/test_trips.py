"""Round trips over several processes: one answer, or why there is none."""

from __future__ import annotations

import pytest

from dlprof.interpreter import Outcome
from dlprof.trips import _merged

pytestmark = pytest.mark.unit


def said(per_trip_ns, **changes):
    part = {
        "idle": {"loops": 100, "samples_ns": [per_trip_ns] * 5},
        "parts": {"there_ns": per_trip_ns / 2, "back_ns": per_trip_ns / 2},
        "loaded": None,
        "loaded_from": "back",
        "not_loaded": "no queue",
        "restarted": None,
    }
    return Outcome("ok", None, parts={"round_trip": part | changes})


def test_the_time_is_the_median_of_the_processes():
    trip = _merged((3, 4), [(0, said(100.0)), (1, said(104.0)), (2, said(102.0))], 100)
    assert (trip.there, trip.back, trip.iterations) == (3, 4, 100)
    assert trip.idle.median_ns == 102.0
    assert len(trip.idle.processes) == 3
    assert trip.parts["there_ns"] == 51.0
    assert (trip.loaded, trip.not_loaded, trip.reason) == (None, "no queue", None)


def test_a_process_that_died_leaves_the_others():
    trip = _merged((0, 1), [(0, Outcome("crashed", "killed")), (1, said(100.0))], 100)
    assert trip.idle.median_ns == 100.0
    assert trip.reason is None


def test_a_trip_that_no_process_made_says_why():
    trip = _merged((0, 1), [(0, Outcome("unsupported", "BufferError: no"))], 100)
    assert (trip.idle, trip.reason) == (None, "BufferError: no")


def test_the_load_is_the_median_of_those_that_were_loaded():
    loaded = {"queued_ns": 50.0, "there_ns": 49.0}
    trip = _merged((0, 1), [(0, said(1.0, loaded=loaded)), (1, said(1.0))], 100)
    assert trip.loaded == loaded
