"""A session as checks: passes, failures, and cases without an answer."""

import pytest
from builders import make_result, make_session
from repro_builders import finding_of

from dlprof.report.checks import RUN, checks

SLOW = finding_of("DLP012", severity="warning", advice="no", against=None)


def outcomes(*results, fails=lambda _: False, **changes):
    session = make_session(*results, **changes)
    return {check.name: check for check in checks(session, fails)}


def of_case(found):
    return next(check for check in found.values() if check.suite == "torch → numpy")


def test_a_measured_case_passes_and_reports_its_findings():
    check = of_case(outcomes(make_result(), findings=[SLOW]))
    assert check.outcome == "passed"
    assert "view" in check.text
    assert "DLP012" in check.text


def test_a_finding_fails_its_cases_if_fail_on_names_it():
    check = of_case(outcomes(make_result(), findings=[SLOW], fails=lambda _: True))
    assert (check.outcome, check.kind) == ("failed", "DLP012")
    assert check.text.splitlines()[-1] == "no"


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        ("unsupported", "skipped"),
        ("skipped", "skipped"),
        ("crashed", "error"),
        ("timeout", "error"),
    ],
)
def test_an_unmeasured_case_is_never_a_pass(status, outcome):
    check = of_case(outcomes(make_result("x", None, status=status, reason="why\nmore")))
    assert (check.outcome, check.kind) == (outcome, status)
    assert "why" in check.line


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [
        ("dlprof or a probe failed in a.py, line 3: TypeError: no", "error"),
        ("too large", "skipped"),
    ],
)
def test_an_internal_failure_is_an_error_and_a_case_that_was_not_tried_is_none(reason, outcome):
    check = of_case(outcomes(make_result("x", None, status="skipped", reason=reason)))
    assert check.outcome == outcome


def test_a_faulty_probe_is_an_error_of_the_probe_and_no_crash():
    reason = "the probe is faulty: odd's create raises KeyError: 'int4'"
    check = of_case(outcomes(make_result("x", None, status="crashed", reason=reason)))
    assert (check.outcome, check.kind, check.line) == (
        "error",
        "fault of a probe or of dlprof",
        reason,
    )


def test_a_stopped_run_or_one_without_measurements_is_an_error():
    lost = make_result("x", None, status="crashed")
    found = outcomes(lost, complete=False)
    assert sum(check.suite == RUN and check.outcome == "error" for check in found.values()) == 2


def test_expectations_are_checks():
    expectations = [
        {"text": "a", "verdict": "met"},
        {"text": "b", "verdict": "not met"},
        {"text": "c", "verdict": "not checked", "reason": "why"},
    ]
    found = outcomes(make_result(), expectations=expectations)
    assert [found[name].outcome for name in "abc"] == ["passed", "failed", "error"]
