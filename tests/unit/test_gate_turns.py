"""Two rounds in turns, with rounds that are no processes."""

import pytest

from dlprof.compare.gate_suite import Player, alternate, in_order
from dlprof.runner.schedule import Stop

SAME_RANKS = {case: case for case in range(9)}


class Log(list):
    """What the sides did, in order."""

    def round_of(self, name, cases, fails=None, error=RuntimeError):
        """``cases``: of each the samples of its series, by number."""
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


def test_both_take_their_samples_of_a_case_alternately():
    done = played({0: host(3)}, {0: host(3)})
    assert done == "A0 B0 A0h0 B0h0 A0h1 B0h1 A0h2 A ends B0h2 B ends"


def test_the_side_with_more_samples_takes_them_before_either_goes_on():
    done = played({0: host(1), 1: host(0)}, {0: host(3), 1: host(0)})
    assert done == "A0 B0 A0h0 B0h0 B0h1 B0h2 A1 A ends B1 B ends"


def test_no_sample_of_one_series_is_paired_with_one_of_another():
    done = played({0: {"host time": 2, "ready time": 1}}, {0: {"host time": 1, "ready time": 1}})
    assert done == "A0 B0 A0h0 B0h0 A0h1 A0r0 A ends B0r0 B ends"


def test_a_case_of_one_side_is_measured_alone():
    done = played({0: host(1), 1: host(1), 2: host(1)}, {0: host(1), 2: host(1)})
    assert done == "A0 B0 A0h0 B0h0 A1 A1h0 A2 B2 A2h0 A ends B2h0 B ends"
    assert played({}, {0: host(1)}) == "A ends B0 B0h0 B ends"


def test_the_numbers_of_a_case_may_differ():
    done = played({0: host(1), 1: host(1)}, {5: host(1), 3: host(1)}, ranks={5: 0, 3: 1})
    assert done.startswith("A0 B5 A0h0 B5h0")


@pytest.mark.parametrize(
    ("calls", "told"), [((16, 32), [32, 32]), ((8, 8), [8, 8]), ((1, 1024), [None, None])]
)
def test_samples_of_both_sides_are_of_as_many_calls_unless_one_is_far_slower(calls, told):
    found = []

    def round_of(number):
        found.append((yield Stop(0, "host time", number)))

    alternate(*(Player(round_of(number), {0: 0}) for number in calls))
    assert found == told


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_both_are_closed_if_one_is_stopped(error):
    log = Log()
    first = log.round_of("A", {0: host(3)})
    second = log.round_of("B", {0: host(3)}, fails=(0, 1), error=error)
    with pytest.raises(error):
        alternate(Player(first, {0: 0}), Player(second, {0: 0}))
    assert log[-3:] == ["A0h1", "B closed", "A closed"]


def test_the_order_is_of_the_seed_and_the_round():
    pairs = [((number, number), False) for number in range(12)]
    assert in_order(pairs, 7, 0) == in_order(pairs, 7, 0) != in_order(pairs, 8, 0)
    assert sorted(in_order(pairs, 7, 0)) == [pair for pair, _ in pairs]


def test_every_case_is_the_first_of_a_round_and_large_ones_come_last():
    pairs = [((number, number), number == 3) for number in range(4)]
    orders = [in_order(pairs, 7, round_) for round_ in range(12)]
    assert {order[0][0] for order in orders} == {0, 1, 2}
    assert {order[-1][0] for order in orders} == {3}
