"""From what the tests prove to one word for each case of a suite."""

import math

import numpy as np
import pytest

from dlprof.compare.samples import common_shift
from dlprof.judge.rank_tests import StudentTest, wilcoxon
from dlprof.judge.slower import Proof, decide, holm, prove
from dlprof.runner.floors import Floor

STEP = math.log(1.05)
NOISE = np.random.default_rng(3).normal(0.0, 0.002, 16)


def word(shift, **options):
    return decide([prove(wilcoxon(NOISE + shift), STEP, **options)])[0]


@pytest.mark.parametrize(
    ("shift", "expected"),
    [(0.0, "SAME"), (0.02, "SAME"), (0.06, "SLOWER"), (-0.06, "FASTER"), (0.049, "SLOWER")],
)
def test_the_word_follows_the_difference(shift, expected):
    assert word(shift) == expected


def test_an_interval_that_is_too_wide_is_unsure():
    wide = wilcoxon(50 * NOISE)
    assert decide([prove(wide, STEP)]) == ["UNSURE"]


def test_holm_multiplies_the_smallest_by_all_and_keeps_the_order():
    assert holm([0.03, 0.001, 0.02, 1.0]) == pytest.approx([0.06, 0.004, 0.06, 1.0])


@pytest.mark.parametrize("direction", ["slower", "faster"])
def test_one_case_among_many_needs_more_proof(direction):
    proofs = [Proof(**{direction: 0.005}), *[Proof()] * 15]
    assert decide(proofs)[0] == "UNSURE"
    assert decide(proofs[:1])[0] == direction.upper()


def test_what_is_nearer_to_the_floor_than_to_nothing_takes_more_proof_of_sameness():
    chances = [
        prove(StudentTest(share * STEP, (1 - share) * STEP / 3, 30), STEP).same
        for share in (0.4, 0.6)
    ]
    assert chances[1] == pytest.approx(25 * chances[0], rel=0.01)


def test_a_shift_that_all_share_counts_as_uncertain():
    assert word(0.06, common=0.05) == "UNSURE"
    assert word(0.12, common=0.05) == "SLOWER"
    assert word(-0.06, common=0.05) == "FASTER"


def test_few_processes_must_differ_by_more_than_states_do():
    assert word(0.06, least=math.log(2.0)) == "UNSURE"


@pytest.mark.parametrize(
    ("shifts", "common"),
    [
        ([], 0.0),
        ([0.1] * 9 + [0.0], 0.1),
        ([0.1] * 8 + [0.0] * 2, 0.0),
        ([-0.1, -0.2, -0.3], -0.1),
        ([0.1, -0.1], 0.0),
        ([2.0] * 4, math.log(1.25)),
    ],
)
def test_nine_in_ten_cases_make_a_common_shift_up_to_a_limit(shifts, common):
    assert common_shift(shifts) == pytest.approx(common)


def test_a_slowdown_must_exceed_both_floors():
    floor = Floor("ready", 0.05, 5.0)
    assert floor.step(1000.0) == pytest.approx(math.log(1.05))
    assert floor.step(50.0) == pytest.approx(math.log(1.1))
