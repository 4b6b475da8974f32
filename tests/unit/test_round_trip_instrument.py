"""Round trips in a row: how many calls are made, from where, and what is said of them."""

import numpy
import pytest
from builders import make_subject

from dlprof.probes.base import Import, Protocol
from dlprof.worker.instruments import round_trip
from dlprof.worker.instruments.round_trip import compile_trips

TRIPS = 20


def way(code, **names):
    return make_subject(import_=Import("any", (Protocol.DLPACK,), code), **names)


def measured(there, back="{x}[...]", **names):
    return round_trip.measure(way(there, **names), way(back, **names), TRIPS, budget_ns=1)


def test_a_trip_has_a_time_and_a_producer_without_a_queue_is_not_loaded():
    found = measured("{x}[...]")
    assert found["idle"]["loops"] == TRIPS
    assert len(found["idle"]["samples_ns"]) >= 5
    assert min(found["idle"]["samples_ns"]) > 0
    assert found["loaded"] is None
    assert found["not_loaded"].count("numpy finishes") == 2


def test_the_array_that_comes_back_goes_again():
    seen = []
    found = measured("seen.append(id({x})) or {x}.copy()", "{x}.copy()", seen=seen)
    assert len(set(seen)) > 2
    assert found["restarted"] is None


def test_if_it_cannot_go_again_each_trip_begins_with_the_same_array():
    seen = []

    def once(array):
        if array[0, 0] < 0:
            raise BufferError("read-only")
        seen.append(id(array))
        return array

    found = measured("once({x})", "-{x} - 1", once=once)
    assert found["restarted"] == "BufferError: read-only"
    assert len(set(seen)) == 1


def test_the_arrays_of_the_trip_before_are_released_outside_of_both_halves():
    events = []

    class Kept(numpy.ndarray):
        def __del__(self):
            events.append("gone")

    there = way("events.append('go') or {x}.copy().view(Kept)", events=events, Kept=Kept)
    back = way("events.append('come') or numpy.asarray({x})", events=events)
    trips = compile_trips(there, back, chained=False)
    trips.halves(there.source, 3, lambda *_: events.append("look"))
    trip = ["go", "come", "look"]
    assert events[:11] == [*trip, *trip, "gone", *trip, "gone"]


def test_a_way_that_copies_only_the_first_array_is_seen_to_be_both():
    """As JAX does: what comes back begins at a better address than the first array did."""
    first = []

    def sometimes(array):
        first.append(array) if not first else None
        return array.copy() if array is first[0] else array

    found = measured("sometimes({x})", "{x}[...]", sometimes=sometimes)
    in_a_row, by_halves = found["in_a_row"], found["by_halves"]
    assert (in_a_row["there"]["copies"], by_halves["there"]["copies"] > 0) == (0, True)
    assert by_halves["there"]["views"] == (TRIPS - 1) * by_halves["there"]["copies"]


def test_the_refused_way_is_known():
    for there, back, last in (("1 / 0", "{x}", "there"), ("{x}", "1 / 0", "back")):
        stages = []
        with pytest.raises(ZeroDivisionError):
            round_trip.go_once(way(there), way(back), stages.append)
        assert stages[-1] == last


def test_a_trip_that_began_when_its_queue_was_nearly_over_does_not_count():
    def run(queueing, first):
        return {"queued_ns": 100.0, "queueing_ns": queueing, "there_ns": first, "back_ns": 0.0}

    found, why = round_trip.middle([run(90.0, 1.0), run(1.0, 97.0), run(2.0, 98.0)])
    assert (found["there_ns"], why) == (98.0, None)
    assert round_trip.middle([run(90.0, 1.0)])[0] is None
