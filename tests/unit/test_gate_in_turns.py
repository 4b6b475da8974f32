"""Two rounds in turns, with rounds that are no processes."""

from __future__ import annotations

import pytest
from builders import make_case

from dlprof.gate.suite import Player, alternate, in_order, large_of, paired
from dlprof.plan.turns import Stop

pytestmark = pytest.mark.unit


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
    same = {case: case for case in range(9)}
    alternate(
        Player(log.round_of("A", first), same), Player(log.round_of("B", second), ranks or same)
    )
    return [word for word in log if "closed" not in word]


def host(samples):
    return {"host time": samples}


def test_both_take_their_samples_of_a_case_alternately():
    assert played({0: host(3)}, {0: host(3)}) == [
        "A0", "B0", "A0h0", "B0h0", "A0h1", "B0h1", "A0h2", "A ends", "B0h2", "B ends",
    ]  # fmt: skip


def test_who_has_more_samples_takes_them_before_either_goes_on():
    done = played({0: host(1), 1: host(0)}, {0: host(3), 1: host(0)})
    assert done == ["A0", "B0", "A0h0", "B0h0", "B0h1", "B0h2", "A1", "A ends", "B1", "B ends"]


def test_no_sample_of_one_series_is_paired_with_one_of_another():
    done = played({0: {"host time": 2, "ready time": 1}}, {0: {"host time": 1, "ready time": 1}})
    assert done[2:] == ["A0h0", "B0h0", "A0h1", "A0r0", "A ends", "B0r0", "B ends"]


def test_a_case_of_one_side_is_measured_alone():
    done = played({0: host(1), 1: host(1), 2: host(1)}, {0: host(1), 2: host(1)})
    assert done[4:6] == ["A1", "A1h0"]
    assert done[6:] == ["A2", "B2", "A2h0", "A ends", "B2h0", "B ends"]


def agreed(*calls):
    """What sides are told that would take samples of so many calls."""
    told = []

    def round_of(calls):
        told.append((yield Stop(0, "host time", calls)))

    alternate(*(Player(round_of(number), {0: 0}) for number in calls))
    return told


def test_samples_of_both_sides_are_of_as_many_calls():
    assert agreed(16, 32) == agreed(32, 16) == [32, 32]
    assert agreed(8, 8) == [8, 8]


def test_who_is_far_slower_takes_no_more_calls_than_it_needs():
    assert agreed(1, 1024) == [None, None]


def test_who_is_alone_at_a_sample_takes_as_many_calls_as_it_likes():
    told = []

    def one():
        told.append((yield Stop(0, "host time", 16)))

    alternate(Player(one(), {0: 0}), Player(iter_of_nothing(), {0: 0}))
    assert told == [None]


def iter_of_nothing():
    yield from ()


def test_the_numbers_of_a_case_may_differ():
    done = played({0: host(1), 1: host(1)}, {5: host(1), 3: host(1)}, ranks={5: 0, 3: 1})
    assert done[:4] == ["A0", "B5", "A0h0", "B5h0"]


def test_a_side_without_cases_leaves_the_other_alone():
    assert played({}, {0: host(1)}) == ["A ends", "B0", "B0h0", "B ends"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_both_are_closed_where_one_is_stopped(error):
    log = Log()
    first = log.round_of("A", {0: host(3)})
    second = log.round_of("B", {0: host(3)}, fails=(0, 1), error=error)
    with pytest.raises(error):
        alternate(Player(first, {0: 0}), Player(second, {0: 0}))
    assert log[-3:] == ["A0h1", "B closed", "A closed"]


def test_cases_are_paired_by_key_or_by_the_name_on_the_other_side():
    base, head = {"a": 0, "old": 1, "gone": 2}, {"new": 0, "a": 1, "added": 2}
    assert paired(base, head, {"old": "new"}) == [(0, 1), (1, 0), (2, None), (None, 2)]


def test_the_order_is_of_the_seed_and_the_round():
    pairs = [(number, number) for number in range(12)]
    assert in_order(pairs, (), 7, 0) == in_order(pairs, (), 7, 0)
    assert in_order(pairs, (), 7, 0) != in_order(pairs, (), 8, 0)
    assert sorted(in_order(pairs, (), 7, 0)) == pairs


def test_every_case_is_the_first_of_a_round():
    pairs = [(number, number) for number in range(4)]
    assert {in_order(pairs, (), 7, round_)[0] for round_ in range(4)} == set(pairs)


def test_cases_with_processes_of_their_own_come_last():
    small, large = make_case(), make_case(shape=(1 << 28,))
    pairs = [(0, None), (1, 0), (2, 1)]
    found = large_of(pairs, [large, small, small], [small, large])
    assert found == {(0, None), (2, 1)}
    assert {in_order(pairs, found, 7, round_)[0] for round_ in range(9)} == {(1, 0)}
