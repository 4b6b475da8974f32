"""The exit code of a comparison: missing, broken or unknown cases never pass."""

from dataclasses import replace

import pytest
from builders import make_result
from comparison_builders import case_words, compared, medians, suite, timed

from dlprof.compare.comparison import DONE, NOT_KNOWN, NOTHING, REGRESSION, exit_code

NO_VERDICTS = dict.fromkeys(("ownership", "values", "ordering", "lifetime", "early_write"))


def with_last(status, seed=0, reason=None):
    """Seven measured cases, and another with this status; seven only if it is None."""
    case = {"import": "h"}
    last = [make_result(None, None, case=case, status=status, reason=reason)] if status else []
    return [*suite(names="abcdefg", seed=seed), *last]


def codes(base, head, *fail_on, **headers):
    """Return the exit codes by default and with ``--unsure pass``."""
    found = compared(base, head, *fail_on, **headers)
    return exit_code(found), exit_code(found, DONE)


def test_a_gate_that_ran_out_of_time_does_not_pass():
    found = compared(suite(), suite(seed=50))
    assert exit_code(replace(found, unfinished="no time for 2 paths"), DONE) == NOT_KNOWN


def test_a_slower_case_is_a_regression_and_outweighs_every_doubt():
    head = suite({"c": 2.5}, seed=50, values={"verdict": "unknown", "evidence": {}})
    assert codes(suite(), head) == (REGRESSION, REGRESSION)


def test_equal_code_a_faster_case_and_a_new_one_pass():
    assert codes(suite(names="abcdefg"), suite({"c": 0.8}, seed=50)) == (DONE, DONE)


@pytest.mark.parametrize("status", ["ok", "unsupported"])
def test_a_missing_case_is_a_regression(status):
    base = [timed("a"), timed("b", status="unsupported", reason="no")]
    found = compared(base, [timed("b", status=status)])
    assert (case_words(found)["a"], exit_code(found, DONE)) == ("GONE", REGRESSION)


@pytest.mark.parametrize(
    ("in_turns", "word", "code"), [(False, "INVALID", NOT_KNOWN), (True, "GONE", REGRESSION)]
)
def test_a_case_not_requested_of_head_is_neither_a_regression_nor_a_pass(in_turns, word, code):
    asked = {"request": {"pairs": [["jax", "numpy"]]}}
    found = compared(suite(), with_last(None, 50), head_header=asked, in_turns=in_turns)
    assert (case_words(found)["h"], exit_code(found, DONE)) == (word, code)


@pytest.mark.parametrize("fail_on", [(), ("host:5%", "copy")])
def test_a_case_that_crashes_is_a_regression_for_any_criterion(fail_on):
    assert codes(suite(), with_last("crashed", 50, "SIGSEGV"), *fail_on)[1] == REGRESSION


@pytest.mark.parametrize(
    ("base", "head"),
    [
        *((status, "skipped") for status in ("ok", "crashed", "unsupported", "skipped")),
        ("crashed", None),
        ("skipped", "timeout"),
        ("crashed", "crashed"),
    ],
)
def test_a_case_without_an_answer_from_head_is_never_a_pass(base, head):
    before = suite() if base == "ok" else with_last(base)
    assert codes(before, with_last(head, 50)) == (NOT_KNOWN, NOT_KNOWN)


@pytest.mark.parametrize("side", [0, 1])
def test_a_measured_case_without_a_time_is_never_a_pass(side):
    both = [suite(), suite(seed=50)]
    both[side][0] = both[side][0].model_copy(update={"host_time": None, "ready_time": None})
    assert codes(*both) == (NOT_KNOWN, NOT_KNOWN)


def test_if_no_time_could_be_judged_nothing_passes():
    assert codes(suite(count=1), suite(seed=50, count=1)) == (NOT_KNOWN, NOT_KNOWN)


