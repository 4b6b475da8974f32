"""A gate that measures in turns, on processes instead of arrays."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dlprof.compare import simulation
from dlprof.compare.process import Process
from dlprof.compare.sequential import IN_TURNS, Plan, begin
from dlprof.compare.statistic import Sample
from dlprof.compare.times import Settings, Work, judge
from dlprof.compare.turns import after
from dlprof.plan.floors import Floor

pytestmark = pytest.mark.unit

NS = 1000.0
FLOOR = Floor("ready", 0.05, 0.0)
IN_TURNS_SETTINGS = Settings(in_turns=True)


def side(logs, faults=None):
    return tuple(
        Process(float(NS * np.exp(value)), round_, faults) for round_, value in enumerate(logs)
    )


def works(base, head, **changes):
    return [
        Work(place, FLOOR, Sample(side(old), side(new), in_turns=True, **changes))
        for place, (old, new) in enumerate(zip(base, head, strict=True))
    ]


def course_of(suites):
    course = begin(IN_TURNS, suites.base.shape[1])
    while course.next_look is not None:
        rounds = course.next_look
        course = after(course, works(suites.base[0, :, :rounds], suites.head[0, :, :rounds]))
    return course


@pytest.mark.parametrize("ratio", [1.0, 1.05, 1.10])
def test_processes_are_judged_as_the_simulation_judges_arrays(ratio):
    for seed in range(5):
        made = simulation.suites(simulation.transients, seed, 1, 16, 64, 0.012).slowed(0, ratio)
        simulated, _ = simulation.gate(made, IN_TURNS, math.log(1.05))
        assert list(course_of(made).words) == list(simulated.words[0])


def test_too_few_rounds_in_turns_prove_nothing():
    base = np.zeros((1, 3))
    assert list(after(begin(Plan(), 1), works(base, base + 5.0)).words) == ["UNSURE"]


def test_a_mode_that_only_head_runs_in_is_the_codes_if_measured_in_turns():
    chance = np.random.default_rng(1)
    base, head = side(chance.normal(0, 0.01, 16), 0.0), side(chance.normal(1.0, 0.01, 16), 300.0)
    _, (time,) = judge([Work(0, FLOOR, Sample(base, head, True, True))], Settings(in_turns=True))
    assert time.word == "SLOWER"
    assert time.note.startswith("the sides ran in different modes: 0 page faults")


def test_a_regression_into_another_mode_is_not_hidden_by_a_few_rounds_in_one_mode():
    chance = np.random.default_rng(2)
    base, head = (
        side(chance.normal(0, 0.01, 24), 0.0),
        list(side(chance.normal(0.5, 0.01, 24), 9e2)),
    )
    head[3:5] = [Process(NS, round_, 0.0) for round_ in (3, 4)]
    _, (time,) = judge([Work(0, FLOOR, Sample(base, tuple(head), True, True))], IN_TURNS_SETTINGS)
    assert time.word == "SLOWER"
