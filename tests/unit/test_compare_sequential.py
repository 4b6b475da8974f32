"""When measuring in rounds may stop."""

from __future__ import annotations

import numpy as np
import pytest

from dlprof.compare.decision import SAME, SLOWER, UNSURE, Proof
from dlprof.compare.sequential import BLOCK, LOOKS, Plan, begin, look

pytestmark = pytest.mark.unit

NO = 1.0


def proof(slower=(NO, NO), same=(NO, NO)):
    return Proof(np.array(slower), np.full(len(slower), NO), np.array(same))


def test_the_shares_of_all_looks_add_up_to_one():
    shares = Plan().shares()
    assert sum(shares) == pytest.approx(1.0)
    assert list(shares) == sorted(shares)


@pytest.mark.parametrize("most", [(8, 8), (8, 32), (16, 24), (1, 1), (40, 40)])
def test_the_shares_with_extra_looks_add_up_to_one(most):
    plan = Plan().fitting(*most)
    shares = plan.shares()
    assert len(shares) == len(plan.all_looks)
    assert sum(shares) == pytest.approx(1.0)
    assert all(share > 0 for share in shares)


def test_looks_are_after_whole_blocks():
    assert all(rounds % BLOCK == 0 for rounds in LOOKS)


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
