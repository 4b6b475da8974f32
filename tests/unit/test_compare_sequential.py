"""When measuring in rounds may stop."""

import math

import pytest
from comparison_builders import sample

from dlprof.compare.sequential import IN_TURNS, LOOKS, PASS_LEVEL, Plan, begin, look
from dlprof.judge.slower import FAMILY_LEVEL


@pytest.mark.parametrize("looks", [LOOKS, (8, 16), (8,)])
def test_the_shares_of_all_looks_add_up_to_one(looks):
    shares = Plan(looks).shares
    assert (len(shares), sum(shares)) == (len(looks), pytest.approx(1.0))


def test_both_passes_together_err_as_seldom_as_one_judgment():
    assert math.isclose(PASS_LEVEL**2, FAMILY_LEVEL)


def test_faster_is_not_measured_again_and_has_to_be_surer_than_slower():
    words = [look(begin(IN_TURNS, 1), [sample(ratio, 8)]).words for ratio in (0.5, 2.0)]
    assert words == [("UNSURE",), ("SLOWER",)]


def test_an_early_look_has_a_share_of_the_level():
    found = [look(begin(Plan(looks), 1), [sample(2.0, 8)]).words for looks in ((8,), (8, 16))]
    assert found == [("SLOWER",), ("UNSURE",)]


def test_what_is_decided_stays_decided():
    course = look(begin(IN_TURNS, 2), [sample(1.0, 8), sample(1.0, 8, sd=0.3)])
    course = look(course, [sample(2.0, 12), sample(1.0, 12)])
    assert course.words == ("SAME", "SAME")
    assert course.next_look is None
