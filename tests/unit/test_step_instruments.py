"""The instruments of steps: findings on strategies that keep, overwrite, or are wrong."""

import pytest
from step_builders import NumPySteps, make_steps

from dlprof.worker.instruments import step as instruments

STRATEGIES = {
    # the calls after which an output changes, and the buffers of eight outputs
    "fresh": (None, 8),
    "persistent": (1, 1),
    "two-buffers": (2, 2),
    "ahead": (None, 8),
}
every_strategy = pytest.mark.parametrize("name", STRATEGIES)


def test_an_output_that_differs_from_the_models_is_wrong():
    found = instruments.step_values(make_steps("wrong"))
    assert found["verdict"] == "wrong"
    assert found["evidence"]["changed"]["values"] == {"different": 12, "of": 12}


@every_strategy
def test_an_output_that_changes_is_seen_after_the_call_that_changes_it(name):
    after, buffers = STRATEGIES[name]
    found = instruments.reuse(make_steps(name))
    assert found["verdict"] == ("kept" if after is None else "overwritten")
    assert found["evidence"].get("after_calls") == after
    assert instruments.allocations(make_steps(name))["buffers"] == buffers


def test_an_output_that_is_the_same_for_another_input_proves_nothing():
    class Blind(NumPySteps):
        model = "def model(x, out=None):\n    return numpy.multiply(x, 0, out=out)"

    found = instruments.reuse(make_steps("persistent", Blind()))
    assert found["verdict"] == "unknown"
    assert "same output" in found["evidence"]["reason"]


def test_a_strategy_is_sampled_in_turn_with_an_output_for_each_call():
    found = instruments.versus(make_steps("persistent"), 1)["times"]
    assert set(found) == {"step", "fresh", "reading", "fresh_reading"}
    assert len({len(timing["samples_ns"]) for timing in found.values()}) == 1


@every_strategy
def test_a_change_of_shape_rebuilds_the_buffers_and_leaves_the_step_as_it_was(name):
    step = make_steps(name)
    assert instruments.changing(step, step.reshaped((2, 3)))(3) > 0
    assert step.namespace["x"].shape == (4, 3)
    assert step.run().shape == (4, 3)
