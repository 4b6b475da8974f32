"""When the gate measures another round and when it stops; nothing is measured, and the clock is false."""

from __future__ import annotations

import numpy as np
import pytest

from dlprof.compare import statistic
from dlprof.compare.process import Process
from dlprof.compare.sequential import IN_TURNS, LOOKS
from dlprof.compare.statistic import Sample
from dlprof.compare.times import Work
from dlprof.gate import loop
from dlprof.gate.loop import (
    BUDGET,
    DECIDED,
    HALF,
    LAST,
    SETTLED,
    STOPPED,
    Deadline,
    Reserve,
)
from dlprof.plan.floors import Floor

pytestmark = pytest.mark.unit

FLOOR = Floor("ready", 0.05, 0.0)


class FakeTurns:
    """Cases whose processes are drawn with the spread ``sds``; HEAD takes ``ratios`` times as long.

    ``stateful`` are copies that run in states.
    ``asked`` lists the cases of each round. ``refused`` are settled after the first round;
    ``stops_in`` is the round in which the user stops it. Each round takes ``round_s`` by the clock.
    """

    def __init__(
        self, ratios, sds=None, refused=(), stops_in=None, round_s=1.0, seed=1, stateful=False
    ):
        self.ratios = ratios
        self.stateful = stateful
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
            Work(place, FLOOR, Sample(tuple(base), tuple(head), self.stateful, in_turns=True))
            for place, (base, head) in enumerate(self.sides)
        ]

    def settled(self):
        return self.refused if self.asked else frozenset()


def run(turns, cases, deadline, reserve=None):
    return loop.run(turns, cases, deadline, IN_TURNS, reserve)


def words(ran):
    return list(ran.course.words)


def test_equal_code_is_enough_after_eight_rounds():
    ran = run(FakeTurns([1.0] * 4, [0.001] * 4), 4, Deadline())
    assert (ran.rounds, ran.stopped) == (8, DECIDED)
    assert words(ran) == ["SAME"] * 4


def test_a_slower_case_is_found():
    ran = run(FakeTurns([1.0, 1.10, 1.0]), 3, Deadline())
    assert words(ran) == ["SAME", "SLOWER", "SAME"]


def test_later_rounds_measure_only_what_is_open():
    turns = FakeTurns([1.0, 1.045], [0.001, 0.06])
    ran = run(turns, 2, Deadline())
    assert turns.asked[7] == {0, 1}
    assert all(cases == {1} for cases in turns.asked[8:])
    assert (ran.rounds, ran.stopped) == (LOOKS[-1], LAST)
    assert words(ran) == ["SAME", "UNSURE"]


def test_a_case_that_all_looks_would_not_decide_is_given_up():
    turns = FakeTurns([1.0, 1.0], [0.03, 1.0])
    ran = run(turns, 2, Deadline())
    assert all(cases == {0} for cases in turns.asked[8:])
    assert words(ran) == ["SAME", "UNSURE"]


def test_a_noisy_case_that_leans_to_slower_is_measured_on():
    turns = FakeTurns([1.6], [0.4], seed=12)
    ran = run(turns, 1, Deadline())
    assert ran.rounds > LOOKS[0]
    assert words(ran) == ["SLOWER"]


def at_half(turns, cases, rounds):
    """Half of the time is over after so many rounds."""
    half = Deadline.after(10.0 * rounds + 5.0, turns.clock)
    until = Deadline.after(20.0 * rounds, turns.clock)
    return run(turns, cases, until, Reserve(until, half=half))


def estimates(turns):
    return [float(statistic.tested(work.sample, 0.1).test.location) for work in turns.works()]


@pytest.mark.parametrize("seed", range(12))
def test_the_second_half_is_for_views_that_look_slower_by_more_than_half_of_the_floor(seed):
    turns = FakeTurns([1.025] * 3, [0.05] * 3, round_s=10.0, seed=seed)
    at_half(turns, 3, 10)
    stopped = FakeTurns([1.025] * 3, [0.05] * 3, round_s=10.0, seed=seed)
    run(stopped, 3, Deadline.after(95.0, stopped.clock))
    above = {place for place, one in enumerate(estimates(stopped)) if one > FLOOR.step(1000.0) / 2}
    left = turns.asked[10] if len(turns.asked) > 10 else frozenset()
    assert left == above & turns.asked[9]


