"""A worker's turns: the samples it takes between them, and the processor it takes them on."""

import os
import threading
import time

import numpy
import pytest

from dlprof.runner.schedule import page_offset
from dlprof.worker import timer, turns
from dlprof.worker.turns import MOST_TURNS, PAGE_BYTES, TURN_NS, Turns, place_next_block

CALL_NS = 4_000
CPU = max(os.sched_getaffinity(0))
BUDGET_NS = 60_000_000


class Channel:
    def __init__(self, wanted=None):
        self.asked = []
        self.calls = []
        self.wanted = wanted

    def turn(self, identity, name, calls):
        self.asked.append((identity, name))
        self.calls.append(calls)
        return self.wanted


class Loop:
    """A call that takes 4 us; ``ran`` records the turns, calls and processors."""

    def __init__(self, channel, slow=()):
        self.channel = channel
        self.slow = slow
        self.ran = []

    def __call__(self, loops):
        self.ran.append((len(self.channel.asked), loops, os.sched_getaffinity(0)))
        return loops * (CALL_NS if len(self.channel.asked) not in self.slow else 9 * CALL_NS)


@pytest.fixture
def no_other_threads(monkeypatch):
    """Threads of pytest itself do not count as the statement's."""
    monkeypatch.setattr(turns, "is_multithreaded", lambda _: False)


@pytest.fixture
def channel():
    return Channel()


def sampled(loop, channel, cpu=CPU, budget_ns=BUDGET_NS, **asked):
    return timer.sample(loop, budget_ns, turns=Turns(channel, 7, cpu, 0, "host time"), **asked)


@pytest.mark.usefixtures("no_other_threads")
def test_every_sample_has_a_turn_of_its_own_and_lasts_half_a_millisecond(channel):
    loop = Loop(channel)
    timing = sampled(loop, channel)
    assert channel.asked == [(7, "host time")] * MOST_TURNS
    assert len(timing.samples_ns) == MOST_TURNS
    assert {turn for turn, *_ in loop.ran} == set(range(MOST_TURNS + 1))
    assert TURN_NS <= timing.loops * CALL_NS < 2 * TURN_NS


@pytest.mark.usefixtures("no_other_threads")
@pytest.mark.parametrize("cpu", [CPU, None, 10**6])
def test_the_thread_is_pinned_for_its_samples_only_if_there_is_such_a_processor(channel, cpu):
    before = os.sched_getaffinity(0)
    loop = Loop(channel)
    assert sampled(loop, channel, cpu).median_ns == CALL_NS
    assert all(where == ({CPU} if cpu == CPU else before) for turn, _, where in loop.ran if turn)
    assert all(where == before for turn, _, where in loop.ran if not turn)
    assert os.sched_getaffinity(0) == before


def test_shared_work_of_several_threads_is_not_pinned_to_one_processor(channel):
    def spin():
        end = time.thread_time_ns() + 2_000_000
        while time.thread_time_ns() < end:
            pass

    def shared(loops):
        worker = threading.Thread(target=spin)
        worker.start()
        worker.join()
        return loop(loops)

    loop = Loop(channel)
    sampled(shared, channel, budget_ns=1)
    assert all(where == os.sched_getaffinity(0) for *_, where in loop.ran)


def test_a_call_that_waits_for_a_processor_does_not_change_the_sample_of_its_turn():
    calls = iter((60_000, 60_000, 9_000_000, 60_000, 60_000, 60_000, 60_000, 60_000))
    elapsed_ns = turns.time_pieces(lambda loops: sum(next(calls) for _ in range(loops)), 8, 1)
    assert elapsed_ns == 8 * 60_000


SIZE_BYTES = 100_000  # glibc maps larger blocks by themselves at first


def begins_at():
    return numpy.empty(SIZE_BYTES, "int8").ctypes.data % PAGE_BYTES


@pytest.mark.parametrize("offset", [0, 16, 32, 48, 2064])
def test_the_next_copy_begins_at_the_requested_place(offset):
    with place_next_block(offset, SIZE_BYTES):
        found = [begins_at() for _ in range(3)]
    assert found == [offset] * 3


def test_four_rounds_in_a_row_cover_all_places_in_a_line():
    offsets = [page_offset(round_) for round_ in range(256)]
    assert sorted(offsets) == list(range(0, PAGE_BYTES, 16))
    for first in range(253):
        assert {offset % 64 for offset in offsets[first : first + 4]} == {0, 16, 32, 48}
