"""What a comparison comes to: what is missing, broken or unknown is never a pass."""

from __future__ import annotations

import pytest
from builders import make_result
from comparison_builders import compared, suite, timed

from dlprof.compare.matching import key
from dlprof.compare.outcome import DONE, NOT_KNOWN, NOTHING, REGRESSION

pytestmark = pytest.mark.unit

NO_VERDICTS = dict.fromkeys(("ownership", "values", "ordering", "lifetime", "early_write"))


def with_last(status, seed=0, reason=None):
    """Seven cases that were measured, and one with this status; without it for None."""
    case = {"import": "h"}
    last = [make_result(None, None, case=case, status=status, reason=reason)] if status else []
    return [*suite(names="abcdefg", seed=seed), *last]


def names(cases):
    return [case.case.import_ for case in cases]


def codes(base, head, *fail_on, **headers):
    """The exit codes by the default and by ``--unsure pass``."""
    result = compared(base, head, *fail_on, **headers)[1]
    return result.code(), result.code(DONE)


def test_equal_code_passes():
    assert codes(suite(), suite(seed=50)) == (DONE, DONE)


def test_a_slower_case_is_a_regression_and_outweighs_every_doubt():
    head = suite({"c": 2.0}, seed=50, values={"verdict": "unknown", "evidence": {}})
    assert codes(suite(), head) == (REGRESSION, REGRESSION)


def test_a_faster_case_and_a_new_one_are_no_regression():
    assert codes(suite(names="abcdefg"), suite({"c": 0.8}, seed=50)) == (DONE, DONE)


@pytest.mark.parametrize("status", ["ok", "unsupported"])
def test_a_case_that_is_gone_is_a_regression(status):
    base = [timed("a"), timed("b", status="unsupported", reason="no")]
    result = compared(base, [timed("b", status=status)])[1]
    assert (names(result.gone), result.code(DONE)) == (["a"], REGRESSION)


def test_a_case_that_head_was_not_asked_for_is_no_regression_and_no_pass():
    asked = {"request": {"pairs": [["jax", "numpy"]]}}
    result = compared(suite(), with_last(None, 50), head_header=asked)[1]
    assert (result.gone, names(result.invalid)) == ((), ["h"])
    assert result.code(DONE) == NOT_KNOWN


def test_in_turns_both_sides_were_asked_for_all():
    asked = {"request": {"pairs": [["jax", "numpy"]]}}
    result = compared(suite(), with_last(None, 50), head_header=asked, in_turns=True)[1]
    assert names(result.gone) == ["h"]


@pytest.mark.parametrize("fail_on", [(), ("host:5%", "copy")])
def test_a_case_that_crashes_is_a_regression_whatever_is_asked_for(fail_on):
    assert codes(suite(), with_last("crashed", 50, "SIGSEGV"), *fail_on)[1] == REGRESSION


def test_what_base_refused_and_head_crashes_of_is_a_regression():
    refused = [timed("a", status="unsupported", reason="ImportError: no torch")]
    assert codes(refused, [timed("a", status="crashed", reason="SIGSEGV")])[1] == REGRESSION


@pytest.mark.parametrize(("rounds", "code"), [([0, 1], NOT_KNOWN), ([], DONE)])
def test_what_worked_in_base_for_a_while_was_not_compared_and_else_is_new(rounds, code):
    crash = timed("h", status="crashed", reason="SIGSEGV", rounds=rounds)
    assert codes([*with_last(None), crash], suite(seed=50))[1] == code


@pytest.mark.parametrize("fail_on", [(), ("warning",)])
@pytest.mark.parametrize(
    ("base", "head"),
    [
        *((status, "skipped") for status in ("ok", "crashed", "timeout", "unsupported")),
        *((status, None) for status in ("crashed", "timeout", "skipped")),
        *((status, broken) for status in ("skipped", None) for broken in ("crashed", "timeout")),
        ("crashed", "crashed"),
        ("timeout", "timeout"),
        ("skipped", "unsupported"),
    ],
)
def test_a_case_that_head_has_no_answer_for_is_never_a_pass(base, head, fail_on):
    before = suite() if base == "ok" else with_last(base)
    assert codes(before, with_last(head, 50), *fail_on) == (NOT_KNOWN, NOT_KNOWN)


def test_what_was_left_out_on_both_sides_is_unsure():
    assert codes(with_last("skipped"), with_last("skipped", 50)) == (NOT_KNOWN, DONE)


@pytest.mark.parametrize("sides", [(1,), (0, 1)])
@pytest.mark.parametrize("count", [1, 8])
def test_what_was_measured_and_has_no_time_is_never_a_pass(sides, count):
    both = [suite(), suite(seed=50)]
    for side in sides:
        untimed = [
            one.model_copy(update={"host_time": None, "ready_time": None})
            for one in both[side][:count]
        ]
        both[side] = [*untimed, *both[side][count:]]
    assert codes(*both) == (NOT_KNOWN, NOT_KNOWN)


@pytest.mark.parametrize("fail_on", [("device:10%",), ()])
def test_if_no_time_could_be_judged_nothing_passes(fail_on):
    count = 10 if fail_on else 1
    result = compared(suite(count=count), suite(seed=50, count=count), *fail_on)[1]
    assert (bool(result.untold), result.code(DONE)) == (True, NOT_KNOWN)