def test_the_second_half_is_for_copies_that_surely_are_slower_by_enough():
    turns = FakeTurns([1.025, 1.05], [0.04, 0.06], round_s=10.0, seed=9, stateful=True)
    ran = at_half(turns, 2, 20)
    assert turns.asked[19] == {0, 1}
    assert all(cases == {1} for cases in turns.asked[20:])
    assert ran.rounds > 20


class Outliers(FakeTurns):
    """BASE takes 1.5 times as long in these rounds of the last case."""

    def __init__(self, *arguments, rounds, **named):
        super().__init__(*arguments, **named)
        self.rounds = rounds

    def measure(self, round_, cases):
        super().measure(round_, cases)
        if round_ in self.rounds:
            base, _ = self.sides[-1]
            base[-1] = Process(1.5 * base[-1].time_ns, round_)


def test_two_outliers_before_half_of_the_time_cost_no_regression():
    turns = Outliers([1.0, 1.05], [0.001, 0.01], rounds=(3, 11), round_s=10.0)
    ran = at_half(turns, 2, 18)
    assert ran.rounds > 18
    assert words(ran) == ["SAME", "SLOWER"]


def test_what_surely_differs_by_too_little_is_not_worth_the_second_half():
    turns = FakeTurns([1.022], [0.018], round_s=10.0, seed=6)
    ran = at_half(turns, 1, 20)
    (work,) = turns.works()
    assert float(statistic.tested(work.sample, 0.1).test.p_above(0.0)) < 0.001
    assert (ran.rounds, ran.stopped) == (20, HALF)


def test_from_half_of_the_time_on_only_what_is_slower_is_measured():
    turns = FakeTurns([1.0, 1.12], [0.06, 0.06], round_s=10.0)
    half = Deadline.after(95.0, turns.clock)
    reserve = Reserve(Deadline.after(200.0, turns.clock), half=half)
    ran = run(turns, 2, Deadline.after(200.0, turns.clock), reserve)
    assert turns.asked[8] == {0, 1}
    assert all(cases == {1} for cases in turns.asked[9:])
    assert ran.rounds > 10


def test_at_half_of_the_time_it_stops_if_nothing_is_slower():
    turns = FakeTurns([1.0], [0.06], round_s=10.0)
    half = Deadline.after(95.0, turns.clock)
    ran = run(turns, 1, Deadline.after(200.0, turns.clock), Reserve(half, half=half))
    assert (ran.rounds, ran.stopped) == (9, HALF)  # a tenth would have ended after 100 s


def test_half_of_the_time_ends_nothing_before_the_first_look():
    turns = FakeTurns([1.0, 1.12], [0.01, 0.01], round_s=10.0)
    half = Deadline.after(45.0, turns.clock)
    ran = run(turns, 2, Deadline.after(100.0, turns.clock), Reserve(half, half=half))
    assert ran.looked == 8
    assert words(ran) == ["SAME", "SLOWER"]


def test_no_round_begins_that_would_end_beyond_the_budget():
    turns = FakeTurns([1.0], [0.3], round_s=10.0)
    ran = run(turns, 1, Deadline.after(55.0, turns.clock))
    assert (ran.rounds, ran.stopped) == (5, BUDGET)
    assert words(ran) == ["UNSURE"]


def test_the_length_of_the_first_round_says_nothing_of_the_second():
    turns = FakeTurns([1.0], [0.3], round_s=10.0)
    ran = run(turns, 1, Deadline.after(15.0, turns.clock))
    assert (ran.rounds, ran.stopped, ran.last_s) == (2, BUDGET, 10.0)


def within(rounds, ratio=1.05, sd=0.02, seed=1):
    """One case, and time for so many rounds."""
    turns = FakeTurns([ratio], [sd], round_s=10.0, seed=seed)
    return run(turns, 1, Deadline.after(10.0 * rounds + 5.0, turns.clock))


