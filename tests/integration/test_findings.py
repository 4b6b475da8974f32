"""Findings from the command line: in the report, in the session, and as an exit code."""

from __future__ import annotations

import json

import pytest
from command_line import FAKE, PROBE_FILES, QUICK, content, dlprof

pytestmark = pytest.mark.integration

BROKEN = "DLP018"


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """What a run printed, and its session: of a copy that is a view, and of an honest probe."""
    state = tmp_path_factory.mktemp("state")
    found = {}
    for name, probe in (("liar", PROBE_FILES / "liar.py"), ("fake", FAKE)):
        session = state / f"{name}.json"
        words = ("run", name, name, "--probe", probe, *QUICK, "-o", session)
        run = dlprof(*words, "--fail-on", "error", state=state)
        found[name] = run, session
    return found


def rules_of(path):
    return {finding["rule"] for finding in json.loads(path.read_text())["findings"]}


def test_a_broken_promise_is_told_stands_in_the_session_and_fails(measured, tmp_path):
    run, session = measured["liar"]
    assert run.code == 1
    assert run.sentences[-1] == f"dlprof: --fail-on: found {BROKEN} promise-broken"
    assert BROKEN in run.out
    assert BROKEN in rules_of(session)
    assert BROKEN in dlprof("report", session, state=tmp_path).out


def test_a_kept_promise_passes_and_says_what_nothing_looked_for(measured):
    run, session = measured["fake"]
    assert run.code == 0
    assert BROKEN not in rules_of(session)
    assert "nothing looks for DLP001" in run.err


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("promise-broken", 1, f"found {BROKEN} promise-broken"),
        ("DLP009,error", 1, f"found {BROKEN} promise-broken"),
        ("DLP009", 0, ""),
        ("DLP020", 3, "nothing looked for DLP020"),
        ("DLP999", 2, "DLP999"),
    ],
)
def test_the_report_of_a_session_fails_on_what_was_named(measured, tmp_path, words, code, said):
    run = dlprof("report", measured["liar"][1], "--fail-on", words, state=tmp_path)
    assert (run.code, said in run.err) == (code, True)


def test_a_rule_that_nothing_looks_for_is_refused_before_anything_is_measured(tmp_path):
    session = tmp_path / "s.json"
    words = ("run", "fake", "fake", "--probe", FAKE, *QUICK, "-o", session)
    run = dlprof(*words, "--fail-on", "DLP020", state=tmp_path)
    assert (run.code, "needs the diagnosis" in run.sentence()) == (2, True)
    assert not session.exists()
    run = dlprof(*words, "--diagnose", "--fail-on", "DLP020,DLP010", state=tmp_path)
    assert run.code == 0


def test_a_session_without_results_passes_nothing(measured, tmp_path):
    session = tmp_path / "s.json"
    session.write_text(json.dumps({**content(measured["fake"][1]), "results": [], "findings": []}))
    assert dlprof("report", session, "--fail-on", "DLP016", state=tmp_path).code == 4


def test_explain_prints_a_rules_page_lists_all_and_suggests_the_nearest(tmp_path):
    page = dlprof("explain", "promise-broken", state=tmp_path)
    assert page.code == 0
    assert page.out.startswith(f"# {BROKEN} promise-broken")
    assert dlprof("explain", state=tmp_path).out.count("DLP0") >= 20
    page = dlprof("explain", "host_sync", state=tmp_path)
    assert (page.code, "did you mean 'host-sync'" in page.sentence()) == (2, True)
