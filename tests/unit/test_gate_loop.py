"""When the gate measures another round and when it stops; nothing is measured, and the clock is false."""

from __future__ import annotations

import numpy as np
import pytest

from dlprof.compare.floors import Floor
from dlprof.compare.process import Process
from dlprof.compare.sequential import BLOCK, Plan
from dlprof.compare.statistic import Sample
from dlprof.compare.times import Work
from dlprof.gate.loop import (
    BUDGET,
    DECIDED,
    LAST,
    NO_TIME,
    SETTLED,
    STOPPED,
    Deadline,
    Reserve,
    run,
)

pytestmark = pytest.mark.unit

FLOOR = Floor("ready", 0.05, 0.0)


class FakeTurns:
    """Cases whose processes are drawn with the spread ``sds``; HEAD takes ``ratios`` times as long.

    ``asked`` lists the cases of each round. ``refused`` are settled after the first round;
    ``stops_in`` is the round in which the user stops it. Each round takes ``round_s`` by the clock.
    """

    def __init__(self, ratios, sds=None, refused=(), stops_in=None, round_s=1.0, seed=0):
        self.ratios = ratios
        self.sds = sds or [0.01] * len(ratios)
        self.refused = frozenset(refused)
        self.stops_in = stops_in
        self.round_s = round_s
        self.chance = np.random.default_rng(seed)
        self.asked = []
        self.now = 0.0
        self.sides = [([], []) for _ in ratios]

    def clock(self):
        return self.now

    def measure(self, round_, cases):
        if round_ == self.stops_in:
            raise KeyboardInterrupt
        assert round_ == len(self.asked)
        self.asked.append(cases)
        self.now += self.round_s
        for case in cases:
            for side, ratio in zip(self.sides[case], (1.0, self.ratios[case]), strict=True):
                time = 1000.0 * ratio * float(np.exp(self.chance.normal(0.0, self.sds[case])))
                side.append(Process(time, round_))

    def works(self):
        return [
            Work(place, FLOOR, Sample(tuple(base), tuple(head), block=BLOCK))
            for place, (base, head) in enumerate(self.sides)
        ]

    def settled(self):
        return self.refused if self.asked else frozenset()


def words(ran):
    return list(ran.course.words)


def test_equal_code_is_enough_after_two_blocks():
    ran = run(FakeTurns([1.0] * 4, [0.001] * 4), 4, Deadline())
    assert (ran.rounds, ran.stopped) == (8, DECIDED)
    assert words(ran) == ["SAME"] * 4


def test_a_slower_case_is_found():
    ran = run(FakeTurns([1.0, 1.10, 1.0]), 3, Deadline())
    assert words(ran) == ["SAME", "SLOWER", "SAME"]


def test_later_rounds_measure_only_what_is_open():
    turns = FakeTurns([1.0, 1.0], [0.001, 0.3])
    ran = run(turns, 2, Deadline())
    assert turns.asked[7] == {0, 1}
    assert all(cases == {1} for cases in turns.asked[8:])
    assert (ran.rounds, ran.stopped) == (32, LAST)
    assert words(ran) == ["SAME", "UNSURE"]


def test_no_round_begins_after_the_budget():
    turns = FakeTurns([1.0], [0.3], round_s=10.0)
    ran = run(turns, 1, Deadline.after(55.0, turns.clock))
    assert (ran.rounds, ran.stopped) == (6, BUDGET)
    assert words(ran) == ["UNSURE"]


def test_one_round_is_measured_whatever_the_budget():
    turns = FakeTurns([1.0])
    ran = run(turns, 1, Deadline.after(0.0, turns.clock))
    assert (ran.rounds, ran.stopped) == (1, BUDGET)


@pytest.mark.parametrize(("budget_s", "looks"), [(300.0, (8, 12, 16, 24)), (90.0, (8,)), (1.0, ())])
def test_the_looks_are_those_that_fit_into_the_budget(budget_s, looks):
    turns = FakeTurns([1.0], [0.3], round_s=10.0)
    ran = run(turns, 1, Deadline.after(budget_s, turns.clock))
    assert ran.course.plan.looks == (looks or Plan().looks)