def test_rounds_after_the_last_look_are_looked_at_when_the_time_is_used_up():
    before, after = (
        [within(rounds, seed=seed) for seed in range(40)] for rounds in (LOOKS[1], LOOKS[2] - 1)
    )
    assert {ran.looked for ran in after if ran.stopped == BUDGET} == {LOOKS[2] - 1}
    found = [sum(words(ran) == ["SLOWER"] for ran in each) for each in (before, after)]
    assert found[1] > found[0]


def test_what_the_end_of_the_time_decides_is_decided():
    ran = within(LOOKS[1] - 1, ratio=1.0, sd=0.03)
    assert ran.looked == LOOKS[1] - 1
    assert (words(ran), ran.stopped) == (["SAME"], DECIDED)


def test_where_only_what_is_refused_is_left_the_end_of_the_time_left_nothing_open():
    turns = FakeTurns([1.0, 1.0], [0.03, 0.03], refused=[1], round_s=10.0, seed=5)
    ran = run(turns, 2, Deadline.after(115.0, turns.clock))
    assert (ran.looked, words(ran), ran.stopped) == (11, ["SAME", "UNSURE"], SETTLED)


def test_the_look_at_the_end_has_the_share_of_one():
    ran = within(LOOKS[1] - 1, ratio=1.0, sd=0.04, seed=3)
    assert ran.stopped == BUDGET
    assert ran.course.spent == pytest.approx(sum(IN_TURNS.shares()[:2]))


@pytest.mark.parametrize("rounds", [2, LOOKS[0] - 1])
def test_fewer_rounds_than_the_first_look_takes_are_not_looked_at(rounds):
    ran = within(rounds, ratio=2.0)
    assert (ran.rounds, ran.looked, words(ran)) == (rounds, 0, ["UNSURE"])


def test_the_rounds_of_a_look_are_not_looked_at_twice():
    ran = within(LOOKS[1], ratio=1.0, sd=0.04, seed=3)
    assert (ran.looked, ran.course.looks_done) == (LOOKS[1], 2)


def test_one_round_is_measured_whatever_the_budget():
    turns = FakeTurns([1.0])
    ran = run(turns, 1, Deadline.after(0.0, turns.clock))
    assert (ran.rounds, ran.stopped) == (1, BUDGET)


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
    ran = run(FakeTurns([1.0, 1.045], [0.001, 0.06], stops_in=stops_in), 2, Deadline())
    assert (ran.rounds, ran.stopped, ran.interrupted) == (stops_in, STOPPED, True)
    assert words(ran)[0] == ("SAME" if stops_in > 8 else "UNSURE")


def test_a_word_does_not_change_once_it_is_given():
    turns = FakeTurns([1.0, 1.045], [0.001, 0.06])
    ran = run(turns, 2, Deadline())
    assert ran.course.looks_done == len(LOOKS)
    assert words(ran)[0] == "SAME"


def test_time_kept_back_is_used_where_there_is_nothing_to_measure_again():
    turns = FakeTurns([1.045], [0.06], round_s=10.0)
    reserve = Reserve(Deadline.after(119.0, turns.clock))
    ran = run(turns, 1, Deadline.after(175.0, turns.clock), reserve)
    assert (ran.rounds, ran.stopped) == (17, BUDGET)


@pytest.mark.parametrize(
    ("ratios", "flagged"),
    [([1.5, 1.045], False), ([1.0, 1.045], True)],
    ids=["slower", "a verdict"],
)
def test_no_round_begins_in_the_time_kept_back_once_something_is_flagged(ratios, flagged):
    turns = FakeTurns(ratios, [0.005, 0.06], round_s=10.0)
    reserve = Reserve(Deadline.after(129.0, turns.clock), lambda: flagged)
    ran = run(turns, 2, Deadline.after(300.0, turns.clock), reserve)
    assert (ran.rounds, ran.stopped) == (13, BUDGET)


def test_a_budget_of_nothing_is_used_up_and_not_half_over():
    turns = FakeTurns([1.0], [0.06], round_s=10.0)
    over = Deadline.after(0.0, turns.clock)
    ran = run(turns, 1, over, Reserve(over, half=over))
    assert (ran.rounds, ran.stopped) == (1, BUDGET)
