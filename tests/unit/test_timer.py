"""Timed loops on a fake clock: exact times."""

import itertools
from types import SimpleNamespace

import pytest
from builders import Clock

from dlprof.worker import timer


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(timer, "time", SimpleNamespace(perf_counter_ns=clock.perf_counter_ns))
    monkeypatch.setattr(timer, "counted", lambda: timer.Counted(0, 0, 0))
    monkeypatch.setattr(timer, "foreign_ns", lambda: 0)
    return clock


def loop_of(clock, ns, statement="work(ns)"):
    return timer.compile_loop(statement, {"work": clock.advance, "ns": ns})


def test_a_result_is_dropped_inside_the_loop():
    alive, most = set(), []

    class Result:
        def __init__(self):
            alive.add(id(self))
            most.append(len(alive))

        def __del__(self):
            alive.discard(id(self))

    timer.compile_loop("Result()", {"Result": Result})(20)
    assert max(most) == 1


class Later:
    """A statement of ``call_ns`` that leaves ``work_ns`` of work to another thread."""

    def __init__(self, clock, call_ns, work_ns):
        self.clock, self.call_ns, self.work_ns = clock, call_ns, work_ns
        self.done_ns = 0
        self.seen, self.most = [], 0

    def __call__(self):
        self.seen.append(self.left_ns)
        self.clock.advance(self.call_ns)
        self.done_ns = max(self.done_ns, self.clock.now_ns) + self.work_ns
        self.most = max(self.most, self.left_ns // self.work_ns)

    @property
    def left_ns(self):
        return max(0, self.done_ns - self.clock.now_ns)

    def drain(self):
        waited = self.left_ns
        self.clock.advance(waited)
        return waited

    def sample(self, most_loops):
        loop = timer.compile_loop("work()", {"work": self})
        return timer.sample(loop, 0, backlog=timer.Backlog(self.drain, most_loops))


def test_each_sample_starts_with_no_work_left_and_limits_the_work_in_flight(clock):
    later = Later(clock, 20_000, 300_000)
    timing = later.sample(most_loops=8)
    first_of_each = later.seen[-timing.loops * len(timing.samples_ns) :: timing.loops]
    assert first_of_each == [0] * len(timing.samples_ns)
    assert (timing.loops, later.most <= 8, set(timing.samples_ns)) == (8, True, {20_000.0})


def test_page_faults_are_per_call_and_of_the_samples_only(clock, monkeypatch):
    faults = [0]
    monkeypatch.setattr(timer, "counted", lambda: timer.Counted(faults[0], 0, 0))

    def work():
        faults[0] += 3
        clock.advance(1_000_000)

    timing = timer.sample(timer.compile_loop("work()", {"work": work}), budget_ns=0)
    assert timing.page_faults_per_call == 3


class Stalling:
    """A statement of ``ns`` that is preempted in each of its first calls."""

    def __init__(self, clock, monkeypatch, ns, calls, runs=False):
        self.clock, self.ns, self.left, self.runs = clock, ns, calls, runs
        self.preempted = self.own_ns = 0
        monkeypatch.setattr(timer, "counted", lambda: timer.Counted(0, self.preempted, self.own_ns))
        monkeypatch.setattr(timer, "foreign_ns", lambda: clock.now_ns)
        monkeypatch.setattr(timer, "waited_ns", dict)

    def work(self):
        begin = self.clock.now_ns
        self.clock.advance(self.ns)
        if self.left:
            self.left -= 1
            self.preempted += 2
            self.clock.advance(8_000_000)
        self.own_ns += self.clock.now_ns - begin if self.runs else self.ns

    def sample(self):
        return timer.sample(timer.compile_loop("work()", {"work": self.work}), 50_000_000)


@pytest.mark.parametrize("calls", [2, 12])
def test_early_stalls_do_not_decide_the_length_of_a_sample(clock, monkeypatch, calls):
    timing = Stalling(clock, monkeypatch, 8_000, calls).sample()
    assert timing.loops * timing.median_ns >= timer.MIN_SAMPLE_NS
    assert (timing.median_ns, timing.is_disturbed) == (8_000, False)


def test_a_statement_that_always_stalls_is_sampled_a_few_times_and_called_disturbed(
    clock, monkeypatch
):
    stalling = Stalling(clock, monkeypatch, 8_000, 10**9)
    assert stalling.sample().is_disturbed
    assert 10**9 - stalling.left < 10 * timer.TRIES * timer.MIN_SAMPLES


def test_disturbed_samples_do_not_count_if_enough_others_are_there(clock, monkeypatch):
    stalling, stalls = Stalling(clock, monkeypatch, 8_000_000, 0), itertools.cycle((0, 1, 1))

    def work():
        stalling.left = next(stalls)
        stalling.work()

    timing = timer.sample(timer.compile_loop("work()", {"work": work}), 500_000_000)
    assert (timing.median_ns, timing.disturbed) == (8_000_000, 0)
    assert len(timing.samples_ns) >= timer.MIN_SAMPLES


def test_a_statement_that_ran_all_the_time_is_genuinely_slow(clock, monkeypatch):
    timing = Stalling(clock, monkeypatch, 8_000_000, 10**9, runs=True).sample()
    assert (timing.disturbed, timing.median_ns) == (0, 16_000_000)


def test_loops_in_turns_are_retried_if_one_was_calibrated_at_a_bad_moment(clock, monkeypatch):
    stalling = Stalling(clock, monkeypatch, 8_000, 3)
    loops = {
        "stalling": timer.compile_loop("work()", {"work": stalling.work}),
        "steady": loop_of(clock, 300),
    }
    timings = timer.sample_in_turn(loops, 10_000_000, 0.0)
    assert {name: timing.median_ns for name, timing in timings.items()} == {
        "stalling": 8_000,
        "steady": 300,
    }
