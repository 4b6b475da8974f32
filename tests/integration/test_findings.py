"""Findings from the command line: in the report, in the session, and as an exit code."""

from __future__ import annotations

import json

import pytest
from command_line import FAKE, PROBE_FILES, QUICK, content, dlprof

pytestmark = pytest.mark.integration

LIAR = ("run", "liar", "liar", "--probe", PROBE_FILES / "liar.py", *QUICK)
HONEST = ("run", "fake", "fake", "--probe", FAKE, *QUICK)
BROKEN = "DLP018"


def rules_of(path):
    return {finding["rule"] for finding in json.loads(path.read_text())["findings"]}


def test_a_broken_promise_ends_the_report_and_stands_in_the_session(tmp_path):
    session = tmp_path / "s.json"
    run = dlprof(*LIAR, "-o", session, state=tmp_path)
    assert run.code == 0
    assert f"error {BROKEN} promise-broken" in run.out
    assert BROKEN in rules_of(session)


def test_the_report_of_a_session_shows_its_findings_again(tmp_path):
    session = tmp_path / "s.json"
    dlprof(*LIAR, "-o", session, state=tmp_path)
    assert BROKEN in dlprof("report", session, state=tmp_path).out


def test_a_kept_promise_is_no_finding(tmp_path):
    session = tmp_path / "s.json"
    dlprof(*HONEST, "-o", session, state=tmp_path)
    assert BROKEN not in rules_of(session)


@pytest.mark.parametrize("allowed", [BROKEN, "promise-broken", "error", "warning", "DLP009,error"])
def test_fail_on_turns_a_finding_into_exit_code_1(tmp_path, allowed):
    session = tmp_path / "s.json"
    run = dlprof(*LIAR, "-o", session, "--fail-on", allowed, state=tmp_path)
    assert run.code == 1
    assert run.sentences[-1] == f"dlprof: --fail-on: found {BROKEN} promise-broken"
    assert BROKEN in rules_of(session)


def test_fail_on_another_rule_does_not_fail(tmp_path):
    assert dlprof(*LIAR, "--fail-on", "DLP009", state=tmp_path).code == 0


def test_fail_on_a_rule_that_nothing_looks_for_is_refused_before_anything_is_measured(tmp_path):
    session = tmp_path / "s.json"
    run = dlprof(*LIAR, "-o", session, "--fail-on", "DLP020", state=tmp_path)
    said = "--fail-on DLP020 needs the diagnosis, which --quick leaves out; add --diagnose"
    assert (run.code, run.sentence()) == (2, f"dlprof: {said}")
    assert not session.exists()


def test_with_the_diagnosis_a_quick_run_looks_for_every_rule(tmp_path):
    run = dlprof(*HONEST, "--diagnose", "--fail-on", "DLP020,DLP010", state=tmp_path)
    assert run.code == 0


def test_a_session_in_which_nothing_looked_for_a_rule_is_exit_code_3(tmp_path):
    session = tmp_path / "s.json"
    dlprof(*HONEST, "-o", session, state=tmp_path)
    run = dlprof("report", session, "--fail-on", "DLP020", state=tmp_path)
    said = "--fail-on: nothing looked for DLP020: not measured: early write (see --diagnose)"
    assert (run.code, run.sentence()) == (3, f"dlprof: {said}")


def test_a_session_without_results_passes_nothing(tmp_path):
    session = tmp_path / "s.json"
    dlprof(*HONEST, "-o", session, state=tmp_path)
    session.write_text(json.dumps({**content(session), "results": [], "findings": []}))
    run = dlprof("report", session, "--fail-on", "DLP016", state=tmp_path)
    assert run.code == 4
    assert run.sentence().startswith("dlprof: nothing could be measured")


def test_a_severity_passes_without_the_diagnosis_and_says_what_nothing_looked_for(tmp_path):
    session = tmp_path / "s.json"
    run = dlprof(*HONEST, "-o", session, "--fail-on", "error", state=tmp_path)
    again = dlprof("report", session, "--fail-on", "error", state=tmp_path)
    assert (run.code, again.code) == (0, 0)
    assert all("nothing looks for DLP001" in one.err for one in (run, again))


def test_an_unknown_rule_is_refused_before_anything_is_measured(tmp_path):
    run = dlprof(*LIAR, "--fail-on", "DLP999", state=tmp_path)
    assert run.code == 2
    assert "DLP999" in run.sentence()


def test_explain_prints_the_page_of_a_rule(tmp_path):
    page = dlprof("explain", "promise-broken", state=tmp_path)
    assert page.code == 0
    assert page.out.startswith(f"# {BROKEN} promise-broken")


def test_explain_lists_all_rules(tmp_path):
    assert dlprof("explain", state=tmp_path).out.count("DLP0") >= 19


def test_explain_suggests_the_nearest_rule(tmp_path):
    page = dlprof("explain", "host_sync", state=tmp_path)
    assert page.code == 2
    assert "did you mean 'host-sync'" in page.sentence()
