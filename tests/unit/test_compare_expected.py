"""What the scenario of HEAD expects, and verdicts that nothing looked for: no pass either."""

from __future__ import annotations

import pytest
from comparison_builders import compared, suite

from dlprof.compare.outcome import DONE, NOT_KNOWN, REGRESSION
from dlprof.reports.ci.check import ERROR, FAILED, PASSED
from dlprof.reports.ci.of_comparison import checks, doubts, remarks
from dlprof.reports.comparison_json import content
from dlprof.reports.comparison_text import answers

pytestmark = pytest.mark.unit

SAFE = {"verdict": "safe", "evidence": {}}


def expecting(verdict, reason=""):
    return {"expectations": [{"text": "no error", "verdict": verdict, "reason": reason}]}


def judged(*fail_on, base=None, head=None, **headers):
    return compared(base or suite(), head or suite(seed=50), *fail_on, **headers)


def test_what_head_does_not_do_though_it_is_expected_is_a_regression():
    found, result = judged(head_header=expecting("not met"))
    assert result.code() == REGRESSION
    assert answers(found, result)[0] == "HEAD does not do what the scenario expects: no error."


def test_what_was_expected_of_base_only_says_nothing_of_head():
    assert judged(base_header=expecting("not met"))[1].code() == DONE
    assert judged(head_header=expecting("met"))[1].code() == DONE


@pytest.mark.parametrize("verdict", ["not checked", "a word of a later dlprof"])
def test_what_could_not_be_checked_is_no_pass_whatever_becomes_of_unsure(verdict):
    found, result = judged(head_header=expecting(verdict, "one process only"))
    assert [result.code(unsure) for unsure in (NOT_KNOWN, DONE, REGRESSION)] == [3, 3, 1]
    assert "no error (one process only)" in " ".join(answers(found, result))


@pytest.mark.parametrize(
    ("verdict", "outcome", "severities"),
    [("met", PASSED, []), ("not met", FAILED, ["error"]), ("not checked", ERROR, ["error"])],
)
def test_expectations_stand_in_checks_and_remarks(verdict, outcome, severities):
    found, result = judged(head_header=expecting(verdict))
    about = [one for one in checks(found, result, doubts(3)) if one.suite == "expectations"]
    assert [(one.name, one.outcome) for one in about] == [("no error", outcome)]
    assert [one.severity for one in remarks(found, result, doubts(3))] == severities
    assert content(found, result, 0)["expectations"][0]["verdict"] == verdict


def test_a_verdict_that_is_named_and_was_not_looked_for_is_no_pass():
    found, result = judged("dangling", base=suite(lifetime=None), head=suite(lifetime=None))
    assert result.blind == ("dangling",)
    assert [result.code(unsure) for unsure in (NOT_KNOWN, DONE, REGRESSION)] == [3, 3, 1]
    assert "Nothing looked for dangling on both sides" in " ".join(answers(found, result))
    assert "BLIND" in [one.kind for one in checks(found, result, doubts(3))]
    assert [one.rule for one in remarks(found, result, doubts(3))] == ["blind"]


def test_one_side_that_looked_is_not_enough():
    assert judged("dangling", base=suite(lifetime=None))[1].code() == NOT_KNOWN


def test_a_verdict_that_was_looked_for_once_on_both_sides_is_a_pass():
    base, head = suite(lifetime=None), suite(seed=50, lifetime=None)
    base[0], head[0] = suite(lifetime=SAFE)[0], suite(seed=50, lifetime=SAFE)[0]
    assert judged("dangling", base=base, head=head)[1].code() == DONE


def test_a_verdict_of_which_nothing_is_known_was_not_looked_for():
    unknown = {"verdict": "unknown", "evidence": {"reason": "no address"}}
    sides = {"base": suite(lifetime=unknown), "head": suite(seed=50, lifetime=unknown)}
    assert judged("dangling", **sides)[1].blind == ("dangling",)


def test_a_case_that_a_session_holds_twice_is_no_pass():
    head = suite(seed=50)
    found, result = judged(head=[*head, head[0]])
    assert [result.code(unsure) for unsure in (NOT_KNOWN, DONE, REGRESSION)] == [3, 3, 1]
    assert answers(found, result)[0].startswith("No regression was found, but not every case")
    kinds = [(one.kind, one.outcome) for one in checks(found, result, doubts(3))]
    assert ("AMBIGUOUS", ERROR) in kinds
    assert [one.rule for one in remarks(found, result, doubts(3))] == ["ambiguous"]
