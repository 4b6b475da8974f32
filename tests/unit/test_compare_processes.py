"""What a process says of a case, and what a round of two processes says."""

import math

import pytest

from dlprof.compare.times import Process, Sample, difference

FLAT = (100.0,) * 9
STATES = (100.0, 100.0, 170.0, 170.0, 170.0, 170.0, 100.0, 100.0, 100.0)


def process(samples, round_=0, many_calls=True):
    return Process(round_, tuple(samples), many_calls)


def slower(samples, ratio):
    return tuple(ratio * sample for sample in samples)


@pytest.mark.parametrize(
    ("samples", "many_calls", "expected"),
    [
        ([100.0] * 5 + [190.0] * 15, True, 100.0),
        ([10.0] + [100.0] * 20, True, 100.0),
        ([100.0] * 5 + [190.0] * 15, False, 190.0),
    ],
    ids=["others disturbed it half of the time", "one lucky sample", "samples of few calls"],
)
def test_the_time_of_a_process_is_what_the_code_takes(samples, many_calls, expected):
    assert process(samples, 0, many_calls).time_ns == expected


def test_a_processor_that_is_slow_for_a_while_is_slow_for_both():
    found = difference(process(STATES), process(slower(STATES, 1.05)))
    assert found == pytest.approx(math.log(1.05))


def test_samples_that_were_disturbed_on_one_side_do_not_count():
    disturbed = (*slower(FLAT[:3], 40.0), *FLAT[3:])
    assert difference(process(FLAT), process(disturbed)) == pytest.approx(0.0)


def test_samples_of_few_calls_are_compared_by_the_fastest_of_each_side():
    waiting = (900.0, 100.0, 800.0, 100.0, 700.0, 100.0, 900.0, 800.0, 900.0)
    other = (100.0, 900.0, 100.0, 900.0, 100.0, 900.0, 900.0, 900.0, 900.0)
    found = difference(process(waiting, many_calls=False), process(other, many_calls=False))
    assert found == pytest.approx(0.0)


def test_only_rounds_that_both_sides_have_are_compared():
    base = tuple(process(FLAT, round_) for round_ in (0, 1, 3))
    head = tuple(process(slower(FLAT, 2.0), round_) for round_ in (3, 2, 1))
    assert Sample(base, head).differences == pytest.approx([math.log(2.0)] * 2)
