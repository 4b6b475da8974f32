"""Steps in a series: found where they are, and not found where there are none.

The rates are those of synthetic histories with fixed seeds; see ``benchmarks/history_simulation.py``.
"""

import math
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from history_simulation import NOISES, false_steps, history, slowed

from dlprof.history.changes import find_steps

FLOOR = math.log(1.05)
LEVEL = 0.01


def places(noise, count, at, ratio, cases=1, histories=40, until=None):
    """Where steps are found, one tuple for each history."""
    chance = np.random.default_rng(7)
    made = (slowed(history(chance, noise, count), at, ratio, until) for _ in range(histories))
    return [tuple(step.at for step in find_steps(one, FLOOR, LEVEL / cases)) for one in made]


def share(found, wanted):
    return float(np.mean([one == wanted for one in found]))


@pytest.mark.nightly
@pytest.mark.parametrize("count", [6, 10, 20, 60])
@pytest.mark.parametrize("noise", NOISES)
def test_equal_code_has_a_false_step_in_at_most_one_history_in_a_hundred(noise, count):
    assert false_steps(noise, count, 500) <= LEVEL


@pytest.mark.nightly
def test_the_promise_holds_without_a_floor():
    chance = np.random.default_rng(1)
    made = (list(chance.normal(0.0, 0.3, (24, 1))) for _ in range(4000))
    found = np.mean([bool(find_steps(one, 0.0, 0.05)) for one in made])
    assert 0.001 < found <= 0.05


@pytest.mark.nightly
def test_looking_after_every_session_finds_few_false_steps():
    chance = np.random.default_rng(3)
    made = [history(chance, "heavy tails", 40) for _ in range(50)]
    looks = [any(find_steps(one[:end], FLOOR, LEVEL) for end in range(4, 41)) for one in made]
    assert np.mean(looks) <= 0.02


def test_equal_code_has_no_step():
    assert false_steps("heavy tails", 30, 40) == 0.0


@pytest.mark.parametrize("noise", ["normal", "heavy tails"])
def test_ten_percent_among_twenty_cases_are_found_in_forty_sessions(noise):
    assert share(places(noise, 40, 20, 1.10, cases=20), (20,)) >= 0.85


@pytest.mark.parametrize("ratio", [1.5, 1 / 1.5])
def test_half_as_long_again_is_found_three_sessions_later(ratio):
    assert share(places("normal", 8, 5, ratio, cases=20), (5,)) >= 0.95


def test_what_was_taken_back_after_ten_sessions_is_found_both_ways():
    assert share(places("normal", 60, 25, 1.15, cases=10, until=35), (25, 35)) >= 0.9


def test_a_step_below_half_the_floor_is_none():
    assert share(places("normal", 60, 30, 1.02), ()) == 1.0


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_so_few_sessions_have_no_step(count):
    assert find_steps([[float(place)] for place in range(count)], FLOOR) == ()


def test_one_slow_session_or_two_at_the_end_are_no_step_yet():
    logs = history(np.random.default_rng(2), "normal", 30)
    assert find_steps(slowed(logs, 20, 3.0, 21), FLOOR) == ()
    assert find_steps(slowed(logs, 28, 2.0), FLOOR) == ()


def test_the_size_of_a_step_has_an_interval_that_holds_it():
    logs = slowed(history(np.random.default_rng(4), "normal", 40), 20, 1.20)
    (step,) = find_steps(logs, FLOOR)
    assert step.interval[0] < 1.20 < step.interval[1]
    assert step.ratio == pytest.approx(1.20, abs=0.03)
    assert (step.before, step.behind) == (20, 20)


def test_processes_in_two_states_make_no_step_of_three_sessions():
    """All slow by chance before, all fast behind: single processes may well do that."""
    assert find_steps([[0.53]] * 3 + [[0.0]] * 3, FLOOR) == ()
