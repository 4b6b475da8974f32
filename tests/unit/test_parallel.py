"""Lanes: several workers at once, with a lane that waits for each."""

import os

import pytest

from dlprof.runner.schedule import finish


class Worker:
    """A worker that has answered once its pipe has been written to."""

    def __init__(self):
        self.end, self.begin = os.pipe()
        self.pipes = (self.end,)
        self.answered = False

    def answer(self):
        self.answered = True
        os.write(self.begin, b"x")


def test_a_lane_goes_on_while_another_waits_for_its_worker():
    slow = Worker()
    order = []

    def waits():
        while not slow.answered:
            yield slow
        order.append("answered")

    def works():
        for step in range(3):
            order.append(step)
            yield Worker()
        slow.answer()

    finish([waits(), works()])
    assert order == [0, 1, 2, "answered"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_if_a_lane_fails_the_others_end_and_may_keep_their_answers(error):
    kept = []

    def goes_on():
        try:
            while True:
                yield Worker()
        finally:
            kept.append("heard")

    def fails():
        yield Worker()
        raise error

    with pytest.raises(error):
        finish([goes_on(), fails()])
    assert kept == ["heard"]
