"""From tests to words, over a whole suite."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dlprof.compare.decision import FASTER, SAME, SLOWER, UNSURE, Proof, decide, holm, prove
from dlprof.compare.drift import MOST, common_shift
from dlprof.compare.ranks import ranks
from dlprof.plan.floors import Floor

pytestmark = pytest.mark.unit

STEP = math.log(1.05)
SPREAD = np.array([-0.01, -0.006, -0.002, 0.0, 0.001, 0.003, 0.008, 0.012, 0.004, -0.004])


def words(slower, faster=None, same=None, **levels):
    rest = np.ones(len(slower))
    proof = Proof(
        np.array(slower),
        rest if faster is None else np.array(faster),
        rest if same is None else np.array(same),
    )
    return list(decide(proof, **levels))


def shifted(shift, spread=SPREAD):
    return ranks(spread[None], spread[::-1][None] + shift)


def word(shift, spread=SPREAD, common=0.0, least=0.0):
    return str(decide(prove(shifted(shift, spread), STEP, common, least))[0])


def test_holm_multiplies_the_smallest_by_all_and_the_largest_by_one():
    assert holm(np.array([0.01, 0.5, 0.02])) == pytest.approx([0.03, 0.5, 0.04])


def test_holm_never_puts_a_larger_p_before_a_smaller():
    assert holm(np.array([0.01, 0.011, 0.9])) == pytest.approx([0.03, 0.03, 0.9])


def test_holm_counts_what_could_not_be_tested():
    assert holm(np.array([0.001, np.nan])) == pytest.approx([0.002, 1.0])


def test_holm_corrects_each_suite_apart():
    both = holm(np.array([[0.01, 0.5], [0.2, 0.3]]))
    assert both == pytest.approx(np.array([[0.02, 0.5], [0.4, 0.4]]))


def test_one_case_in_many_needs_more_proof():
    assert words([0.005]) == [SLOWER]
    assert words([0.005, 1.0, 1.0]) == [UNSURE] * 3


def test_faster_is_corrected_too():
    assert words([1.0] * 3, faster=[0.005, 1.0, 1.0]) == [UNSURE] * 3
    assert words([1.0] * 3, faster=[0.001, 1.0, 1.0]) == [FASTER, UNSURE, UNSURE]


def test_same_needs_proof_of_its_own():
    assert words([1.0, 1.0], same=[0.02, 0.03]) == [SAME, UNSURE]


@pytest.mark.parametrize(
    ("shift", "expected"),
    [(0.0, SAME), (0.02, SAME), (0.06, SLOWER), (-0.03, SAME), (-0.06, FASTER)],
)
def test_the_word_follows_the_difference(shift, expected):
    assert word(shift) == expected


def test_what_is_nearer_to_the_floor_than_to_nothing_takes_more_proof_that_it_is_the_same():
    for shift, times in ((0.02, 1), (0.03, 25)):
        test = shifted(shift)
        assert prove(test, STEP).same == pytest.approx(times * test.p_below(STEP))
    assert word(0.03, SPREAD / 10) == SAME


def test_no_difference_that_was_found_is_not_sameness():
    assert word(0.0, SPREAD * 20) == UNSURE


def test_a_difference_that_may_be_too_small_to_matter_is_unsure():
    assert word(0.05, SPREAD * 4) == UNSURE


def test_a_shift_that_all_share_is_counted_as_uncertain():
    assert word(0.08, common=0.08) == UNSURE
    assert word(0.0, common=0.06) == UNSURE
    assert word(0.30, common=0.08) == SLOWER


def test_few_processes_must_differ_by_more_than_states_do():
    assert word(0.5, least=math.log(2)) == UNSURE
    assert word(0.8, least=math.log(2)) == SLOWER


def test_nine_in_ten_cases_make_a_common_shift():
    assert common_shift(np.array([0.04] * 9 + [-0.5])) == pytest.approx(0.04)
    assert common_shift(np.array([0.04] * 8 + [0.0] * 2)) == 0.0
    assert common_shift(np.array([-0.04] * 8)) == pytest.approx(-0.04)


def test_three_cases_share_nothing():
    assert common_shift(np.array([0.04, 0.05, 0.06])) == 0.0


def test_a_common_shift_has_a_limit():
    assert common_shift(np.array([2.0] * 8)) == pytest.approx(MOST)


def test_a_slowdown_must_exceed_both_floors():
    floor = Floor("ready", 0.05, 200.0)
    assert floor.step(1e6) == pytest.approx(math.log(1.05))
    assert floor.step(1000.0) == pytest.approx(math.log(1.2))
    assert floor.step(0.0) == math.inf


@pytest.mark.parametrize("shift", [-0.06, -0.03, 0.0, 0.026, 0.03, 0.045, 0.06])
@pytest.mark.parametrize("open_", [(0.0, 0.015), (-0.015, 0.0), (-0.02, 0.02)])
def test_what_is_left_open_of_the_machine_makes_no_word_easier_to_get(shift, open_):
    known = prove(shifted(shift), STEP)
    left = prove(shifted(shift), STEP, open_=open_)
    for name in ("slower", "faster", "same"):
        assert getattr(left, name) >= getattr(known, name)
