"""Growth: leaks of repeated calls are distinguished from garbage, caches and late releases."""

import itertools
import os
import random

import pytest

from dlprof.probes.base import Unsupported
from dlprof.worker import growth

SIZE_BYTES = 64 << 10


class Clock:
    """A clock that advances only during sleep; ``due`` maps times to events."""

    def __init__(self):
        self.now, self.due = 0.0, []

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds
        while self.due and self.due[0][0] <= self.now:
            self.due.pop(0)[1]()


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(growth, "time", clock)
    return clock


def grown(call, **options):
    return growth.measure_growth(call, object(), (lambda: 0,), SIZE_BYTES, **options)


def test_garbage_that_waits_for_a_collection_is_not_retained():
    def cycle():
        ring = []
        ring.append(ring)

    assert not growth.reaches(grown(cycle), "retained")


def test_garbage_of_a_meter_hides_no_leak():
    def meter():
        ring = [[] for _ in range(300)]
        ring.append(ring)
        return 0

    kept = []
    found = growth.measure_growth(lambda: kept.append([[]]), object(), (meter,), SIZE_BYTES)
    assert found["objects_per_conversion"] > 1.9


def test_each_file_that_stays_open_is_counted():
    kept = []
    found = grown(lambda: kept.append(os.open(os.devnull, os.O_RDONLY)))
    for descriptor in kept:
        os.close(descriptor)
    assert found["descriptors_per_conversion"] == pytest.approx(1, abs=0.1)
    assert growth.reaches(found, "retained")
    assert len(kept) < 1000  # a process may have a thousand


@pytest.mark.parametrize("leaks", [False, True])
def test_a_late_release_is_not_retained(clock, leaks):
    late, kept = [], []

    def call():
        if leaks:
            kept.append([object() for _ in range(3)])
            return
        late.append([object() for _ in range(3)])
        clock.due.append((clock.now + 0.6, late.pop))

    assert growth.reaches(grown(call), "retained") is leaks


def test_a_cache_that_fills_for_some_runs_is_not_retained():
    kept, calls = [], itertools.count()

    def fills():
        number = next(calls)
        if number < 5 * growth.CALLS and number % 3 == 0:
            kept.append(object())

    assert not growth.reaches(grown(fills), "retained")


@pytest.mark.parametrize("leaks", [False, True])
def test_a_cache_that_fills_more_slowly_in_each_run_is_not_retained(leaks):
    kept, cache, draw = [], {}, random.Random(0).randrange

    def fills():
        for _ in range(5):
            cache.setdefault(draw(3000), object())
        if leaks:
            kept.append([[]])

    found = grown(fills)
    assert growth.reaches(found, "retained") is leaks
    assert growth.reaches(found, "nothing")


def test_an_object_at_every_second_call_may_be_a_cache_that_fills():
    kept, calls = [], itertools.count()

    def fills():
        if next(calls) % 2 == 0:
            kept.append(object())

    found = grown(fills)
    assert not growth.reaches(found, "retained")
    assert growth.reaches(found, "nothing")


def test_slow_calls_are_counted_in_shorter_runs(clock):
    def call():
        clock.now += 0.04
        kept.append([[] for _ in range(3)])

    kept = []
    found = grown(call)
    assert growth.reaches(found, "retained")
    assert found["conversions"] == growth.LEAST_CALLS


def test_calls_of_a_second_are_too_slow_to_be_repeated(clock):
    calls = []

    def call():
        calls.append(None)
        clock.now += 1

    with pytest.raises(Unsupported, match="too slow to repeat"):
        grown(call)
    assert len(calls) == 2
