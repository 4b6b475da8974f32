"""Two sessions side by side: each case gets the word that it has earned."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from builders import make_result
from comparison_builders import compared, medians, pair, suite, timed
from comparison_builders import only_words as words
from hypothesis import given, settings
from hypothesis import strategies as st

from dlprof.compare.comparison import compare
from dlprof.compare.match import key
from dlprof.compare.outcome import DONE, NOT_KNOWN, NOTHING, REGRESSION
from dlprof.compare.process import time_ns
from dlprof.errors import UsageError
from dlprof.plan.floors import Floor
from dlprof.reports import comparison_json
from dlprof.reports.comparison import render
from dlprof.reports.comparison_text import answers
from dlprof.session.model import ProcessSamples

pytestmark = pytest.mark.unit

COPY = {"ownership": {"verdict": "copy", "evidence": {}}, "case": {"shape": (1024, 1024)}}
ENVIRONMENT = {"cpu": "A", "machine": "x86_64", "cores": 2, "packages": {"torch": "2.9.0"}}


def only(comparison):
    return comparison.cases[0].times[0]


def one(base, head, **changes):
    """The time of a single case with these process medians."""
    return only(compared([timed(ns=base, **changes)], [timed(ns=head, **changes)])[0])


def test_equal_code_measured_often_enough_is_the_same():
    found, result = compared(suite(), suite(seed=50))
    assert set(words(found).values()) == {"SAME"}
    assert result.code() == DONE


def test_one_slower_case_is_found_and_the_others_are_cleared():
    found, result = compared(suite(), suite({"c": 1.12}, seed=50))
    assert words(found) == {**dict.fromkeys("abdefgh", "SAME"), "c": "SLOWER"}
    assert result.code() == REGRESSION


def test_a_faster_case_is_no_regression():
    found, result = compared(suite(), suite({"c": 0.8}, seed=50))
    assert words(found)["c"] == "FASTER"
    assert result.code() == DONE


def test_the_ratio_is_of_head_over_base_with_its_interval():
    time = one(medians(), medians(seed=1, around_ns=1200.0))
    assert time.ratio == pytest.approx(1.2, abs=0.02)
    low, high = time.interval
    assert low < 1.2 < high
    assert time.corrected[0] <= low
    assert high <= time.corrected[1]
    assert time.processes == (10, 10)


def test_three_processes_leave_a_small_slowdown_open():
    time = one(medians(3), medians(3, seed=1, around_ns=1100.0))
    assert time.word == "UNSURE"
    assert time.rounds > 3


def test_three_processes_show_a_large_slowdown():
    assert one(medians(3), medians(3, seed=1, around_ns=4000.0)).word == "SLOWER"


def test_three_processes_in_another_state_are_not_slower():
    assert one([1000.0, 1001.0, 1000.5], [1700.0, 1701.0, 1700.5]).word == "UNSURE"


def test_one_process_says_nothing():
    time = one([1000.0], [9000.0])
    assert (time.word, time.ratio) == ("UNSURE", None)
    assert time.reason == "one process on a side: nothing was repeated"


def test_few_processes_of_a_large_copy_say_nothing():
    time = one(medians(4), medians(4, around_ns=9000.0), **COPY)
    assert time.word == "UNSURE"
    assert "copies of this size run in states" in time.reason
    assert time.rounds == 5


def test_many_processes_of_a_large_copy_do():
    assert one(medians(), medians(seed=1, around_ns=2000.0), **COPY).word == "SLOWER"


def test_a_session_without_samples_is_unsure():
    found, result = compared([make_result()], [make_result(code="numpy.from_dlpack(x)")])
    assert only(found).word == "UNSURE"
    assert "no times of single processes" in only(found).reason
    assert result.code() == NOT_KNOWN


def test_modes_that_both_sides_show_are_compared_like_with_like():
    fast, slow = medians(8), medians(4, around_ns=4000.0, seed=3)
    faults = [0.0] * 8 + [300.0] * 4
    base = timed(ns=[*fast, *slow], faults=faults, **COPY)
    head = timed(ns=[*(1.2 * v for v in fast), *slow], faults=faults, **COPY)
    time = only(compared([base], [head])[0])
    assert time.word == "SLOWER"
    assert time.ratio == pytest.approx(1.2, abs=0.02)
    assert time.note.startswith("compared in the mode that both show: 8 of 12 processes in BASE")


def test_sides_in_different_modes_are_not_compared():
    base = timed(ns=medians(10), faults=[0.0] * 10, **COPY)
    head = timed(ns=medians(10, around_ns=4000.0), faults=[300.0] * 10, **COPY)
    time = only(compared([base], [head])[0])
    assert time.word == "UNSURE"
    assert time.reason == (
        "the sides ran in different modes: 0 page faults per call in BASE, 300 in HEAD"
    )


def test_one_mode_that_is_the_same_does_not_clear_the_case():
    values, faults = [*medians(8), *medians(4, around_ns=4000.0)], [0.0] * 8 + [300.0] * 4
    head = [*medians(8, seed=1), *medians(4, around_ns=4000.0, seed=1)]
    found, _ = compared(
        [timed(ns=values, faults=faults, **COPY)], [timed(ns=head, faults=faults, **COPY)]
    )
    assert only(found).word == "UNSURE"


def test_a_shift_of_all_cases_is_not_blamed_on_them():
    found, result = compared(suite(), suite(dict.fromkeys("abcdefgh", 1.1), seed=50))
    assert set(words(found).values()) == {"UNSURE"}
    assert found.common == pytest.approx(1.1, abs=0.02)
    assert result.code() == NOT_KNOWN


def test_what_is_slower_than_the_shift_of_all_is_slower():
    ratios = {**dict.fromkeys("abcdefgh", 1.1), "c": 1.4}
    assert words(compared(suite(), suite(ratios, seed=50))[0])["c"] == "SLOWER"


def test_measured_in_turns_no_shift_is_excused():
    ratios = dict.fromkeys("abcdefgh", 1.2)
    found, _ = compared(suite(), suite(ratios, seed=50), in_turns=True)
    assert set(words(found).values()) == {"SLOWER"}


def test_measured_in_turns_a_drift_from_block_to_block_is_no_difference():
    walk = np.repeat([1.0, 1.3, 1.6, 2.0], 4)
    base = [v * f for v, f in zip(medians(16), walk, strict=True)]
    head = [v * f for v, f in zip(medians(16, seed=1), walk, strict=True)]
    found, _ = compared([timed(ns=base)], [timed(ns=head)], in_turns=True)
    assert only(found).word == "SAME"


def test_a_case_can_have_a_floor_of_its_own():
    floors = {key(suite()[2].case): (Floor("ready", 0.5),)}
    found, _ = compared(suite(), suite({"c": 1.12}, seed=50), own_floors=floors)
    assert words(found)["c"] == "SAME"


def test_a_slowdown_below_the_absolute_floor_is_the_same():
    found, _ = compared(suite(), suite({"c": 1.12}, seed=50), "ready:5%,400ns")
    assert words(found)["c"] == "SAME"


def test_several_measures_are_one_family():
    found, _ = compared(suite(), suite({"c": 1.2}, seed=50), "ready:5%", "host:5%")
    times = next(case.times for case in found.cases if case.case.import_ == "c")
    assert [(time.measure, time.word) for time in times] == [
        ("ready", "SLOWER"),
        ("host", "SLOWER"),
    ]


def test_a_session_keeps_one_first_call_and_so_cannot_judge_it():
    base, head = (timed(ns=medians(), first_call_ns=value) for value in (1e6, 9e6))
    found, _ = compared([base], [head], "first_call:50%")
    assert (only(found).word, only(found).base_ns, only(found).head_ns) == ("UNSURE", 1e6, 9e6)


@pytest.mark.parametrize("side", [0, 1])
def test_a_time_that_is_not_to_be_trusted_is_invalid(side):
    results = [timed(ns=medians()), timed(ns=medians(seed=1))]
    results[side] = timed(ns=medians(), status="invalid", reason="throttled")
    found, result = compared([results[0]], [results[1]])
    name = ("BASE", "HEAD")[side]
    assert (only(found).word, only(found).reason) == ("INVALID", f"{name}: throttled")
    assert result.code() == result.code(DONE) == NOT_KNOWN


BUSY = {"environment": {"cores": 2}, "foreign_cores": 1.3}


@pytest.mark.parametrize("changes", [{"loops": 1}, {"loops": 1000, **COPY}])
def test_times_that_foreign_load_changes_are_invalid_under_it(changes):
    found, result = compared(suite(**changes), suite(seed=50, **changes), head_header=BUSY)
    assert set(words(found).values()) == {"INVALID"}
    assert found.load == "while HEAD was measured other programs kept 1.3 of 2 cores busy"
    assert result.code(DONE) == NOT_KNOWN


def test_times_of_many_calls_are_compared_under_foreign_load():
    found, result = compared(suite(loops=1000), suite(seed=50, loops=1000), head_header=BUSY)
    assert set(words(found).values()) == {"SAME"}
    assert result.code() == DONE


def test_foreign_load_on_a_large_machine_is_no_matter():
    busy = {"environment": {"cores": 64}, "foreign_cores": 1.3}
    assert compared(suite(), suite(seed=50), head_header=busy)[0].load is None


def test_measured_in_turns_both_sides_meet_the_same_load():
    busy = {"environment": {"cores": 2}, "foreign_cores": 1.3}
    found, _ = compared(suite(), suite(seed=50), head_header=busy, base_header=busy, in_turns=True)
    assert set(words(found).values()) == {"SAME"}


@pytest.mark.parametrize(
    "change", [{"cpu": "B"}, {"cores": 4}, {"machine": "arm64"}, {"gpus": [{"name": "H200"}]}]
)
def test_times_of_different_machines_are_not_compared(change):
    headers = {
        "base_header": {"environment": ENVIRONMENT},
        "head_header": {"environment": {**ENVIRONMENT, "gpus": [], **change}},
    }
    headers["base_header"]["environment"]["gpus"] = []
    found, result = compared(suite(), suite({"c": 9.0}, seed=50), **headers)
    assert set(words(found).values()) == {"INVALID"}
    assert found.invalid.startswith("measured on different machines: ")
    assert result.code() == NOT_KNOWN


@pytest.mark.parametrize("change", [{"together": True}, {"sample_ns": 600_000_000}])
def test_times_that_were_measured_in_different_ways_are_not_compared(change):
    settings = {"together": False, "sample_ns": 60_000_000}
    sides = [{"request": {"settings": found}} for found in (settings, {**settings, **change})]
    found, result = compared(
        suite(), suite({"c": 9.0}, seed=50), base_header=sides[0], head_header=sides[1]
    )
    assert set(words(found).values()) == {"INVALID"}
    assert found.invalid.startswith("measured in different ways: ")
    assert result.code(unsure=0) == NOT_KNOWN


def test_verdicts_of_different_machines_are_compared():
    copies = suite(seed=50, ownership={"verdict": "copy", "evidence": {}})
    other = {"environment": {**ENVIRONMENT, "cpu": "B"}}
    _, result = compared(
        suite(), copies, base_header={"environment": ENVIRONMENT}, head_header=other
    )
    assert len(result.worse) == 8
    assert result.code() == REGRESSION


def test_two_pythons_are_compared_where_that_is_what_is_meant():
    sides = [{"environment": {**ENVIRONMENT, "python": text}} for text in ("3.11.7", "3.13.1")]
    headers = {"base_header": sides[0], "head_header": sides[1]}
    refused, result = compared(suite(), suite(seed=50), **headers)
    assert "--any-python" in refused.invalid
    assert result.code(unsure=0) == NOT_KNOWN
    for meant in ({"across_pythons": True}, {"in_turns": True}):
        found, result = compared(suite(), suite(seed=50), **headers, **meant)
        assert (found.invalid, result.code()) == (None, DONE)


def test_other_versions_are_what_is_compared():
    other = {"environment": {**ENVIRONMENT, "packages": {"torch": "2.10.0"}}}
    found, result = compared(
        suite(), suite(seed=50), base_header={"environment": ENVIRONMENT}, head_header=other
    )
    assert [str(one) for one in found.differences] == ["torch 2.9.0 → 2.10.0"]
    assert result.code() == DONE


def test_other_seeds_and_rounds_are_told_and_compared():
    found, result = compared(
        suite(), suite(count=14, seed=50), head_header={"seed": 8, "rounds": 14}
    )
    assert [str(one) for one in found.differences] == ["rounds 3 → 14", "seed 7 → 8"]
    assert result.code() == DONE


def test_an_older_minor_version_is_compared():
    found, result = compared(suite(), suite(seed=50), base_header={"schema": "dlprof.session/1.0"})
    assert [one.what for one in found.differences] == ["schema"]
    assert result.code() == DONE


def test_a_case_that_vanished_is_a_regression():
    found, result = compared(suite(), suite(seed=50, names="abcdefg"))
    assert words(found)["h"] == "GONE"
    assert [case.case.import_ for case in result.gone] == ["h"]
    assert result.code() == REGRESSION


def test_a_case_that_head_was_not_asked_for_is_no_regression_and_never_a_pass():
    asked = {"request": {"pairs": [["jax", "numpy"]]}}
    found, result = compared(suite(), suite(seed=50, names="abcdefg"), head_header=asked)
    assert words(found)["h"] == "GONE"
    assert (result.gone, result.code(), result.code(DONE)) == ((), NOT_KNOWN, NOT_KNOWN)
    (case,) = result.invalid
    assert f"since HEAD was not asked for it: {case.case.code}" in " ".join(answers(found, result))


def test_a_case_that_crashes_is_a_regression_whatever_is_asked_for():
    head = [*suite(seed=50, names="abcdefg"), timed("h", status="crashed", reason="SIGSEGV\nmore")]
    found, result = compared(suite(), head, "host:5%", "copy")
    assert next(
        time.reason for case in found.cases for time in case.times if time.word == "GONE"
    ) == ("crashed: SIGSEGV")
    assert result.code() == REGRESSION


def test_what_crashed_in_base_after_it_had_worked_was_not_compared_and_is_no_pass():
    crash = {"status": "crashed", "reason": "SIGSEGV", "rounds": [0, 1]}
    found, result = compared([*suite(names="abcdefg"), timed("h", **crash)], suite(seed=50))
    assert words(found)["h"] == "INVALID"
    assert result.code(DONE) == NOT_KNOWN


def test_what_never_worked_in_base_is_new():
    crash = {"status": "crashed", "reason": "SIGSEGV", "rounds": []}
    found, result = compared([*suite(names="abcdefg"), timed("h", **crash)], suite(seed=50))
    assert words(found)["h"] == "NEW"
    assert result.code() == DONE


@pytest.mark.parametrize("status", ["crashed", "timeout"])
def test_what_breaks_on_both_sides_is_no_pass(status):
    broken = timed("h", status=status)
    base, head = suite(names="abcdefg"), suite(seed=50, names="abcdefg")
    _, result = compared([*base, broken], [*head, broken])
    assert result.code(DONE) == NOT_KNOWN


def test_what_was_left_out_on_both_sides_is_unsure():
    skipped = [make_result(None, None, case={"import": "h"}, status="skipped")]
    _, result = compared(
        suite(names="abcdefg") + skipped, suite(seed=50, names="abcdefg") + skipped
    )
    assert result.code() == NOT_KNOWN
    assert result.code(DONE) == DONE


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ("unsupported", "BASE refuses every case that HEAD has: no torch"),
        ("crashed", "BASE measured no case that HEAD has: crashed: no torch"),
    ],
)
def test_why_base_measured_nothing_is_told(status, said):
    broken = [timed(name, status=status, reason="no torch") for name in "ab"]
    assert compared(broken, suite(names="ab"))[1].nothing == said


def test_what_base_refused_and_head_crashes_of_is_a_regression():
    refused = [timed("a", status="unsupported", reason="ImportError: no torch")]
    _, result = compared(refused, [timed("a", status="crashed", reason="SIGSEGV")])
    assert result.code() == result.code(DONE) == REGRESSION


def test_measured_in_turns_both_sides_were_asked_for_all():
    asked = {"request": {"pairs": [["jax", "numpy"]]}}
    _, result = compared(suite(), suite(seed=50, names="abcdefg"), head_header=asked, in_turns=True)
    assert [case.case.import_ for case in result.gone] == ["h"]


def test_measured_in_turns_rounds_that_had_to_be_measured_alone_do_not_count():
    company = {"status": "timeout", "reason": "no answer", "rounds": [3, 4]}
    head = [*suite(seed=50, names="abcdefg"), timed("h", medians(seed=57), in_company=company)]
    found, _ = compared(suite(), head, in_turns=True)
    (time,) = next(case.times for case in found.cases if case.case.import_ == "h")
    assert time.processes == (8, 8)


def test_measured_in_turns_without_a_round_of_both_nothing_is_told():
    company = {"status": "timeout", "reason": "no answer", "rounds": list(range(10))}
    head = [*suite(seed=50, names="abcdefg"), timed("h", medians(seed=57), in_company=company)]
    found, result = compared(suite(), head, in_turns=True)
    assert words(found)["h"] == "INVALID"
    assert result.code(DONE) == NOT_KNOWN


def test_a_new_case_is_no_regression():
    found, result = compared(suite(names="abcdefg"), suite(seed=50))
    assert words(found)["h"] == "NEW"
    assert result.code() == DONE


def test_a_case_that_only_base_came_to_was_not_measured_and_is_never_a_pass():
    head = [
        *suite(seed=50, names="abcdefg"),
        make_result(None, None, case={"import": "h"}, status="skipped"),
    ]
    found, result = compared(suite(), head, head_header={"complete": False})
    assert words(found)["h"] == "INVALID"
    assert result.code() == result.code(DONE) == NOT_KNOWN
    assert compared(suite(), head, "warning")[1].code(DONE) == NOT_KNOWN


@pytest.mark.parametrize("status", ["crashed", "timeout"])
@pytest.mark.parametrize("base", ["skipped", None])
def test_a_crash_in_head_is_never_a_pass_where_base_has_no_answer(base, status):
    def last(status):
        return make_result(None, None, case={"import": "h"}, status=status)

    others = suite(names="abcdefg")
    before = others if base is None else [*others, last(base)]
    _, result = compared(before, [*suite(seed=50, names="abcdefg"), last(status)])
    assert [case.case.import_ for case in result.invalid] == ["h"]
    assert result.code() == result.code(DONE) == NOT_KNOWN


STATUSES = ("crashed", "timeout", "unsupported", "skipped")


@pytest.mark.parametrize("fail_on", [(), ("warning",)])
@pytest.mark.parametrize(
    ("base", "head"),
    [
        *((status, "skipped") for status in STATUSES[:3]),
        *((status, None) for status in ("crashed", "timeout", "skipped")),
        ("skipped", "unsupported"),
    ],
)
def test_a_case_that_head_has_no_answer_for_is_never_a_pass(base, head, fail_on):
    def side(status, seed):
        last = [make_result(None, None, case={"import": "h"}, status=status)] if status else []
        return [*suite(names="abcdefg", seed=seed), *last]

    _, result = compared(side(base, 0), side(head, 50), *fail_on)
    assert result.code() == result.code(DONE) == NOT_KNOWN


def untimed(result):
    return result.model_copy(update={"host_time": None, "ready_time": None})


@pytest.mark.parametrize("sides", [(1,), (0, 1)])
@pytest.mark.parametrize("count", [1, 8])
def test_what_was_measured_and_has_no_time_in_head_is_never_a_pass(sides, count):
    both = [suite(), suite(seed=50)]
    for side in sides:
        both[side] = [*map(untimed, both[side][:count]), *both[side][count:]]
    _, result = compared(*both)
    assert result.code() == result.code(DONE) == NOT_KNOWN
    assert bool(result.untold) == (count == 8)


def test_a_time_that_no_case_has_is_never_a_pass():
    _, result = compared(suite(), suite(seed=50), "device:10%")
    assert result.untold == "no time could be judged"
    assert result.code() == result.code(DONE) == NOT_KNOWN


def test_where_no_time_could_be_judged_no_setting_makes_a_pass_of_it():
    _, result = compared(suite(count=1), suite(seed=50, count=1))
    assert result.untold == "no time could be judged"
    assert result.code() == result.code(DONE) == NOT_KNOWN
    assert not compared(suite(count=1), suite(seed=50, count=1), "warning")[1].untold


@pytest.mark.parametrize("side", [0, 1])
def test_where_a_side_came_to_no_case_there_is_nothing_to_compare(side):
    stopped = [
        make_result(None, None, case={"import": n}, status="skipped", reason="it was stopped")
        for n in "ab"
    ]
    sides = [suite(names="ab"), stopped]
    _, result = compared(sides[side - 1], sides[side])
    assert result.nothing.endswith("came to no case: it was stopped")
    assert result.code(DONE) == NOTHING


def test_one_measurement_is_not_compared_with_itself():
    base, _ = pair(suite(), suite())
    with pytest.raises(UsageError, match="BASE and HEAD are the same measurement"):
        compare(base, base)


@pytest.mark.parametrize(
    ("base", "head", "reason"),
    [
        ([], suite(), "BASE holds no case"),
        (suite(), [], "HEAD holds no case"),
        ([], [], "BASE holds no case"),
        ([*suite(), *suite(seed=1)], suite(seed=2), "stand more than once in BASE or in HEAD"),
        (suite(), [*suite(seed=1), *suite(seed=2)], "stand more than once in BASE or in HEAD"),
        (suite(), suite(case={"dtype": "int8"}), "they are of different scenarios"),
        ([timed(status="unsupported")], [timed(status="unsupported")], "measured in either"),
    ],
)
def test_nothing_to_compare_is_told_and_never_passes(base, head, reason):
    _, result = compared(base, head)
    assert reason in result.nothing
    assert result.code() == result.code(DONE) == NOTHING


@pytest.mark.parametrize("base", ["crashed", "timeout", "unsupported"])
@pytest.mark.parametrize("head", ["ok", "unsupported"])
@pytest.mark.parametrize("criteria", [(), ("warning",), ("copy",)])
def test_where_base_measured_no_case_nothing_passes(base, head, criteria):
    broken = [timed(name, status=base, reason="SIGSEGV") for name in "ab"]
    _, result = compared(broken, [timed(name, status=head) for name in "ab"], *criteria)
    assert result.nothing
    assert result.code(DONE) == NOTHING


def test_where_each_side_measured_what_the_other_did_not_come_to_nothing_was_compared():
    untaken = {"status": "skipped", "reason": "it was stopped"}
    _, result = compared([timed("a"), timed("b", **untaken)], [timed("a", **untaken), timed("b")])
    assert (result.nothing, result.code(DONE)) == ("no case was measured on both sides", NOTHING)


@pytest.mark.parametrize("criteria", ["warning", "info"])
def test_who_asks_for_verdicts_of_which_no_side_knows_any_gets_no_pass(criteria):
    names = ("ownership", "values", "ordering", "lifetime", "early_write")
    sides = [suite(seed=seed, **dict.fromkeys(names)) for seed in (0, 50)]
    found, result = compared(*sides, criteria)
    assert result.code() == result.code(DONE) == NOT_KNOWN
    assert answers(found, result)[0] == (
        "Not known whether HEAD is worse: no verdict is known on both sides."
    )


def test_a_case_in_which_head_did_not_look_for_what_is_named_is_no_pass():
    head = [*suite(names="a", seed=50), *suite(names="b", seed=50, ownership=None)]
    found, result = compared(suite(names="ab"), head, "copy")
    assert (result.blind, result.code(), result.code(DONE)) == ((), NOT_KNOWN, NOT_KNOWN)
    assert "HEAD did not look at it: ownership of numpy.b(x)." in " ".join(answers(found, result))
    assert compared(suite(names="ab"), head, "wrong")[1].code() == DONE


def test_what_head_did_not_look_at_is_told_only_of_what_is_named():
    known = {"ownership": {"verdict": "view"}, "values": {"verdict": "ok"}}
    head = suite(seed=50, ownership=None, values=None)
    _, result = compared(suite(**known), head, "copy", "ready:5%")
    assert {named for _, named in result.lost} == {("ownership",)}
    assert not compared(suite(**known), head, "ready:5%")[1].lost


def test_a_crash_is_a_regression_and_nothing_is_left_to_know():
    base, head = timed(), timed(status="crashed", reason="SIGSEGV")
    found, result = compared([base], [head], "error")
    assert (result.code(), result.untold) == (REGRESSION, "")
    assert len(answers(found, result)) == 1


def test_where_no_time_is_judged_and_no_verdict_known_nothing_passes():
    """The scenario may take the times of all cases out."""
    names = ("ownership", "values", "ordering", "lifetime", "early_write")
    sides = [suite(seed=seed, names="a", **dict.fromkeys(names)) for seed in (0, 50)]
    found, result = compared(*sides, own_floors={key(sides[0][0].case): ()})
    assert result.code(DONE) == NOT_KNOWN
    assert answers(found, result)[0].startswith("Not known whether HEAD is worse: no verdict")


def test_a_floor_that_is_next_to_nothing_is_no_error():
    floor = Floor("ready", 0.0, 5e-324)
    found, _ = compared(suite(count=4), suite(count=4, seed=50), floors=(floor,))
    assert set(words(found).values()) == {"UNSURE"}


def test_several_measures_that_are_slower_are_told_together():
    found, result = compared(suite(names="a"), suite({"a": 1.5}, 10, 50, "a"), "ready:5%,host:5%")
    assert re.search(r"times as long \(ready\) and 1\.5.* \(host\)\.", answers(found, result)[0])


def test_what_a_crashed_side_knew_before_is_not_compared():
    """--fail-on copy must not take it for looked at."""
    crashed = suite(names="b", status="crashed", ownership={"verdict": "view", "evidence": {}})
    sides = [[*suite(names="a", seed=seed, ownership=None), *crashed] for seed in (0, 50)]
    assert compared(*sides, "copy")[1].blind == ("copy",)


@pytest.mark.parametrize("status", ["ok", "unsupported"])
def test_a_case_that_is_gone_is_a_regression_whatever_becomes_of_the_others(status):
    base = [timed("a"), timed("b", status="unsupported", reason="no")]
    _, result = compared(base, [timed("b", status=status)])
    assert (result.nothing, result.code(DONE)) == ("", REGRESSION)
    assert [case.case.import_ for case in result.gone] == ["a"]


def test_a_view_that_some_processes_copy_is_a_copy_for_fail_on():
    processes = [{"verdict": word, "evidence": {}} for word in ("view", "copy", "view")]
    varies = {"verdict": "varies", "evidence": {"processes": processes}}
    _, result = compared(suite(), suite(seed=50, ownership=varies), "copy")
    assert result.code() == REGRESSION


@pytest.mark.parametrize(
    ("fail_on", "code"),
    [(("copy",), REGRESSION), (("warning",), REGRESSION), (("error",), DONE), (("wrong",), DONE)],
)
def test_only_the_changes_that_were_asked_for_fail(fail_on, code):
    copies = suite(seed=50, ownership={"verdict": "copy", "evidence": {}})
    assert compared(suite(), copies, *fail_on)[1].code() == code


def test_who_asks_for_changes_only_has_no_times_judged():
    assert compared(suite(), suite({"c": 2.0}, seed=50), "error")[1].code() == DONE


def test_a_verdict_that_is_not_known_any_more_is_unsure():
    unknown = suite(seed=50, values={"verdict": "unknown", "evidence": {}})
    _, result = compared(suite(), unknown)
    assert (result.code(), result.code(DONE), result.code(REGRESSION)) == (
        NOT_KNOWN,
        DONE,
        REGRESSION,
    )


def test_a_regression_outweighs_every_doubt():
    head = suite({"c": 2.0}, seed=50, values={"verdict": "unknown", "evidence": {}})
    assert compared(suite(), head)[1].code(DONE) == REGRESSION


@given(
    st.lists(st.floats(1e-300, 1e300), min_size=1, max_size=8),
    st.lists(st.floats(1e-300, 1e300), min_size=1, max_size=8),
    st.sampled_from(["ready:5%", "ready:0%,0.000000000001ns", "ready:999999999999%"]),
)
@settings(max_examples=50)
def test_any_times_can_be_compared_and_written(base, head, fail_on):
    found, result = compared([timed(ns=base)], [timed(ns=head)], fail_on)
    assert json.loads(comparison_json.render(found, result, result.code()))
    assert render(found, result)


def test_compare_of_a_suite_leaves_no_trace_of_its_order():
    head = suite({"c": 1.2}, seed=50)
    assert words(compared(suite(), head)[0]) == words(compared(suite()[::-1], head)[0])


def samples(values, loops):
    return ProcessSamples(round=0, loops=loops, samples_ns=values)


def test_a_process_that_others_disturbed_half_of_the_time_is_as_fast_as_the_rest():
    quiet, disturbed = [100.0] * 20, [100.0] * 5 + [190.0] * 15
    assert time_ns(samples(quiet, 1000)) == time_ns(samples(disturbed, 1000)) == 100.0


def test_one_lucky_sample_is_not_the_time_of_a_process():
    assert time_ns(samples([10.0] + [100.0] * 20, 1000)) == 100.0


def test_samples_of_a_few_calls_are_judged_by_their_median():
    assert time_ns(samples([100.0] * 5 + [190.0] * 15, 10)) == 190.0


def test_two_sessions_may_differ_by_five_percent_without_a_cause():
    time = one(medians(20, spread=0.002), medians(20, seed=1, around_ns=1045.0, spread=0.002))
    assert time.word == "SAME"
    base = medians(20, spread=0.02)
    time = one(base, [1.042 * value for value in base])
    assert (time.word, time.rounds) == ("UNSURE", None)
    assert time.reason == "slower, but two sessions differ by as much"


def test_measured_in_turns_less_can_be_told():
    results = [
        timed(ns=medians(20, 1000.0 * ratio, seed=seed)) for seed, ratio in enumerate((1, 1.05))
    ]
    assert only(compared([results[0]], [results[1]], in_turns=True)[0]).word == "SLOWER"


def test_a_head_that_was_stopped_before_its_diagnosis_is_no_pass():
    head = suite(seed=9, lifetime=None)
    assert compared(suite(), head)[1].code() == 0
    for asked, code in ((None, 3), ({"diagnose": True}, 3), ({"diagnose": False}, 0)):
        header = {"complete": False, "request": {"settings": asked} if asked else {}}
        assert compared(suite(), head, head_header=header)[1].code() == code


def in_environment(name, results):
    return [result.model_copy(update={"environment": name}) for result in results]


def test_an_environment_that_head_was_not_asked_for_is_not_gone():
    places = [{"name": "a"}, {"name": "new"}]
    base = [*in_environment("a", suite(names="ab")), *in_environment("old", suite(names="ab"))]
    head = [
        *in_environment("a", suite(names="ab", seed=9)),
        *in_environment("new", suite(names="ab", seed=9)),
    ]
    _, found = compared(base, head, head_header={"environments": places})
    assert (found.gone, len(found.invalid)) == ((), 2)


def test_sides_without_a_common_environment_are_no_different_scenarios():
    base, head = in_environment("old", suite()), in_environment("new", suite(seed=9))
    _, found = compared(base, head)
    assert found.nothing == "BASE and HEAD have no environment in common: old and new"


def test_a_case_that_is_gone_is_gone_also_where_one_side_names_its_only_environment():
    base = in_environment("ours", suite(names="ab"))
    header = {"environments": [{"name": "ours"}]}
    _, found = compared(base, suite(names="a", seed=9), base_header=header)
    assert ([case.case.import_ for case in found.gone], found.code()) == (["b"], 1)