def test_the_whole_level_is_spent_on_the_looks_that_fit():
    turns = FakeTurns([1.0], [0.3], round_s=10.0)
    ran = run(turns, 1, Deadline.after(170.0, turns.clock))
    assert ran.course.spent == pytest.approx(1.0)
    assert (ran.rounds, ran.stopped) == (16, NO_TIME)


def test_a_first_round_that_takes_long_does_not_choose_the_looks():
    turns = FakeTurns([1.0], [0.3])
    measure = turns.measure

    def slow_at_first(round_, cases):
        measure(round_, cases)
        turns.now += 60.0 if round_ == 0 else 0.0

    turns.measure = slow_at_first
    assert run(turns, 1, Deadline.after(100.0, turns.clock)).rounds == 32


def test_what_a_side_refuses_is_not_measured_again_and_stays_unsure():
    turns = FakeTurns([1.0, 1.0], [0.001] * 2, refused=[1])
    ran = run(turns, 2, Deadline())
    assert turns.asked[0] == {0, 1}
    assert all(cases == {0} for cases in turns.asked[1:])
    assert (words(ran), ran.stopped) == (["SAME", "UNSURE"], SETTLED)


def test_if_all_is_refused_one_round_is_enough():
    ran = run(FakeTurns([1.0], refused=[0]), 1, Deadline())
    assert (ran.rounds, ran.stopped) == (1, SETTLED)


def test_without_times_to_judge_one_round_is_measured_for_the_verdicts():
    turns = FakeTurns([])
    ran = run(turns, 0, Deadline())
    assert (ran.rounds, ran.stopped) == (1, DECIDED)


@pytest.mark.parametrize("stops_in", [0, 3, 9])
def test_who_is_stopped_says_what_is_known_by_then(stops_in):
    ran = run(FakeTurns([1.0, 1.0], [0.001, 0.3], stops_in=stops_in), 2, Deadline())
    assert (ran.rounds, ran.stopped, ran.interrupted) == (stops_in, STOPPED, True)
    assert words(ran)[0] == ("SAME" if stops_in > 8 else "UNSURE")


def test_a_word_does_not_change_once_it_is_given():
    turns = FakeTurns([1.0, 1.0], [0.001, 0.3])
    ran = run(turns, 2, Deadline())
    assert ran.course.looks_done == 5
    assert words(ran)[0] == "SAME"


def with_reserve(turns, seconds, kept_from_s, **flagged):
    reserve = Reserve(Deadline.after(kept_from_s, turns.clock), **flagged)
    cases = len(turns.ratios)
    return run(turns, cases, Deadline.after(seconds, turns.clock), reserve=reserve)


def test_time_kept_back_is_used_where_there_is_nothing_to_measure_again():
    ran = with_reserve(FakeTurns([1.0], [0.3], round_s=10.0), 170.0, 119.0)
    assert (ran.course.plan.looks, ran.course.plan.extra) == ((8,), (12, 16))
    assert (ran.rounds, ran.stopped) == (16, NO_TIME)


def test_time_is_kept_back_for_a_case_that_is_slower():
    ran = with_reserve(FakeTurns([1.5, 1.0], [0.005, 0.3], round_s=10.0), 170.0, 119.0)
    assert words(ran)[0] == "SLOWER"
    assert (ran.rounds, ran.stopped) == (8, NO_TIME)


def test_time_is_kept_back_for_a_verdict_that_is_worse():
    turns = FakeTurns([1.0], [0.3], round_s=10.0)
    ran = with_reserve(turns, 170.0, 119.0, flagged=lambda: True)
    assert (ran.rounds, ran.stopped) == (8, NO_TIME)


def test_no_round_begins_in_the_time_kept_back_once_something_is_flagged():
    turns = FakeTurns([1.0], [0.3], round_s=10.0)
    ran = with_reserve(turns, 100.0, 55.0, flagged=lambda: True)
    assert (ran.rounds, ran.stopped) == (6, BUDGET)


def test_where_all_looks_fit_nothing_is_kept_of_the_level():
    ran = with_reserve(FakeTurns([1.0], [0.3]), 1000.0, 700.0)
    assert ran.course.plan == Plan()
