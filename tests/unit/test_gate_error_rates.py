"""Error rates of the judgment, on synthetic suites of 16 cases with fixed seeds.

At most 1 in 100 suites of equal code is called slower, at any noise level. On views, +5 % is caught
in 95 of 100 gates and +10 % in all but a few.
"""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from gate_simulation import ENVIRONMENTS, NOISES, SESSION_SD, gate, sessions

from dlprof.compare.times import SAME, SLOWER, WIDE

SUITES = 200

every_noise = pytest.mark.parametrize("noise", NOISES)
every_noise_of_code = pytest.mark.parametrize(
    "noise", [noise for noise in NOISES if noise not in ("two states", ENVIRONMENTS)]
)
"""The same machine without unexplained states, and without random shifts of a case."""


def rate(found):
    return sum(found) / SUITES


def test_equal_code_raises_no_alarm_and_five_percent_is_found():
    assert not any(gate("normal", seed)[1] for seed in range(20))
    assert all(0 in gate("normal", seed, 1.05)[1] for seed in range(20))


@pytest.mark.nightly
@every_noise
def test_a_gate_of_equal_code_raises_at_most_one_false_alarm_in_a_hundred(noise):
    found = [gate(noise, seed) for seed in range(SUITES)]
    assert rate(bool(flagged) for flagged, _, _ in found) <= 0.1
    assert rate(bool(confirmed) for _, confirmed, _ in found) <= 0.01


@pytest.mark.nightly
@pytest.mark.parametrize("sd", [0.03, 0.3])
def test_a_machine_that_is_noisier_than_assumed_raises_no_more_alarms(sd):
    found = [gate("heavy tails", seed, sd=sd) for seed in range(SUITES)]
    assert rate(bool(confirmed) for _, confirmed, _ in found) <= 0.01


@pytest.mark.nightly
@every_noise_of_code
@pytest.mark.parametrize(("ratio", "least"), [(1.05, 0.95), (1.1, 0.995)])
def test_a_gate_catches_a_slowdown_by_the_floor(noise, ratio, least):
    assert rate(0 in gate(noise, seed, ratio)[1] for seed in range(SUITES)) >= least


@pytest.mark.nightly
@pytest.mark.parametrize("noise", [noise for noise in NOISES if noise != ENVIRONMENTS])
def test_a_slowdown_by_the_floor_seldom_passes(noise):
    found = [gate(noise, seed, 1.05)[2][0] for seed in range(SUITES)]
    assert rate(time.word == SAME for time in found) <= 0.025


@pytest.mark.nightly
@pytest.mark.parametrize("noise", ["normal", "heavy tails", "transients", "drift", "two states"])
@pytest.mark.parametrize("ratio", [1.0, 1.15])
def test_a_wide_time_is_seldom_slower_than_its_bound(noise, ratio):
    found = [gate(noise, seed, ratio, sd=0.2)[2][0] for seed in range(SUITES)]
    wide = [time for time in found if time.word == WIDE]
    assert len(wide) > SUITES / 10
    assert rate(time.bound < ratio for time in wide) <= 0.025


@pytest.mark.nightly
@every_noise
@pytest.mark.parametrize("rounds", [3, 7, 20])
def test_two_sessions_of_equal_code_raise_at_most_one_false_alarm_in_a_hundred(noise, rounds):
    apart = SESSION_SD if noise == "normal" else 0.0
    found = [sessions(noise, seed, rounds, session_sd=apart) for seed in range(SUITES)]
    assert rate(SLOWER in words for words in found) <= 0.01


@pytest.mark.nightly
@pytest.mark.parametrize("rounds", [3, 10])
def test_two_sessions_show_cases_that_take_more_than_twice_as_long(rounds):
    found = [sessions("normal", seed, rounds, 2.5)[0] for seed in range(SUITES)]
    assert rate(word == SLOWER for word in found) >= 0.99
