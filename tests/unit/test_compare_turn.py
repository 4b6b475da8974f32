"""What one round says of a case whose samples were taken in turns."""

from __future__ import annotations

import math

import pytest

from dlprof.compare.process import Process
from dlprof.compare.turn import difference, in_turns

pytestmark = pytest.mark.unit

FLAT = (100.0,) * 9
STATES = (100.0, 100.0, 170.0, 170.0, 170.0, 170.0, 100.0, 100.0, 100.0)


def process(samples, round_=0, many_calls=True):
    return Process(sorted(samples)[len(samples) // 2], round_, None, tuple(samples), many_calls)


def slower(samples, ratio):
    return tuple(ratio * sample for sample in samples)


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


def test_samples_that_are_no_time_are_left_out():
    found = difference(process((-1.0, 100.0, 0.0)), process((5.0, 200.0, 7.0)))
    assert found == pytest.approx(math.log(2.0))


@pytest.mark.parametrize("samples", [(), (-1.0,)])
def test_without_samples_the_times_of_the_processes_are_compared(samples):
    base, head = Process(100.0, 0, None, samples), Process(120.0, 0, None, samples)
    assert difference(base, head) == pytest.approx(math.log(1.2))


def test_only_rounds_that_both_sides_have_are_compared():
    base = [process(FLAT, round_) for round_ in (0, 1, 3)]
    head = [process(slower(FLAT, 2.0), round_) for round_ in (3, 2, 1)]
    found = in_turns(tuple(base), tuple(head))
    assert [one.round for one in found.base] == [one.round for one in found.head] == [3, 1]
    assert list(found.differences) == pytest.approx([math.log(2.0)] * 2)
