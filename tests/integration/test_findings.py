"""Findings from the command line: in the report, in the session, and as an exit code."""

import pytest
from command_line import PROBE_FILES, QUICK, RUN_FAKE, RUN_RECORDED, content, dlprof, replay

BROKEN = "DLP018"


@pytest.fixture(scope="module")
def liar(tmp_path_factory):
    """Run a probe whose documented copy is a view. Return the run and its session."""
    session = tmp_path_factory.mktemp("liar") / "s.json"
    words = ("run", "sharer", "sharer", "--probe", PROBE_FILES / "sharer.py", *QUICK, "-o", session)
    return dlprof(*words, "--fail-on", "error"), session


def test_a_broken_promise_is_told_stands_in_the_session_and_fails(liar):
    run, session = liar
    assert run.code == 1
    assert f"{BROKEN} promise-broken" in run.sentences[-1]
    assert BROKEN in run.out
    assert BROKEN in {finding["rule"] for finding in content(session)["findings"]}
    assert BROKEN in dlprof("report", session).out


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("promise-broken", 1, f"{BROKEN} promise-broken"),
        ("DLP009,error", 1, f"{BROKEN} promise-broken"),
        ("DLP008", 0, ""),
        ("DLP020", 3, "DLP020"),
        ("DLP999", 2, "DLP999"),
    ],
)
def test_the_report_of_a_session_fails_on_what_was_named(liar, words, code, said):
    run = dlprof("report", liar[1], "--fail-on", words)
    assert (run.code, said in run.err) == (code, True)


def test_a_rule_that_nothing_looks_for_is_refused_before_anything_is_measured(tmp_path):
    session = tmp_path / "s.json"
    run = dlprof(*RUN_FAKE, "--fail-on", "DLP020", "-o", session)
    assert (run.code, session.exists()) == (2, False)
    assert "diagnosis" in run.sentence()


def test_a_run_passes_if_what_was_named_was_looked_for_and_not_found():
    assert replay(*RUN_RECORDED, "--fail-on", "DLP020,DLP010").code == 0


def test_explain_prints_a_rules_page_lists_all_and_suggests_the_nearest():
    page = dlprof("explain", "promise-broken")
    assert page.code == 0
    assert page.out.startswith(f"{BROKEN} promise-broken")
    for word, rules in (("wait", ("DLP001", "DLP002")), ("copy", ("DLP004", "DLP018"))):
        listed = dlprof("explain", word).out
        assert all(rule in listed for rule in rules)
        assert "DLP012" not in listed
    assert dlprof("explain").out.count("DLP0") >= 20
    assert "not computed yet" in dlprof("explain", "negated").out  # a layout
    page = dlprof("explain", "host_sync")
    assert (page.code, "'host-sync'" in page.sentence()) == (2, True)
