"""The diagnosis of a gate: repeated looks, and the end of its time. The clock is fake."""

import math
from types import SimpleNamespace

import pytest
from comparison_builders import timed

from dlprof.compare.comparison import key
from dlprof.compare.gate import GateSide, MeasuredSuite
from dlprof.compare.gate_rounds import Budget
from dlprof.compare.verdicts import RACE_LOOKS, Criteria
from dlprof.runner.progress import Watcher

SAFE, UNSAFE = ({"verdict": word, "evidence": {}} for word in ("safe", "unsafe"))


class FakeSide:
    """Cases that are diagnosed in sequence, each in 1 s of ``clock``.

    A case shows its early write after ``shows_after`` repeated looks.
    """

    def __init__(self, verdict=None, shows_after=None, names="a", ownership=None, clock=None):
        self.clock, self.names, self.shows_after = (
            clock or SimpleNamespace(now=0.0),
            names,
            shows_after,
        )
        self.verdicts = {"early_write": verdict, "ownership": ownership}
        self.left = set(range(len(names)))
        self.looks = 0

    def results(self):
        return [timed(name, **self.verdicts) for name in self.names]

    def diagnose(self, only, is_over):
        for number in sorted(self.left & only):
            if not is_over():
                self.left.remove(number)
                self.clock.now += 1.0
        return self.left & only

    def look_again(self, numbers, instrument, look):
        assert (numbers, instrument, look) == ({0}, "early_write", self.looks)
        self.clock.now += 1.0
        self.looks += 1
        if self.looks == self.shows_after:
            self.verdicts["early_write"] = {"verdict": "varies", "processes": [SAFE, UNSAFE]}

    def side(self):
        request = SimpleNamespace(settings=SimpleNamespace(diagnose=True))
        measurement = SimpleNamespace(results=self.results, request=request)
        numbers = {key(result.case): number for number, result in enumerate(self.results())}
        return GateSide(measurement, self, numbers)


def suite_of(base, head):
    return MeasuredSuite(base.side(), head.side(), Criteria(), Watcher())


def looked(base, head):
    suite_of(base, head).diagnose(Budget(math.inf, 0.0))
    return base.looks, head.looks


def test_the_side_that_did_not_show_it_is_checked_again_until_it_does():
    assert looked(FakeSide(SAFE, shows_after=2), FakeSide(UNSAFE)) == (2, 0)
    assert looked(FakeSide(UNSAFE), FakeSide(SAFE, shows_after=1)) == (0, 1)


def test_a_race_on_head_alone_stays_one_after_all_looks():
    assert looked(FakeSide(SAFE), FakeSide(UNSAFE)) == (RACE_LOOKS - 1, 0)


@pytest.mark.parametrize(("seconds", "left"), [(math.inf, 0), (8.0, 0), (4.0, 2), (0.0, 4)])
def test_each_side_has_half_of_the_time_and_unchecked_paths_are_known(seconds, left):
    clock = SimpleNamespace(now=0.0)
    suite = suite_of(*(FakeSide(names="abcd", clock=clock) for _ in range(2)))
    suite.diagnose(Budget(seconds, 0.0, lambda: clock.now))
    assert len(suite.undiagnosed) == left
    assert suite.diagnosis_s == clock.now == 2.0 * (4 - left)


def test_a_view_on_one_side_and_a_copy_on_the_other_are_checked_even_if_late():
    clock = SimpleNamespace(now=0.0)
    words = [{"verdict": verdict, "evidence": {}} for verdict in ("view", "copy")]
    sides = [FakeSide(ownership=word, clock=clock) for word in words]
    suite = suite_of(*sides)
    suite.diagnose(Budget(0.0, 0.0, lambda: clock.now))
    assert [side.left for side in sides] == [set(), set()]
    assert not suite.undiagnosed


@pytest.mark.parametrize(("seconds", "looks"), [(math.inf, RACE_LOOKS), (4.0, 3)])
def test_a_race_is_a_doubt_if_there_was_no_time_for_all_looks(seconds, looks):
    clock = SimpleNamespace(now=0.0)
    suite = suite_of(*(FakeSide(word, clock=clock) for word in (SAFE, UNSAFE)))
    suite.diagnose(Budget(seconds, 0.0, lambda: clock.now))
    assert suite.race_looks == looks
