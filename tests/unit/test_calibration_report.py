"""What ``dlprof calibrate`` answers: which cases can be gated, and what is caught of the others."""

from __future__ import annotations

import pytest
from test_gate_noise import FLOORS, noise, of

from dlprof.gate.calibrate import Calibrated
from dlprof.reports.calibration import answers, render

pytestmark = pytest.mark.unit


def said(*cases):
    return " ".join(answers(Calibrated(noise(*cases), (), 1.0), FLOORS)[2:])


def test_a_case_that_needs_too_large_a_floor_is_too_noisy_to_gate():
    assert said(of("a", 0.1), of("b", 2.0, caught=1.0)) == (
        "1 of 2 can be gated with a floor of 10 %. Too noisy to gate in this time, since no floor "
        "up to 30 % tells: b(x) (a slowdown of 100 % would be caught)."
    )


@pytest.mark.parametrize(
    ("round_s", "said"),
    [
        (1.0, "In 5 min a gate has time for 8 rounds, the later ones of what is not decided"),
        (37.5, "In 5 min a gate has time for 8 rounds"),
        (
            44.0,
            (
                "5 min are too little: a gate has no time for the 8 rounds before its first look, "
                "and would call nothing the same. Give it 6 min with --budget, or fewer cases."
            ),
        ),
    ],
)
def test_it_says_how_many_rounds_a_gate_has_time_for(round_s, said):
    assert answers(Calibrated(noise(of()), (), round_s), FLOORS)[0].startswith(said)


def test_it_says_how_rare_a_state_may_be_that_it_did_not_see():
    unseen = answers(Calibrated(noise(of(), rounds=49), (), 1.0), FLOORS)[1]
    assert "these 49: a state that fewer than one process in 32 is in may be missing" in unseen


def test_a_case_of_which_nothing_is_caught_says_so():
    assert "b(x) (no slowdown up to 200 % would be caught)" in said(of("b", None, caught=None))


def test_where_all_are_too_noisy_none_can_be_gated():
    assert "can be gated" not in said(of("a", 2.0), of("b", 0.5))


def test_a_floor_of_thirty_percent_is_the_largest():
    assert said(of("a", 0.3)) == "1 of 1 can be gated with a floor of 30 %."


def test_the_report_shows_what_is_caught_and_told():
    text = render(Calibrated(noise(of("b", 2.0, caught=1.0)), (), 1.0), FLOORS)
    assert "100 %" in text
    assert "200 %" in text
