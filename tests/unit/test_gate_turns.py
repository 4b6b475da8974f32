"""Two rounds in turns, without processes."""

import pytest

from dlprof.compare.gate import Player, alternate
from dlprof.runner.schedule import Stop

SAME_RANKS = {case: case for case in range(9)}


class Log(list):
    """The actions of both sides, in order."""

    def round_of(self, name, cases, fails=None, error=RuntimeError):
        """``cases``: for each case the samples of its series, by number."""
        try:
            for case, series in cases.items():
                yield Stop(case)
                self.append(f"{name}{case}")
                for what, samples in series.items():
                    for sample in range(samples):
                        yield Stop(case, what)
                        if fails == (case, sample):
                            raise error
                        self.append(f"{name}{case}{what[0]}{sample}")
            self.append(f"{name} ends")
        finally:
            self.append(f"{name} closed")


def played(first, second, ranks=None):
    log = Log()
    alternate(
        Player(log.round_of("A", first), SAME_RANKS),
        Player(log.round_of("B", second), ranks or SAME_RANKS),
    )
    return " ".join(word for word in log if "closed" not in word)


def host(samples):
    return {"host time": samples}


def test_the_side_with_more_samples_takes_them_before_either_goes_on():
    done = played({0: host(1), 1: host(0)}, {0: host(3), 1: host(0)})
    assert done == "A0 B0 A0h0 B0h0 B0h1 B0h2 A1 A ends B1 B ends"


def test_a_case_of_one_side_is_measured_alone():
    done = played({0: host(1), 1: host(1), 2: host(1)}, {0: host(1), 2: host(1)})
    assert done == "A0 B0 A0h0 B0h0 A1 A1h0 A2 B2 A2h0 A ends B2h0 B ends"
    assert played({}, {0: host(1)}) == "A ends B0 B0h0 B ends"


@pytest.mark.parametrize(
    ("calls", "told"), [((16, 32), [32, 32]), ((8, 8), [8, 8]), ((1, 1024), [None, None])]
)
def test_samples_of_both_sides_have_equal_calls_unless_one_is_far_slower(calls, told):
    found = []

    def round_of(number):
        found.append((yield Stop(0, "host time", number)))

    alternate(*(Player(round_of(number), {0: 0}) for number in calls))
    assert found == told


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_both_sides_are_closed_if_one_is_stopped(error):
    log = Log()
    first = log.round_of("A", {0: host(3)})
    second = log.round_of("B", {0: host(3)}, fails=(0, 1), error=error)
    with pytest.raises(error):
        alternate(Player(first, {0: 0}), Player(second, {0: 0}))
    assert log[-3:] == ["A0h1", "B closed", "A closed"]
