"""Statistics: from the samples of two processes to one word for each case of a suite."""

import math

import numpy as np
import pytest
from comparison_builders import sample

from dlprof.compare.gate_rounds import Course
from dlprof.compare.times import (
    FAMILY_LEVEL,
    PASS_LEVEL,
    SHARES,
    ProcessTimes,
    Proof,
    SidePair,
    decide,
    difference,
    prove,
    wilcoxon,
)

STEP = math.log(1.05)
NOISE = np.random.default_rng(3).normal(0.0, 0.002, 16)
LEVELS = (0.01, 0.025, 0.01)


def test_wilcoxon_probabilities_match_the_published_table():
    agree = wilcoxon([1.0, 2.0, 3.0, 4.0, 5.0])
    assert agree.p_above(0.0) == pytest.approx(1 / 32)
    assert wilcoxon([-1.0, 2.0, 3.0, 4.0, 5.0]).p_above(0.0) == pytest.approx(2 / 32)
    assert agree.p_below(0.0) == 1.0


def test_an_interval_holds_the_shift_and_few_rounds_have_no_interval():
    low, high = wilcoxon(NOISE + 0.1).interval(0.025)
    assert low < 0.1 < high < 0.11
    assert wilcoxon([0.1, 0.2]).interval(0.025) == (-math.inf, math.inf)


@pytest.mark.parametrize(
    ("shift", "expected"),
    [(0.0, "SAME"), (0.02, "SAME"), (0.06, "SLOWER"), (-0.06, "FASTER"), (0.049, "SLOWER")],
)
def test_the_word_follows_the_difference(shift, expected):
    assert decide([prove(wilcoxon(NOISE + shift), STEP)], *LEVELS) == [expected]


@pytest.mark.parametrize("direction", ["slower", "faster"])
def test_one_case_among_many_needs_stronger_evidence(direction):
    proofs = [Proof(**{direction: 0.005}), *[Proof()] * 15]
    assert decide(proofs, *LEVELS)[0] == "UNSURE"
    assert decide(proofs[:1], *LEVELS)[0] == direction.upper()


def test_the_shares_of_all_looks_sum_to_one_and_both_passes_err_as_one_judgment():
    assert sum(SHARES) == pytest.approx(1.0)
    assert math.isclose(PASS_LEVEL**2, FAMILY_LEVEL)


def test_faster_is_not_measured_again_and_needs_more_certainty_than_slower():
    for ratio, word in ((0.5, "UNSURE"), (2.0, "SLOWER")):
        course = Course(("UNSURE",))
        course.look([sample(ratio, 8)])
        assert course.words == (word,)


def test_a_decision_stays_decided():
    course = Course(("UNSURE",) * 2)
    course.look([sample(1.0, 8), sample(1.0, 8, sd=0.3)])
    course.look([sample(2.0, 12), sample(1.0, 12)])
    assert course.words == ("SAME", "SAME")
    assert course.next_look is None


# Processes

FLAT = (100.0,) * 9
STATES = (100.0, 100.0, 170.0, 170.0, 170.0, 170.0, 100.0, 100.0, 100.0)


def process(samples, round_=0, many_calls=True):
    return ProcessTimes(round_, tuple(samples), many_calls)


def slower(samples, ratio):
    return tuple(ratio * sample for sample in samples)


@pytest.mark.parametrize(
    ("samples", "many_calls", "expected"),
    [
        ([100.0] * 5 + [190.0] * 15, True, 100.0),
        ([10.0] + [100.0] * 20, True, 100.0),
        ([100.0] * 5 + [190.0] * 15, False, 190.0),
    ],
    ids=["others disturbed it half of the time", "one lucky sample", "samples of few calls"],
)
def test_the_time_of_a_process_is_that_of_its_code(samples, many_calls, expected):
    assert process(samples, 0, many_calls).time_ns == expected


def test_a_temporarily_slow_processor_is_slow_for_both_sides():
    found = difference(process(STATES), process(slower(STATES, 1.05)))
    assert found == pytest.approx(math.log(1.05))


def test_samples_of_few_calls_are_compared_by_the_fastest_of_each_side():
    waiting = (900.0, 100.0, 800.0, 100.0, 700.0, 100.0, 900.0, 800.0, 900.0)
    other = (100.0, 900.0, 100.0, 900.0, 100.0, 900.0, 900.0, 900.0, 900.0)
    found = difference(process(waiting, many_calls=False), process(other, many_calls=False))
    assert found == pytest.approx(0.0)


def test_only_rounds_that_both_sides_have_are_compared():
    base = tuple(process(FLAT, round_) for round_ in (0, 1, 3))
    head = tuple(process(slower(FLAT, 2.0), round_) for round_ in (3, 2, 1))
    assert SidePair(base, head).differences == pytest.approx([math.log(2.0)] * 2)
