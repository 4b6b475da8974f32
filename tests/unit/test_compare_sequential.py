"""When measuring in rounds may stop."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dlprof.compare.decision import FAMILY_LEVEL, SAME, SAME_LEVEL, SLOWER, UNSURE, Proof, prove
from dlprof.compare.ranks import signed
from dlprof.compare.sequential import IN_TURNS, LOOKS, PASS_LEVEL, Plan, begin, earliest, look

pytestmark = pytest.mark.unit

NO = 1.0


def proof(slower=(NO, NO), same=(NO, NO)):
    return Proof(np.array(slower), np.full(len(slower), NO), np.array(same))


@pytest.mark.parametrize("looks", [LOOKS, (8, 16), (8,)])
def test_the_shares_of_all_looks_add_up_to_one(looks):
    shares = Plan(looks).shares()
    assert len(shares) == len(looks)
    assert sum(shares) == pytest.approx(1.0)


def test_the_first_look_can_say_same_if_all_rounds_agree():
    found = signed(np.full(LOOKS[0], 0.001))
    least = float(np.maximum(found.p_below(0.05), found.p_above(-0.05)))
    assert least <= Plan().shares()[0] * SAME_LEVEL


def test_both_passes_together_err_as_seldom_as_one_judgement():
    assert math.isclose(PASS_LEVEL**2, FAMILY_LEVEL)


def test_faster_is_not_measured_again_and_has_to_be_surer():
    proof = Proof(np.array([NO]), np.array([0.05]), np.array([NO]))
    assert list(look(begin(Plan((8,), level=PASS_LEVEL), 1), proof).words) == [UNSURE]


def test_an_early_look_asks_for_more_proof_than_the_whole_level():
    plan = Plan((8, 16), level=0.01)
    assert list(look(begin(plan, 2), proof((0.004, NO))).words) == [UNSURE, UNSURE]
    assert list(look(begin(plan, 2), proof((0.0005, NO))).words) == [SLOWER, UNSURE]


def test_what_is_decided_stays_decided():
    course = look(begin(Plan((8, 16)), 2), proof(same=(1e-9, NO)))
    course = look(course, proof(slower=(1e-9, NO)))
    assert list(course.words) == [SAME, UNSURE]


def test_it_stops_as_soon_as_all_is_decided():
    course = begin(Plan((8, 16)), 2)
    assert course.next_look == 8
    course = look(course, proof(slower=(1e-9, NO), same=(NO, 1e-9)))
    assert course.next_look is None
    assert not course.open.any()


def test_it_stops_when_the_looks_are_spent():
    course = begin(Plan((8, 16)), 2)
    for _ in range(2):
        course = look(course, proof())
    assert course.next_look is None
    assert course.open.all()
    assert course.spent == pytest.approx(1.0)
    with pytest.raises(ValueError, match="spent"):
        look(course, proof())


def is_called_slower(cases, rounds):
    """Whether the first of so many is, by all looks until the time ends after so many rounds."""
    course = begin(IN_TURNS, cases)
    for last in [*(planned for planned in LOOKS if planned < rounds), rounds]:
        far = np.zeros((cases, last))
        far[0] = 1.0
        course = look(course, prove(signed(far), 0.05))
    return course.slower()[0]


@pytest.mark.parametrize(
    ("cases", "rounds"), [(1, 8), (5, 8), (6, 9), (7, 10), (16, 11), (54, 12), (55, 13), (873, 16)]
)
def test_from_the_earliest_round_on_a_case_can_be_called_slower_and_not_before(cases, rounds):
    assert earliest(IN_TURNS, cases) == rounds
    assert is_called_slower(cases, rounds)
    assert rounds == LOOKS[0] or not is_called_slower(cases, rounds - 1)


def test_of_very_many_cases_none_can_ever_be_called_slower_in_few_rounds():
    assert earliest(Plan((8, 12), level=0.1), 10**6) is None