@pytest.mark.parametrize(
    ("base", "head", "reason"),
    [
        ([], suite(), "BASE holds no case"),
        (suite(), [], "HEAD holds no case"),
        ([*suite(), *suite(seed=1)], suite(seed=2), "stand more than once"),
        (suite(), suite(case={"dtype": "int8"}), "of different scenarios"),
        ([timed(status="unsupported")], [timed(status="unsupported")], "BASE measured no case"),
        ([timed(status="crashed", reason="SIGSEGV")], [timed()], "crashed: SIGSEGV"),
        ([timed()], [timed(status="skipped", reason="stopped")], "HEAD measured no case"),
        (
            [timed("a"), timed("b", status="skipped")],
            [timed("a", status="skipped"), timed("b")],
            "no case was measured on both sides",
        ),
    ],
)
@pytest.mark.parametrize("fail_on", [(), ("warning",)])
def test_nothing_to_compare_is_told_and_never_passes(base, head, reason, fail_on):
    result = compared(base, head, *fail_on)[1]
    assert reason in result.nothing
    assert result.code() == result.code(DONE) == NOTHING


def test_a_case_that_a_session_holds_twice_is_no_pass():
    head = suite(seed=50)
    assert codes(suite(), [*head, head[-1]]) == (NOT_KNOWN, NOT_KNOWN)


@pytest.mark.parametrize(
    ("fail_on", "code"),
    [((), REGRESSION), (("copy",), REGRESSION), (("error",), DONE), (("wrong",), DONE)],
)
def test_only_the_changes_that_were_asked_for_fail(fail_on, code):
    copies = suite(seed=50, ownership={"verdict": "copy", "evidence": {}})
    assert codes(suite(), copies, *fail_on) == (code, code)


def test_verdicts_of_different_machines_are_compared():
    copies = suite(seed=50, ownership={"verdict": "copy", "evidence": {}})
    sides = [{"environment": {"cpu": cpu}} for cpu in "AB"]
    result = compared(suite(), copies, base_header=sides[0], head_header=sides[1])[1]
    assert (len(result.worse), result.code()) == (8, REGRESSION)


def test_whoever_asks_for_changes_only_has_no_times_judged():
    assert codes(suite(), suite({"c": 2.0}, seed=50), "error") == (DONE, DONE)


def test_a_verdict_that_is_not_known_any_more_is_unsure():
    unknown = suite(seed=50, values={"verdict": "unknown", "evidence": {}})
    assert codes(suite(), unknown) == (NOT_KNOWN, DONE)


@pytest.mark.parametrize("criteria", ["warning", "copy"])
def test_verdicts_that_no_side_knows_are_no_pass(criteria):
    sides = [suite(seed=seed, **NO_VERDICTS) for seed in (0, 50)]
    assert codes(*sides, criteria) == (NOT_KNOWN, NOT_KNOWN)


def test_verdicts_are_needed_if_the_scenario_takes_the_times_out():
    sides = [suite(seed=seed, names="a", **NO_VERDICTS) for seed in (0, 50)]
    assert codes(*sides, own_floors={key(sides[0][0].case): ()})[1] == NOT_KNOWN


def test_a_verdict_that_is_named_and_that_head_did_not_look_for_is_no_pass():
    head = [*suite(names="a", seed=50), *suite(names="b", seed=50, ownership=None)]
    result = compared(suite(names="ab"), head, "copy")[1]
    assert ([named for _, named in result.lost], result.code(DONE)) == ([("ownership",)], NOT_KNOWN)
    assert not compared(suite(names="ab"), head, "wrong")[1].lost


def test_what_a_crashed_side_knew_before_was_not_looked_for():
    crashed = suite(names="b", status="crashed", ownership={"verdict": "view", "evidence": {}})
    sides = [[*suite(names="a", seed=seed, ownership=None), *crashed] for seed in (0, 50)]
    assert compared(*sides, "copy")[1].blind == ("copy",)


@pytest.mark.parametrize(
    ("settings", "code"),
    [({}, NOT_KNOWN), ({"diagnose": True}, NOT_KNOWN), ({"diagnose": False}, DONE)],
)
def test_a_head_that_was_stopped_before_its_diagnosis_is_no_pass(settings, code):
    header = {"complete": False, "request": {"settings": settings}}
    assert codes(suite(), suite(seed=9, lifetime=None), head_header=header)[0] == code


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        ("met", (DONE, DONE)),
        ("not met", (REGRESSION, REGRESSION)),
        ("not checked", (NOT_KNOWN, NOT_KNOWN)),
        ("a word of a later dlprof", (NOT_KNOWN, NOT_KNOWN)),
    ],
)
def test_what_the_scenario_of_head_expects_is_judged(verdict, expected):
    told = {"expectations": [{"text": "torch->numpy: DLP004", "verdict": verdict}]}
    assert codes(suite(), suite(seed=50), head_header=told) == expected
    assert codes(suite(), suite(seed=50), base_header=told) == (DONE, DONE)
