"""One machine at two speeds: what HEAD's times are divided by, and when they are not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from builders import make_header
from comparison_builders import compared, only_words, references, suite

from dlprof.compare.process import Process
from dlprof.compare.speed import Speed, speed, why_unknown
from dlprof.gate.words import speed_text
from dlprof.reports.comparison_text import answers

pytestmark = pytest.mark.unit


def header(references):
    return make_header(references=references)


def test_the_speed_is_the_ratio_of_the_medians():
    head = [*references(1.1, 1.2, 0.9), *references(9.0, 9.0, 9.0, count=1)]
    found = speed(header(references()), header(head))
    assert (found.call, found.python, found.memcpy) == pytest.approx((1.1, 1.2, 0.9))


@pytest.mark.parametrize(
    ("base", "head"),
    [
        ([], references()),
        (references(), []),
        (references(count=2), references()),
        (references(memcpy_bytes=1 << 20), references()),
    ],
    ids=["none in BASE", "none in HEAD", "too few", "another memcpy"],
)
def test_without_the_same_references_on_both_sides_there_is_no_speed(base, head):
    assert speed(header(base), header(head)) is None
    assert why_unknown(header(base), header(head)) is not None


def test_reference_costs_of_two_pythons_say_nothing_of_the_machine():
    sides = [
        make_header(references=references(), environment={"python": python})
        for python in ("3.11.7", "3.13.1")
    ]
    assert speed(*sides) is None
    assert why_unknown(*sides) == "The reference costs are of different Pythons"


@pytest.mark.parametrize(
    ("base", "head", "said"),
    [
        ([], references(), "BASE has no reference costs"),
        (references(), [], "HEAD has no reference costs"),
        (references(count=1), references(), "BASE has reference costs of 1 round, and 3 are"),
        (references(), references(count=2), "HEAD has reference costs of 2 rounds, and 3 are"),
        (references(memcpy_bytes=1 << 20), references(), "a memcpy of different sizes"),
    ],
)
def test_why_nothing_was_normalised_is_told_of_the_side_that_lacks_it(base, head, said):
    headers = {"base_header": {"references": base}, "head_header": {"references": head}}
    (text,) = speed_text(compared(suite(), suite(seed=9), **headers)[0])
    assert said in text
    assert "so nothing was normalised" in text


def test_copies_are_divided_by_the_memcpy_and_all_else_by_call_and_python():
    found = Speed(call=1.21, python=1.0, memcpy=0.9)
    (view,), (copy,) = (found.normalised((Process(1100.0),), copies) for copies in (False, True))
    assert view.time_ns == pytest.approx(1000.0)
    assert copy.time_ns == pytest.approx(1222.2, abs=0.1)


def test_next_to_nothing_is_not_divided_by():
    found = Speed(1.01, 1.01, 0.99)
    assert (found.instructions, found.copies) == (1.0, 1.0)


@pytest.mark.parametrize("ratios", [(1.3, 1.0, 1.0), (1.0, 0.7, 1.0), (1.0, 1.0, 1.4)])
def test_a_machine_that_is_another_one_is_not_normalised(ratios):
    assert Speed(*ratios).far
    found, result = compared(suite(), suite(seed=9), speed=Speed(*ratios))
    assert set(only_words(found).values()) == {"INVALID"}
    assert "not as fast as it was" in found.invalid
    assert result.code(unsure=0) == 3


def test_a_slower_machine_is_no_slower_code():
    slower = dict.fromkeys("abcdefgh", 1.15)
    found, result = compared(suite(), suite(slower, seed=9), speed=Speed(1.15, 1.15, 1.15))
    assert set(only_words(found).values()) == {"SAME"}
    assert result.code() == 0


def test_slower_code_on_a_slower_machine_is_found():
    slower = {**dict.fromkeys("abcdefgh", 1.15), "c": 1.15 * 1.3}
    found, result = compared(suite(), suite(slower, seed=9), speed=Speed(1.15, 1.15, 1.15))
    assert only_words(found)["c"] == "SLOWER"
    assert result.code() == 1


SLOWER_BY_EIGHT = dict.fromkeys("abcdefgh", 1.08)


def noisy(*factors):
    """References whose rounds took so many times as long, the memcpy always as long."""
    return [
        replace_(one, empty_call_ns=40.0 * factor, python_ns=5000.0 * factor)
        for one, factor in zip(references(count=len(factors)), factors, strict=True)
    ]


def replace_(one, **changes):
    return one.model_copy(update=changes)


def judged(base, head, slower=None, **header):
    """The words of equal code, or slower code, by such references."""
    headers = {
        "base_header": {"references": base, **header},
        "head_header": {"references": head},
    }
    machine = speed(make_header(**headers["base_header"]), make_header(**headers["head_header"]))
    return compared(suite(), suite(slower, seed=9), speed=machine, **headers)


def test_references_whose_rounds_disagree_prove_no_other_speed():
    found, result = judged(noisy(1, 1, 1, 1, 1), noisy(0.87, 1, 0.87, 0.87, 1))
    assert found.speed.open(copies=False) == (1.0, 1.0)
    assert set(only_words(found).values()) == {"SAME"}
    assert result.code() == 0


def test_references_that_changed_beside_other_programs_make_no_regression_of_equal_times():
    found, result = judged(references(), noisy(0.87, 0.86, 0.88, 0.87, 0.87), foreign_cores=1.0)
    assert set(only_words(found).values()) == {"UNSURE"}
    assert result.code() == 3
    reasons = {time.reason for case in found.cases for time in case.times}
    assert reasons == {"slower, but the reference costs leave open how fast the machine was"}


def test_references_whose_rounds_disagree_hide_no_slowdown():
    found, _ = judged(noisy(1, 1, 1, 1, 1), noisy(1.08, 1, 1.08, 1.08, 1), SLOWER_BY_EIGHT)
    assert "SAME" not in only_words(found).values()


@pytest.mark.parametrize(
    ("call", "python"), [(1.24, 0.82), (0.82, 1.24)], ids=["call slower", "python slower"]
)
def test_kinds_that_contradict_each_other_leave_open_what_lies_between(call, python):
    found, result = judged(references(), references(call, python), {"c": 1.15})
    assert only_words(found)["c"] == "UNSURE"
    assert result.code() == 3


def test_what_is_next_to_nothing_in_every_round_leaves_nothing_open():
    machine = speed(header(references()), header(noisy(0.99, 1.0, 1.01, 1.0, 1.01)))
    assert machine.open(copies=False) == (1.0, 1.0)


def test_more_time_is_not_advised_where_the_speed_of_the_machine_is_not_known():
    found, result = judged(references(), references(1.15, 1.15), foreign_cores=1.0)
    told = " ".join(answers(replace(found, measured_here=True), result))
    assert "More time would not tell how fast the machine was" in told
    assert "More time may tell" not in told


def test_a_slowdown_below_what_two_sessions_differ_by_is_no_fault_of_the_references():
    found, _ = judged(references(), references(0.99, 0.97), {"c": 1.05})
    (time,) = next(case.times for case in found.cases if case.case.import_ == "c")
    assert "reference costs" not in time.reason


def test_references_of_impossible_times_are_no_error():
    base = [replace_(one, python_ns=1e-320) for one in references()]
    head = [replace_(one, python_ns=1e308) for one in references()]
    assert speed(header(base), header(head)).far


def test_references_whose_kinds_disagree_leave_open_what_lies_between():
    call = [replace_(one, empty_call_ns=44.0) for one in references()]
    machine = speed(header(references()), header(call))
    assert machine.open(copies=False) == pytest.approx((1.0, 1.1))
    assert machine.open(copies=True) == (1.0, 1.0)


def test_beside_other_programs_the_references_may_have_met_what_conversions_did_not():
    slower = [references(), references(1.15, 1.15)]
    quiet, loaded = ({"foreign_cores": cores} for cores in (0.1, 1.0))
    fifteen = dict.fromkeys("abcdefgh", 1.15)
    for load, words in ((quiet, {"SAME"}), (loaded, {"UNSURE"})):
        assert set(only_words(judged(*slower, fifteen, **load)[0]).values()) == words


def test_slower_code_is_found_whatever_part_the_machine_had():
    found, _ = judged(references(), references(1.1, 1.1), {"c": 1.5}, foreign_cores=1.0)
    assert only_words(found)["c"] == "SLOWER"


def test_it_says_what_the_references_leave_open():
    found, _ = judged(references(), references(1.1, 1.1), foreign_cores=1.0)
    (text,) = speed_text(found)
    assert "beside other programs" in text
    assert "divided by 1.10 (1.00 to 1.10 is open), those of copies" in text


def test_next_to_no_time_of_a_reference_is_another_machine_and_no_error():
    tiny = [replace_(one, python_ns=1e-320) for one in references()]
    found, _ = judged(references(), tiny)
    assert set(only_words(found).values()) == {"INVALID"}


def of_environment(name, **changes):
    return [one.model_copy(update={"environment": name}) for one in references(**changes)]


def test_the_speed_is_that_of_the_environments_that_both_sides_have():
    head = [*of_environment("a", call=1.1, python=1.1, memcpy=1.1), *of_environment("b", call=5.0)]
    found = speed(header(of_environment("a")), header(head))
    assert (found.call, found.python, found.memcpy) == pytest.approx((1.1, 1.1, 1.1))


def test_rounds_are_counted_and_not_the_environments_of_each():
    both = [*of_environment("a", count=2), *of_environment("b", count=2)]
    assert "of 2 rounds" in why_unknown(header(both), header(both))
