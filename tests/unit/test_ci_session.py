"""A session as checks and remarks: what fails, what is skipped, and what stays the same."""

from __future__ import annotations

import pytest
from builders import make_result, make_session

from dlprof.reports.ci.check import ERROR, FAILED, PASSED, SKIPPED
from dlprof.reports.ci.of_session import checks, remarks
from dlprof.rules.fail_on import parse
from dlprof.session.model import FindingRecord

pytestmark = pytest.mark.unit

MET = {"text": "DLP001 on jax->*", "verdict": "met"}


def finding(*indices, rule="DLP012", severity="warning", **changes):
    fields = {"name": "slow-path", "summary": "f(x) takes 20 ms", "advice": "g(x) instead."}
    return FindingRecord(rule=rule, severity=severity, results=list(indices), **(fields | changes))


def lost(status, reason="it said no"):
    return make_result("f(x)", None, status=status, reason=reason, host_time=None, ready_time=None)


def outcomes(session, *fail_on):
    """Outcome and word of each check by its suite and name."""
    fails = parse(fail_on).fails
    return {
        (check.suite, check.name.split("  ")[0]): (check.outcome, check.kind)
        for check in checks(session, session.results, fails)
    }


def of_case(session, *fail_on):
    return outcomes(session, *fail_on)["torch → numpy", "f(x)"]


def prints(session):
    return [remark.fingerprint for remark in remarks(session, session.results)]


def test_a_case_that_was_measured_passes_and_says_what_was_found():
    session = make_session(make_result("f(x)"), findings=[finding(0)])
    (check,) = [c for c in checks(session, session.results) if c.name.startswith("f(x)")]
    assert (check.outcome, check.name) == (PASSED, "f(x)  4x4 float32 C cpu")
    assert check.text == "ready 1.00 ±0.10 us, view\nwarning DLP012 slow-path: f(x) takes 20 ms"


@pytest.mark.parametrize(
    ("fail_on", "outcome"),
    [((), PASSED), (("error",), PASSED), (("warning",), FAILED), (("slow-path",), FAILED)],
)
def test_a_finding_fails_its_cases_where_fail_on_names_it(fail_on, outcome):
    session = make_session(make_result("f(x)"), make_result("g(x)"), findings=[finding(0)])
    assert of_case(session, *fail_on)[0] == outcome
    assert outcomes(session, *fail_on)["torch → numpy", "g(x)"] == (PASSED, "")


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        ("crashed", ERROR),
        ("timeout", ERROR),
        ("unsupported", SKIPPED),
        ("skipped", SKIPPED),
        ("invalid", SKIPPED),
    ],
)
def test_what_was_not_measured_is_never_a_pass(status, outcome):
    assert of_case(make_session(lost(status))) == (outcome, status)


def test_a_finding_about_no_case_fails_too():
    session = make_session(make_result("f(x)"), findings=[finding(7, -1, severity="error")])
    assert outcomes(session, "error")["the run", "error DLP012 slow-path: f(x) takes 20 ms"] == (
        FAILED,
        "DLP012",
    )


def test_a_session_in_which_nothing_was_measured_is_an_error():
    for session in (make_session(), make_session(lost("unsupported"))):
        found = outcomes(session)
        assert found["the run", "something was measured"] == (ERROR, "nothing-measured")
        said = remarks(session, session.results)
        assert said[0].text == "Nothing could be measured."


def test_a_run_that_was_stopped_is_an_error():
    session = make_session(make_result("f(x)"), complete=False)
    assert outcomes(session)["the run", "it came to its end"] == (ERROR, "stopped")
    said = remarks(session, session.results)
    assert "The run was stopped before its end." in [one.text for one in said]


def test_a_rule_that_fail_on_names_and_nothing_looked_for_is_an_error():
    session = make_session(make_result("f(x)"))
    unseen = parse(["DLP001,DLP012,asymmetric"]).unseen(session.results)
    found = list(checks(session, session.results, unseen=unseen))
    errors = {check.name: check.said for check in found if check.outcome == ERROR}
    assert list(errors) == ["--fail-on DLP001", "--fail-on DLP013"]
    assert "not measured: ordering" in errors["--fail-on DLP001"]
    said = remarks(session, session.results, unseen)
    assert [(one.rule, one.severity, one.text) for one in said] == [
        ("blind", "error", text) for text in errors.values()
    ]


def test_expectations_are_checks():
    missed = {"text": "no error", "verdict": "not met"}
    unknown = {"text": "DLP003 on tf->*", "verdict": "not checked", "reason": "no diagnosis"}
    session = make_session(make_result("f(x)"), expectations=[MET, missed, unknown])
    found = outcomes(session)
    assert found["expectations", "DLP001 on jax->*"] == (PASSED, "")
    assert found["expectations", "no error"] == (FAILED, "not met")
    assert found["expectations", "DLP003 on tf->*"] == (ERROR, "not checked")
    assert [remark.text for remark in remarks(session, session.results)] == [
        "expected no error: not met",
        "expected DLP003 on tf->*: not checked (no diagnosis)",
    ]


def test_a_remark_is_made_once_for_each_way_whatever_the_shape():
    results = [make_result(code, case={"shape": s}) for s in ((4, 4), (8, 8)) for code in ("f(x)", "g(x)")]  # fmt: skip
    session = make_session(*results, findings=[finding(0, 1), finding(2, 3)])
    assert [remark.subject for remark in remarks(session, session.results)] == ["f(x)", "g(x)"]


def test_fingerprints_know_no_times_versions_or_places():
    first = make_session(make_result("f(x)"), findings=[finding(0)])
    second = make_session(
        make_result("g(x)"),
        make_result("f(x)", 9e9),
        findings=[finding(1, summary="f(x) takes 9 s", severity="info")],
        environment={"packages": {"torch": "9.9"}},
    )
    assert prints(first) == prints(second)


@pytest.mark.parametrize(
    "change",
    [{"code": "g(x)"}, {"dtype": "int8"}, {"layout": "F"}, {"device": "cuda"}, {"producer": "jax"}],
    ids=lambda change: next(iter(change)),
)
def test_fingerprints_tell_ways_apart(change):
    first = make_session(make_result("f(x)"), findings=[finding(0)])
    case = {"code": "f(x)"} | change
    second = make_session(make_result(case=case), findings=[finding(0)])
    assert prints(first) != prints(second)


def test_the_fingerprint_of_a_finding_never_changes():
    """A version that changes it makes every known finding of every user a new one."""
    session = make_session(make_result("f(x)"), findings=[finding(0)])
    assert prints(session) == ["dee9359c5ada07c2e43373389b37050a9b4191fd2d2eecc57279fe71739952c4"]
