"""A comparison as checks and remarks: a regression fails, a doubt does as it was asked to."""

from __future__ import annotations

import re

import pytest
from builders import make_result
from comparison_builders import compared, medians, suite, timed

from dlprof.compare.outcome import NOT_KNOWN
from dlprof.reports.checks import ERROR, FAILED, PASSED, SKIPPED
from dlprof.reports.ci.of_comparison import checks, doubts, remarks
from dlprof.reports.comparison_text import answers, headline

pytestmark = pytest.mark.unit

COPY = {"verdict": "copy", "evidence": {}}
GATE, PASS, FAIL, TELL = 3, 0, 1, None
"""The exit code of what is unsure, as ``--unsure`` gives it; None for ``compare``."""


def outcomes(base, head, *fail_on, unsure=GATE, **headers):
    """Outcome and word of each check by the name of the import."""
    found, result = compared(base, head, *fail_on, **headers)
    return {
        check.name.split("(")[0].removeprefix("numpy."): (check.outcome, check.kind)
        for check in checks(found, result, doubts(unsure))
    }


def said(base, head, unsure=GATE, **headers):
    found, result = compared(base, head, **headers)
    return remarks(found, result, doubts(unsure))


def other_machines():
    return {"base_header": {"environment": {"cpu": "A"}}, "head_header": {"environment": {"cpu": "B"}}}  # fmt: skip


def test_what_is_slower_fails_and_the_rest_passes():
    found = outcomes(suite(), suite({"c": 1.5}, seed=50))
    assert found.pop("c") == (FAILED, "SLOWER")
    assert set(found.values()) == {(PASSED, "")}


def test_a_check_says_how_much_slower():
    found, result = compared(suite(), suite({"c": 1.5}, seed=50))
    (check,) = [c for c in checks(found, result, doubts(GATE)) if c.outcome == FAILED]
    assert check.said.startswith("SLOWER: takes 1.5")
    assert check.suite == "torch → numpy  4x4  float32  C  cpu"


def test_a_verdict_that_is_worse_fails():
    head = suite(seed=50)
    head[2] = suite(seed=50, ownership=COPY)[2]
    assert outcomes(suite(), head)["c"] == (FAILED, "WORSE")


def test_a_case_that_is_slower_and_worse_says_both():
    head = suite({"c": 1.5}, seed=50, ownership=COPY, values={"verdict": "wrong"})
    found, result = compared(suite(), [*suite(seed=50)[:2], head[2], *suite(seed=50)[3:]])
    (check,) = [c for c in checks(found, result, doubts(GATE)) if c.outcome == FAILED]
    assert re.match(
        r"WORSE: ownership: view, now copy; values: ok, now wrong; takes 1\.5\S+ \(\S+\) times as"
        r" long \(ready\)$",
        check.said,
    )


@pytest.mark.parametrize(
    ("status", "outcome"), [("crashed", ERROR), ("timeout", ERROR), ("unsupported", FAILED)]
)
def test_what_does_not_come_back_any_more_is_no_pass(status, outcome):
    head = suite(seed=50)
    case = {"import": "c"}
    head[2] = make_result("numpy.c(x)", None, case=case, status=status, reason="SIGSEGV")
    assert outcomes(suite(), head)["c"] == (outcome, "WORSE")


def test_what_vanished_fails():
    assert outcomes(suite(), suite(seed=50, names="abcdefg"))["h"] == (FAILED, "GONE")


@pytest.mark.parametrize(
    ("unsure", "outcome"), [(GATE, ERROR), (PASS, SKIPPED), (FAIL, FAILED), (TELL, SKIPPED)]
)
def test_what_is_unsure_does_as_it_was_asked(unsure, outcome):
    base = [*suite(), timed("z", medians(1))]
    head = [*suite(seed=50), timed("z", medians(1, seed=9))]
    assert outcomes(base, head, unsure=unsure)["z"] == (outcome, "UNSURE")


@pytest.mark.parametrize(
    ("unsure", "outcome"), [(GATE, ERROR), (PASS, ERROR), (FAIL, FAILED), (TELL, SKIPPED)]
)
def test_what_is_invalid_is_never_made_a_pass(unsure, outcome):
    head = suite(seed=50)
    head[2] = suite(seed=50, status="invalid", reason="throttled")[2]
    assert outcomes(suite(), head, unsure=unsure)["c"] == (outcome, "INVALID")


def test_a_new_case_is_skipped_since_there_is_nothing_to_compare_it_with():
    assert outcomes(suite(names="abcdefg"), suite(seed=50))["h"] == (SKIPPED, "NEW")


def test_what_neither_side_has_is_skipped():
    case = {"import": "z"}
    refused = make_result("numpy.z(x)", None, case=case, status="unsupported", reason="no")
    assert outcomes([*suite(), refused], [*suite(seed=50), refused])["z"] == (
        SKIPPED,
        "UNMEASURED",
    )


def test_other_machines_are_one_error_and_one_remark():
    found = outcomes(suite(), suite(seed=50), unsure=PASS, **other_machines())
    assert found["can be compared"] == (ERROR, "INCOMPARABLE")
    (remark,) = said(suite(), suite(seed=50), **other_machines())
    assert (remark.rule, remark.severity) == ("incomparable", "error")
    assert remark.text == (
        "The times cannot be compared: measured on different machines: cpu A → B."
    )


