"""What a gate would catch, played with processes that a machine showed against itself."""

from __future__ import annotations

import numpy as np
import pytest

from dlprof.compare.process import Process
from dlprof.compare.sequential import IN_TURNS, LOOKS
from dlprof.gate import power as played
from dlprof.gate.power import rounds_of, spread
from dlprof.plan.floors import Floor

pytestmark = pytest.mark.unit

FLOOR = Floor("ready", 0.05, 0.0)
MOST = 32


def side(sd, rounds=32, seed=0, slow=0.0, faults=None):
    """Rounds of two processes; a share ``slow`` of them takes three times as long."""
    chance = np.random.default_rng(seed)
    found = []
    for round_ in [*range(rounds), *range(rounds)]:
        hit = bool(chance.random() < slow)
        time = 1000.0 * float(np.exp(chance.normal(0.0, sd))) * (3.0 if hit else 1.0)
        found.append(Process(time, round_, None if faults is None else faults[hit]))
    return rounds_of(found[:rounds], found[rounds:])


def power(rounds, cases=16, most=MOST):
    return played.power(rounds, FLOOR, cases, IN_TURNS, most)


def test_on_a_quiet_machine_five_percent_is_caught():
    found = power(side(0.005))
    assert found.caught <= 0.05
    assert found.floor <= 0.03


def test_on_a_noisier_machine_only_more_is_caught():
    found = [power(side(sd)) for sd in (0.005, 0.03, 0.1)]
    assert found[0].caught < found[1].caught < found[2].caught
    assert found[0].floor < found[1].floor < found[2].floor


def test_what_is_too_noisy_to_gate_is_said():
    assert power(side(2.0)) == power(side(2.0, seed=1))
    assert power(side(2.0)).floor is None


def test_less_time_catches_less():
    short = power(side(0.02), most=LOOKS[1])
    assert short.caught > power(side(0.02)).caught


def test_more_cases_share_the_error_rate():
    one, many = (power(side(0.03), cases, most=12) for cases in (1, 200))
    assert many.caught is None or many.caught > one.caught


def lasting(rounds, cases=16):
    return np.mean(played.lasting(rounds, FLOOR, cases, IN_TURNS))


def test_equal_code_is_measured_the_longer_the_noisier_it_is():
    assert LOOKS[0] <= lasting(side(0.005)) < lasting(side(0.03)) <= LOOKS[-1]


def test_what_no_number_of_rounds_would_tell_is_given_up_early():
    assert lasting(side(2.0)) < 2 * LOOKS[0]


def test_modes_last_as_long_as_gates_compare_them():
    told = played.lasting(side(0.005, slow=0.3, faults=(0.0, 300.0)), FLOOR, 4, IN_TURNS)
    assert all(LOOKS[0] <= rounds <= LOOKS[-1] for rounds in told)


def test_modes_that_page_faults_tell_apart_are_compared_like_with_like():
    blind = power(side(0.005, slow=0.3), 4)
    told = power(side(0.005, slow=0.3, faults=(0.0, 300.0)), 4)
    assert told.caught < (blind.caught or 9.0)
    assert told.floor is None, "what one mode says is not all there is to say"


def test_the_same_processes_give_the_same_answer():
    assert power(side(0.03)) == power(side(0.03))


def test_rounds_too_few_for_a_look_promise_nothing():
    found = power(side(0.001, rounds=LOOKS[0] - 1))
    assert (found.caught, found.floor) == (None, None)


def test_only_rounds_with_both_sides_are_played_with():
    base = [Process(1000.0, round_) for round_ in range(8)]
    assert [pair[0].round for pair in rounds_of(base, base[2:5])] == [2, 3, 4]
    assert power((), 1).caught is None


def test_the_spread_is_from_process_to_process_and_not_from_round_to_round():
    drifting = tuple(
        tuple(process.times(2.0 ** (process.round // 4)) for process in round_)
        for round_ in side(0.02)
    )
    assert spread(drifting) == pytest.approx(0.02, rel=0.3)
