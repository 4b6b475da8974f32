"""How many rounds a gate has time for."""

from __future__ import annotations

import pytest

from dlprof.compare.sequential import LOOKS, Plan
from dlprof.gate.calibrate import RoundCost, fitting

pytestmark = pytest.mark.unit

PLAN = Plan()
LAST = LOOKS[-1]
COST = RoundCost(loading_s=1.0, cases_s=9.0)


def test_cases_that_are_never_decided_take_their_time_in_every_round():
    assert fitting(PLAN, [[LAST]] * 4, COST, 160.0) == 16
    assert fitting(PLAN, [[LAST]] * 4, COST, 159.0) == 12


def test_a_round_costs_less_once_cases_are_decided():
    early = [[LOOKS[0]]] * 4
    assert fitting(PLAN, early, COST, 80.0 + 24.0) == LOOKS[0] + 24


def test_a_case_counts_by_how_many_gates_still_measure_it():
    half = [[LOOKS[0], LAST]]
    assert fitting(PLAN, half, COST, 80.0 + 4 * 5.5) == LOOKS[1]
    assert fitting(PLAN, half, COST, 80.0 + 4 * 5.4) == LOOKS[0]


def test_the_first_look_is_taken_however_little_time_there_is():
    assert fitting(PLAN, [[LAST]], COST, 0.0) == LOOKS[0]


def test_nothing_measured_takes_no_time_but_its_imports():
    assert fitting(PLAN, [], RoundCost(1.0, 0.0), float(LAST)) == LAST