def test_where_only_verdicts_are_judged_other_machines_are_no_error():
    crashed = make_result("numpy.z(x)", None, case={"import": "z"}, status="crashed", reason="SEGV")
    sides = [*suite(), crashed], [*suite(seed=50), crashed]
    found, result = compared(*sides, "warning", **other_machines())
    (remark,) = remarks(found, result, doubts(GATE))
    assert (remark.rule, remark.subject) == ("invalid", "numpy.z(x)")
    assert outcomes(*sides, "warning", **other_machines())["can be compared"] == (PASSED, "")
    said = headline(found, result, result.code())
    assert said == "No verdict of 8 cases is worse, but not everything could be compared."
    assert "Nor could times have been judged: measured on different" in " ".join(
        answers(found, result)
    )


def test_on_other_machines_a_case_that_crashed_is_told_beside_it():
    crashed = make_result("numpy.z(x)", None, case={"import": "z"}, status="crashed", reason="SEGV")
    found, result = compared([*suite(), crashed], [*suite(seed=50), crashed], **other_machines())
    told = [(one.rule, one.subject) for one in remarks(found, result, doubts(GATE))]
    assert told == [("incomparable", ""), ("invalid", "numpy.z(x)")]


def test_where_no_time_is_there_to_be_judged_other_machines_leave_an_error():
    found, result = compared(suite(), suite(seed=50), "device:10%", **other_machines())
    assert result.code() == NOT_KNOWN
    assert next(checks(found, result, doubts(GATE))).outcome == ERROR


def test_the_first_check_has_the_answers():
    found, result = compared(suite(), suite({"c": 1.5}, seed=50))
    first = next(checks(found, result, doubts(GATE)))
    assert (first.outcome, first.said) == (PASSED, "")
    assert first.text.startswith("HEAD is slower: numpy.c(x) takes 1.5")


def test_nothing_to_compare_is_an_error():
    found = outcomes(suite(), [])
    assert found["can be compared"] == (ERROR, "NOTHING")


def with_third(**changes):
    """HEAD with its third case changed."""
    head = suite(seed=50)
    head[2] = suite(seed=50, **changes)[2]
    return head


def without_third(status, reason="no"):
    head = suite(seed=50)
    head[2] = make_result("numpy.c(x)", None, case={"import": "c"}, status=status, reason=reason)
    return head


SIDES = {
    "same": suite(seed=50),
    "slower": suite({"c": 1.5}, seed=50),
    "faster": suite({"c": 0.5}, seed=50),
    "few": suite(count=2, seed=50),
    "gone": suite(seed=50, names="abcd"),
    "new": suite(seed=50, names="abcdefghij"),
    "copies": with_third(ownership=COPY),
    "unknown": with_third(ownership={"verdict": "unknown", "evidence": {}}),
    "slower and worse": suite({"c": 1.5}, seed=50, ownership=COPY),
    "invalid": with_third(status="invalid", reason="throttled"),
    "crashed": without_third("crashed"),
    "refused": without_third("unsupported"),
    "skipped": without_third("skipped"),
    "nothing": [],
    "others": suite(seed=50, case={"dtype": "int8"}),
}


@pytest.mark.parametrize("head", SIDES)
@pytest.mark.parametrize("fail_on", [(), ("ready:5%",), ("warning",), ("copy",)], ids=str)
@pytest.mark.parametrize("headers", [{}, other_machines()], ids=["here", "elsewhere"])
def test_checks_and_remarks_fail_exactly_where_the_gate_does(head, fail_on, headers):
    found, result = compared(suite(), SIDES[head], *fail_on, **headers)
    for unsure in (GATE, PASS, FAIL):
        doubt = doubts(unsure)
        bad = [c for c in checks(found, result, doubt) if c.outcome in (FAILED, ERROR)]
        errors = [r for r in remarks(found, result, doubt) if r.severity == "error"]
        assert bool(bad) == bool(result.code(unsure)) == bool(errors), unsure


def test_errors_stand_before_warnings():
    base = [timed("z", medians(1)), *suite()]
    head = [timed("z", medians(1, seed=9)), *suite({"c": 1.5}, seed=50)]
    found = said(base, head, unsure=PASS)
    assert [(r.rule, r.severity) for r in found] == [("slower", "error"), ("unsure", "warning")]


def test_fingerprints_know_no_times():
    first, second = (
        [r.fingerprint for r in said(suite(), suite({"c": ratio}, seed=seed))]
        for ratio, seed in ((1.5, 50), (1.9, 70))
    )
    assert first == second
    assert len(first) == 1


def at(results, **case):
    """The same results at another array."""
    return [
        result.model_copy(update={"case": result.case.model_copy(update=case)})
        for result in results
    ]


def test_one_way_at_several_shapes_is_said_once():
    base, head = suite(), suite({"c": 1.5}, seed=50)
    found = said([*base, *at(base, shape=(8, 8))], [*head, *at(head, shape=(8, 8))])
    assert [remark.rule for remark in found] == ["slower"]


def test_what_both_sides_left_out_is_skipped_and_not_silent():
    header = {"left_out": ["jax is not installed"]}
    found = outcomes(suite(), suite(seed=50), base_header=header, head_header=header)
    assert found["left out on both sides: jax is not installed"] == (SKIPPED, "LEFT OUT")
