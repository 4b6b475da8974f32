"""Rounds of a gate: decisions to continue or stop. Nothing is measured; the clock is fake."""

import math

import numpy as np
import pytest

from dlprof.compare.gate_rounds import BUDGET, DECIDED, LAST, SETTLED, STOPPED, Budget, run
from dlprof.compare.times import LOOKS, WIDE_LIMIT, Floor, ProcessTimes, SidePair, bound_level

ROUND_S = 10.0


class FakeSuite:
    """Cases with processes of spread ``sds``; HEAD takes ``ratios`` times as long.

    ``asked`` lists the cases of each round. ``refused`` are settled after the first round;
    ``stops_in`` is the round in which the user stops it.
    """

    def __init__(self, ratios, sds, refused=(), stops_in=None, seed=1):
        self.ratios, self.sds = ratios, sds
        self.refused = frozenset(refused)
        self.stops_in = stops_in
        self.chance = np.random.default_rng(seed)
        self.asked = []
        self.now = 0.0
        self.sides = [([], []) for _ in ratios]

    def measure(self, round_, cases):
        if round_ == self.stops_in:
            raise KeyboardInterrupt
        assert round_ == len(self.asked)
        self.asked.append(cases)
        self.now += ROUND_S
        for case in cases:
            for side, ratio in zip(self.sides[case], (1.0, self.ratios[case]), strict=True):
                time = 1000.0 * ratio * float(np.exp(self.chance.normal(0.0, self.sds[case])))
                side.append(ProcessTimes(round_, (time,)))

    def samples(self):
        floor = Floor("ready", 0.05, 0.0)
        return [
            SidePair(tuple(base), tuple(head), floor, in_turns=True) for base, head in self.sides
        ]

    def settled(self):
        return self.refused if self.asked else frozenset()

    def run(self, rounds=None, first=False):
        """Run with the time for this number of rounds."""
        seconds = math.inf if rounds is None else (ROUND_S * rounds + 5.0) / 0.98
        budget = Budget(seconds, 0.0, lambda: self.now)
        ran = run(self, len(self.ratios), budget, first)
        return ran, list(ran.words)


def test_equal_code_is_enough_after_eight_rounds():
    ran, words = FakeSuite([1.0] * 4, [0.001] * 4).run()
    assert (ran.rounds, ran.stopped, words) == (8, DECIDED, ["SAME"] * 4)


def test_a_slower_case_is_found():
    assert FakeSuite([1.0, 1.10, 1.0], [0.01] * 3).run()[1] == ["SAME", "SLOWER", "SAME"]


def test_later_rounds_measure_only_open_cases():
    suite = FakeSuite([1.0, 1.045], [0.001, 0.06])
    ran, words = suite.run()
    assert suite.asked[7] == {0, 1}
    assert all(cases == {1} for cases in suite.asked[8:])
    assert (ran.rounds, ran.stopped, words) == (LOOKS[-1], LAST, ["SAME", "UNSURE"])


def test_a_case_that_no_look_would_decide_is_abandoned():
    suite = FakeSuite([1.0, 1.0], [0.03, 1.0])
    ran, words = suite.run()
    assert (ran.stopped, words) == (SETTLED, ["SAME", "UNSURE"])
    assert ran.rounds < LOOKS[-1]


@pytest.mark.parametrize(("budget", "rounds"), [(5, 5), (1, 2), (-1, 1)])
def test_only_the_first_two_rounds_may_end_beyond_the_budget(budget, rounds):
    ran, words = FakeSuite([1.0], [0.3]).run(rounds=budget)
    assert (ran.rounds, ran.stopped, words) == (rounds, BUDGET, ["UNSURE"])


def test_a_refused_case_is_not_measured_again_and_stays_unsure():
    suite = FakeSuite([1.0, 1.0], [0.001] * 2, refused=[1])
    ran, words = suite.run()
    assert all(cases == {0} for cases in suite.asked[1:])
    assert (words, ran.stopped) == (["SAME", "UNSURE"], DECIDED)


@pytest.mark.parametrize(("stops_in", "word"), [(0, "UNSURE"), (3, "UNSURE"), (9, "SAME")])
def test_a_stopped_gate_reports_its_results_so_far(stops_in, word):
    ran, words = FakeSuite([1.0, 1.045], [0.001, 0.06], stops_in=stops_in).run()
    assert (ran.rounds, ran.stopped, words[0]) == (stops_in, STOPPED, word)


@pytest.mark.parametrize(("ratio", "rounds"), [(1.5, 24), (1.0, 30)], ids=["slower", "equal"])
def test_time_is_reserved_for_a_second_pass_once_a_case_is_slower(ratio, rounds):
    ran, _ = FakeSuite([ratio, 1.045], [0.005, 0.06]).run(rounds=30, first=True)
    assert (ran.rounds, ran.stopped) == (rounds, BUDGET)


def test_a_default_budget_waits_for_the_first_rounds_that_can_decide():
    for patient, rounds in ((False, 5), (True, LOOKS[0])):
        suite = FakeSuite([1.0], [0.001])
        budget = Budget(5.5 * ROUND_S, 0.0, lambda: suite.now, patient)  # noqa: B023
        assert run(suite, 1, budget).rounds == rounds


def test_a_case_is_measured_until_its_bound_is_below_the_limit():
    suite = FakeSuite([1.0], [0.2], seed=3)
    ran, _ = suite.run()
    assert (LOOKS[0] < ran.rounds < LOOKS[-1], ran.stopped) == (True, SETTLED)
    high = suite.samples()[0].bound(bound_level(ran.rounds))
    assert high < math.log1p(WIDE_LIMIT)
