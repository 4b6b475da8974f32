"""Values behind queued work: a wrong one proves a race, also of a call that waits besides."""

from __future__ import annotations

import dataclasses
import itertools

import pytest
from simulated_device import Behaviour, pair

from dlprof.worker.instruments import ordering
from dlprof.worker.load import SPIN_UNIT_NS, default_sides, load_of

pytestmark = pytest.mark.unit

MS = 1_000_000
WAITS = {"host": "host-sync", "device": "device-sync"}
ALONE = ("non-blocking", "non-blocking")
ORDERED = ("legacy", "legacy")


def load_for(streams=ALONE, producer=None, **behaviour):
    case, device = pair(None, streams, producer, **behaviour)
    return load_of(case, case.producer.enqueue(case.spec), device, default_sides(case)), device


def measured(**options):
    return ordering.measure_load(load_for(**options)[0])


@pytest.mark.parametrize("order", WAITS)
class TestACopyThatIsMadeBeforeTheWait:
    def test_it_is_a_race_whatever_its_times_say(self, order):
        found = measured(order=order, copies=True, hasty=True)
        assert (found["verdict"], found["evidence"]["values_right"]) == ("unordered", False)
        assert found["evidence"]["host"]["slope"] == pytest.approx(1, abs=0.01)

    def test_the_evidence_says_what_it_waits_for_besides(self, order):
        found = measured(order=order, copies=True, hasty=True)["evidence"]
        assert found["waits"] == WAITS[order]
        assert found["loaded"]["host_ns"] == pytest.approx(45 * MS, rel=0.01)

    def test_it_is_a_wait_alone_where_the_driver_orders_the_copy(self, order):
        found = measured(streams=ORDERED, order=order, copies=True, hasty=True)
        assert found["verdict"] == WAITS[order]
        assert "waits" not in found["evidence"]


@pytest.mark.parametrize("copies", [False, True], ids=["view", "copy"])
@pytest.mark.parametrize("order", WAITS)
def test_a_wait_whose_values_are_right_stays_a_wait(order, copies):
    found = measured(order=order, copies=copies)
    assert (found["verdict"], found["evidence"]["values_right"]) == (WAITS[order], True)
    assert "waits" not in found["evidence"]


def test_a_view_that_waits_for_most_of_its_queue_is_a_race():
    load, device = load_for(order="nothing")

    def convert(array):
        device.spend(round(0.9 * max(0, device.end_of(array.stream) - device.now_ns)))
        return load.convert(array)

    found = ordering.measure_load(dataclasses.replace(load, convert=convert))
    assert (found["verdict"], found["evidence"]["waits"]) == ("unordered", "host-sync")


@pytest.mark.parametrize("order", [*WAITS, "event", "nothing"])
def test_reading_the_values_is_in_none_of_the_times(order):
    def points(look_ns):
        load, device = load_for(order=order, copies=True)

        def look(result):
            device.spend(look_ns)
            return load.look(result)

        load = dataclasses.replace(load, look=look)
        return ordering.measure_load(load)["evidence"]["points"]

    assert points(look_ns=900 * MS) == points(look_ns=0)


@pytest.mark.parametrize("order", WAITS)
def test_old_results_from_a_cache_are_not_taken_for_a_race(order):
    """Of a cache by address: the first array is new to it, and each that follows is not."""
    load, _ = load_for(order=order, copies=True)
    is_first = itertools.chain([True], itertools.repeat(False))
    load = dataclasses.replace(load, is_right=lambda seen, array: next(is_first))
    found = ordering.measure_load(load)
    assert (found["verdict"], found["evidence"]["values_right"]) == (WAITS[order], None)


def test_values_that_cannot_be_read_cost_no_other_answer():
    def look(result):
        raise TypeError("no such dtype")

    load, _ = load_for(order="host")
    found = ordering.measure_load(dataclasses.replace(load, look=look))
    assert found["verdict"] == "host-sync"
    assert found["evidence"]["values_right"] is None
    assert found["evidence"]["values_unread"] == "TypeError: no such dtype"


class TestWhereTimesSayNothing:
    """The host is held up after it has queued work to be timed: its queue has run dry by then."""

    def measured(self, monkeypatch, **behaviour):
        monkeypatch.setattr(ordering, "calibrate", lambda load, least_ns: (SPIN_UNIT_NS, 0.0))
        monkeypatch.setattr(ordering, "_points", lambda load, works: [])
        return measured(**behaviour)

    def test_a_wrong_value_is_a_race_all_the_same(self, monkeypatch):
        found = self.measured(monkeypatch, order="nothing")
        assert (found["verdict"], found["evidence"]["values_right"]) == ("unordered", False)
        assert "empty" in found["evidence"]["reason"]

    def test_a_right_value_proves_nothing(self, monkeypatch):
        found = self.measured(monkeypatch, order="event")
        assert (found["verdict"], found["evidence"]["values_right"]) == ("unknown", True)


def test_a_queue_that_is_fed_slowly_convicts_by_values():
    """As frameworks do that launch one kernel for each unit of work."""
    case, device = pair(producer=Behaviour(private=True), order="nothing", private=True)
    plain = case.producer.compute

    def slow(source, work_ns):
        result = plain(source, work_ns)
        device.spend(round(0.6 * work_ns))
        return result

    case.producer.compute = slow
    load = load_of(case, case.producer.enqueue(case.spec), device, default_sides(case))
    found = ordering.measure_load(load)
    assert (found["verdict"], found["evidence"]["values_right"]) == ("unordered", False)
    assert "runs it" in found["evidence"]["reason"]
