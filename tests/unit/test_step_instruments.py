"""The instruments of steps: what they find of strategies that keep, overwrite, or are wrong."""

from __future__ import annotations

import numpy
import pytest
from step_builders import Counting, NumPySteps, make_steps

from dlprof.probes.base import ArraySpec, Unsupported
from dlprof.worker.instruments import step as instruments
from dlprof.worker.instruments.step import as_globals, prepare, step_values

pytestmark = pytest.mark.unit

RIGHT = ("fresh", "persistent", "two-buffers", "ahead")


class Blind(NumPySteps):
    """A model whose output says nothing of its input."""

    model = "def model(x, out=None):\n    return numpy.multiply(x, 0, out=out)"


class OneShape(NumPySteps):
    model = (
        "def model(x, out=None):\n"
        "    if x.shape != (4, 3):\n"
        "        raise ValueError('four rows only')\n"
        "    return numpy.add(x, 1, out=out)"
    )


@pytest.mark.parametrize("name", RIGHT)
def test_a_step_gives_what_the_model_gives(name):
    step = make_steps(name)
    assert numpy.array_equal(step.run(), step.namespace["x"] + 1)
    assert step_values(step)["verdict"] == "ok"


def test_another_output_than_the_models_is_wrong():
    found = step_values(make_steps("wrong"))
    assert found["verdict"] == "wrong"
    assert found["evidence"]["changed"]["values"] == {"different": 12, "of": 12}


@pytest.mark.parametrize(
    ("name", "after"), [("persistent", 1), ("two-buffers", 2), ("fresh", None), ("ahead", None)]
)
def test_an_output_that_changes_is_seen_after_the_call_that_changes_it(name, after):
    found = instruments.reuse(make_steps(name))
    assert found["verdict"] == ("kept" if after is None else "overwritten")
    assert found["evidence"].get("after_calls") == after


def test_nothing_is_said_of_an_output_that_is_the_same_for_another_input():
    found = instruments.reuse(make_steps("persistent", Blind()))
    assert found["verdict"] == "unknown"
    assert "same output for another input" in found["evidence"]["reason"]


@pytest.mark.parametrize(
    ("name", "buffers"), [("fresh", 8), ("persistent", 1), ("two-buffers", 2), ("ahead", 8)]
)
def test_outputs_that_are_kept_lie_in_so_many_buffers(name, buffers):
    found = instruments.allocations(make_steps(name))
    assert (found["buffers"], found["kept"]) == (buffers, 8)


def test_a_framework_that_does_not_count_says_so():
    found = instruments.allocations(make_steps("fresh"))
    assert found["reason"] == "numpy does not tell how often it allocates"
    assert "per_call" not in found


def test_what_a_framework_counts_is_told_per_call():
    found = instruments.allocations(make_steps("fresh", Counting()))
    assert (found["per_call"], found["bytes_per_call"], found["how"]) == (2.0, 128.0, "a test")


def test_a_strategy_is_sampled_in_turn_with_an_output_for_each_call():
    found = instruments.versus(make_steps("persistent"), 1)["times"]
    assert set(found) == {"step", "fresh", "reading", "fresh_reading"}
    assert len({len(timing["samples_ns"]) for timing in found.values()}) == 1


@pytest.mark.parametrize("name", RIGHT)
def test_a_change_of_shape_rebuilds_the_buffers(name):
    step = make_steps(name)
    loop = instruments.changing(step, step.of_shape((2, 3)))
    assert loop(3) > 0
    assert step.namespace["x"].shape == (4, 3)  # and the step is as it was
    assert step.run().shape == (4, 3)


def test_a_change_of_shape_is_compared_with_both_shapes():
    found = instruments.shape_change(make_steps("persistent"), 1)
    assert found["shape"] == [2, 3]
    assert set(found["times"]) == {"steady", "other", "changing"}


def test_a_model_of_one_shape_refuses_the_other_in_its_own_words():
    with pytest.raises(ValueError, match="four rows only"):
        instruments.shape_change(make_steps("persistent", OneShape()), 1)


@pytest.mark.parametrize(
    ("shape", "other"), [((4, 3), (2, 3)), ((1, 64), (2, 64)), ((5,), (2,)), ((2, 8), (1, 8))]
)
def test_the_other_shape_has_other_rows(shape, other):
    assert instruments.other_shape(shape) == other


@pytest.mark.parametrize("shape", [(), (0, 3)])
def test_an_input_without_rows_has_no_other_shape(shape):
    with pytest.raises(Unsupported):
        instruments.other_shape(shape)


def test_only_contiguous_inputs_are_taken():
    steps = NumPySteps()
    spec = ArraySpec((4, 3), "float64", "strided")
    with pytest.raises(Unsupported, match="contiguous"):
        prepare(steps, steps.imports[0], spec, lambda stage: None)


def test_names_that_a_step_sets_are_there_for_the_next_one():
    assert as_globals("y = f(x); following = g(y)") == (
        "global following, y\ny = f(x); following = g(y)"
    )
    assert as_globals("f(x)") == "f(x)"