@pytest.mark.parametrize(
    ("base", "head", "reason"),
    [
        ([], suite(), "BASE holds no case"),
        (suite(), [], "HEAD holds no case"),
        (suite(), suite(case={"dtype": "int8"}), "measure different pairs"),
        ([timed(status="crashed", reason="SIGSEGV")], [timed()], "both sides: SIGSEGV"),
        ([timed()], [timed(status="skipped", reason="stopped")], "both sides: stopped"),
    ],
)
def test_an_empty_comparison_is_reported_and_never_passes(base, head, reason):
    found = compared(base, head)
    assert reason in found.nothing
    assert exit_code(found) == exit_code(found, DONE) == NOTHING


@pytest.mark.parametrize(
    ("fail_on", "code"),
    [((), REGRESSION), (("copy",), REGRESSION), (("error",), DONE), (("wrong",), DONE)],
)
def test_only_the_named_changes_fail(fail_on, code):
    copies = suite(seed=50, ownership={"verdict": "copy", "evidence": {}})
    assert codes(suite(), copies, *fail_on) == (code, code)


def test_verdicts_of_different_machines_are_compared():
    copies = suite(seed=50, ownership={"verdict": "copy", "evidence": {}})
    sides = [{"environment": {"cpu": cpu}} for cpu in "AB"]
    assert codes(suite(), copies, base_header=sides[0], head_header=sides[1])[0] == REGRESSION


def test_a_verdict_that_is_no_longer_known_is_unsure():
    unknown = suite(seed=50, values={"verdict": "unknown", "evidence": {}})
    assert codes(suite(), unknown) == (NOT_KNOWN, DONE)


@pytest.mark.parametrize("criteria", ["warning", "copy"])
def test_verdicts_unknown_on_both_sides_do_not_pass(criteria):
    sides = [suite(seed=seed, **NO_VERDICTS) for seed in (0, 50)]
    assert codes(*sides, criteria) == (NOT_KNOWN, NOT_KNOWN)


def test_a_named_verdict_that_head_did_not_look_for_does_not_pass():
    head = suite(seed=50, lifetime=None)
    assert codes(suite(), head, "dangling") == (NOT_KNOWN, NOT_KNOWN)
    assert codes(suite(), head, "wrong") == (DONE, DONE)


def test_a_head_that_was_stopped_early_does_not_pass():
    assert codes(suite(), suite(seed=9), head_header={"complete": False})[1] == NOT_KNOWN


@pytest.mark.parametrize(
    ("verdict", "code"), [("met", DONE), ("not met", REGRESSION), ("not checked", NOT_KNOWN)]
)
def test_the_expectations_of_heads_scenario_are_judged(verdict, code):
    told = {"expectations": [{"text": "torch->numpy: DLP004", "verdict": verdict}]}
    assert codes(suite(), suite(seed=50), head_header=told) == (code, code)
    assert codes(suite(), suite(seed=50), base_header=told) == (DONE, DONE)


def wide(sd, seed, **settings):
    """Return a gate in turns with one case that varies by ``sd``, and its exit code."""
    noisy = [timed("z", medians(24, spread=sd, seed=seed + side)) for side in (0, 1)]
    found = compared(
        [*suite(count=24), noisy[0]],
        [*suite(count=24, seed=50), noisy[1]],
        in_turns=True,
        **settings,
    )
    return found, next(time for case, time in found.times if case.case.import_ == "z")


def test_an_open_case_passes_with_a_bound_below_the_limit():
    found, time = wide(sd=0.15, seed=3)
    assert (time.word, case_words(found)["z"], exit_code(found)) == ("WIDE", "WIDE", DONE)
    assert 1.0 < time.bound < 1.25


@pytest.mark.parametrize(("sd", "settings"), [(0.15, {"wide_limit": 0.01}), (1.0, {})])
def test_an_open_case_with_a_bound_above_the_limit_is_a_doubt(sd, settings):
    found, time = wide(sd, seed=3, **settings)
    assert (time.word, exit_code(found), exit_code(found, DONE)) == ("WIDE", NOT_KNOWN, DONE)
