"""Round trips in a row: how many calls are made, from where, and what is said of them."""

from __future__ import annotations

import numpy
import pytest
from builders import make_subject

from dlprof.probes.base import Import, Protocol
from dlprof.worker import round_trip

pytestmark = pytest.mark.unit

TRIPS = 20
BUDGET_NS = 1


def way(code, **names):
    return make_subject(import_=Import("any", (Protocol.DLPACK,), code), **names)


def measured(there, back="{x}[...]", **names):
    return round_trip.measure(way(there, **names), way(back, **names), TRIPS, BUDGET_NS)


def test_a_trip_has_two_halves_and_a_time():
    found = measured("{x}[...]")
    assert found["idle"]["loops"] == TRIPS
    assert len(found["idle"]["samples_ns"]) >= 5
    assert min(found["idle"]["samples_ns"]) > 0
    assert set(found["parts"]) == {"there_ns", "back_ns", "wait_ns", "first_ns", "last_ns"}


def test_what_comes_back_goes_again():
    seen = []
    measured("seen.append(id({x})) or {x}.copy()", "{x}.copy()", seen=seen)
    assert len(set(seen)) > 2
    found = measured("{x} + 1", "{x} + 1")
    assert found["restarted"] is None


def test_where_it_cannot_go_again_each_trip_begins_with_the_same_array():
    seen = []

    def once(array):
        if array[0, 0] < 0:
            raise BufferError("read-only")
        seen.append(id(array))
        return array

    found = measured("once({x})", "-{x} - 1", once=once)
    assert found["restarted"] == "BufferError: read-only"
    assert len(set(seen)) == 1


def test_a_way_that_never_works_is_refused_in_its_own_words():
    def no(_):
        raise TypeError("never")

    with pytest.raises(TypeError, match="never"):
        measured("no({x})", no=no)


def test_a_producer_that_finishes_its_work_is_not_loaded_and_says_why():
    found = measured("{x}[...]")
    assert found["loaded"] is None
    assert found["not_loaded"].count("numpy finishes its work on cpu before it returns") == 2


def test_the_time_of_the_halves_is_without_the_clock():
    times = [0, 150, 350, 500, 700, 750]
    parts = round_trip._parts(times, clock_ns=50.0)
    assert parts == {
        "there_ns": 100.0,
        "back_ns": 150.0,
        "wait_ns": 0.0,
        "first_ns": 250.0,
        "last_ns": 250.0,
    }


def test_a_queue_is_what_the_first_trip_waits_for():
    class Queue:
        def enqueue(self, work):
            return numpy.zeros(4) + work

        def finish(self, array):
            pass

    trips = round_trip.Trips(lambda array, n: [5, 105, 110, 120, 130, 131], lambda array, n: 0)
    found = round_trip._behind(Queue(), trips, 2, 1)
    assert (found["there_ns"], found["back_ns"]) == (100.0, 5.0)
    assert (found["others_ns"], found["wait_ns"]) == (20.0, 1.0)


def run(queueing, first):
    return {"queued_ns": 100.0, "queueing_ns": queueing, "there_ns": first, "back_ns": 0.0}


def test_a_trip_that_began_when_its_queue_was_nearly_over_does_not_count():
    found, why = round_trip.middle([run(90.0, 1.0), run(1.0, 97.0), run(2.0, 98.0)])
    assert found["there_ns"] == 98.0
    assert why is None
    assert round_trip.middle([run(90.0, 1.0)]) == (
        None,
        "the queue was empty before the first trip began",
    )
