"""A race that one side of a gate showed, and the other not yet."""

from types import SimpleNamespace

from comparison_builders import timed

from dlprof.compare.matching import key
from dlprof.compare.times import Settings
from dlprof.compare.verdicts import RACE_LOOKS
from dlprof.gate.suite import MeasuredSuite, Side
from dlprof.runner.progress import Watcher

SAFE, UNSAFE = ({"verdict": word, "evidence": {}} for word in ("safe", "unsafe"))


class FakeSide:
    """One case, whose early write shows when it was looked at again ``shows_after`` times."""

    def __init__(self, verdict, shows_after=None):
        self.verdict, self.shows_after = verdict, shows_after
        self.looks = 0

    def results(self):
        return [timed("a", early_write=self.verdict)]

    def look_again(self, numbers, instrument, look):
        assert (numbers, instrument, look) == ({0}, "early_write", self.looks)
        self.looks += 1
        if self.looks == self.shows_after:
            self.verdict = {"verdict": "varies", "evidence": {"processes": [SAFE, UNSAFE]}}

    def side(self):
        settings = SimpleNamespace(diagnose=False)
        request = SimpleNamespace(settings=settings)
        measurement = SimpleNamespace(results=self.results, request=request)
        runner = SimpleNamespace(diagnose=lambda _: None, look_again=self.look_again)
        return Side(measurement, runner, {key(self.results()[0].case): 0})


def looked(base, head):
    MeasuredSuite(base.side(), head.side(), Settings(in_turns=True), Watcher()).diagnose()
    return base.looks, head.looks


def test_the_side_that_did_not_show_it_is_looked_at_again_until_it_does():
    assert looked(FakeSide(SAFE, shows_after=2), FakeSide(UNSAFE)) == (2, 0)
    assert looked(FakeSide(UNSAFE), FakeSide(SAFE, shows_after=1)) == (0, 1)


def test_a_race_that_only_head_has_stays_one_after_all_looks():
    assert looked(FakeSide(SAFE), FakeSide(UNSAFE)) == (RACE_LOOKS - 1, 0)


def test_equal_verdicts_are_not_looked_at_again():
    assert looked(FakeSide(SAFE), FakeSide(SAFE)) == (0, 0)
    assert looked(FakeSide(UNSAFE), FakeSide(UNSAFE)) == (0, 0)
