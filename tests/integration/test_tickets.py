"""``dlprof repro`` and ``dlprof ticket``, from the command line to the paste."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from command_line import FAKE, PROBE_FILES, QUICK, dlprof

pytestmark = pytest.mark.integration

SHARER = ("run", "sharer", "sharer", "--probe", PROBE_FILES / "sharer.py", *QUICK)
HONEST = ("run", "fake", "fake", "--probe", FAKE, *QUICK)


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A state folder, and a session in it with a documented copy that is a view."""
    state = tmp_path_factory.mktemp("state")
    session = state / "s.json"
    assert dlprof(*SHARER, "-o", session, state=state).code == 0
    return state, session


def test_the_report_numbers_its_findings(measured):
    state, session = measured
    assert "1. error DLP018" in dlprof("report", session, state=state).out


@pytest.mark.parametrize("finding", ["1", "DLP018", "promise-broken"])
def test_a_reproducer_shows_its_finding_without_dlprof(measured, tmp_path, finding):
    state, session = measured
    script = tmp_path / "repro.py"
    assert dlprof("repro", session, finding, "-o", script, state=state).code == 0
    assert script.read_text() == dlprof("repro", session, finding, state=state).out
    done = subprocess.run(
        [sys.executable, "-I", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    assert done.stdout.endswith("the problem is there\n")


@pytest.mark.parametrize("finding", ["0", "99", "DLP003", "nonsense", "9" * 400])
def test_a_finding_that_is_not_there_is_refused_in_a_sentence(measured, finding):
    state, session = measured
    for verb in ("repro", "ticket"):
        run = dlprof(verb, session, finding, state=state)
        assert run.code == 2
        assert run.sentence().startswith("dlprof: ")


def test_a_ticket_runs_the_reproducer_of_a_session_that_was_measured_here(measured):
    state, session = measured
    run = dlprof("ticket", session, state=state)
    assert run.code == 0
    assert "shows the problem (exit code 1)" in run.out
    assert "the problem is there" in run.out
    assert str(PROBE_FILES) not in run.out
    assert str(state) not in run.out


def test_a_session_that_was_changed_is_not_run_until_that_is_asked_for(measured, tmp_path):
    state, session = measured
    proof = tmp_path / "harm"
    content = json.loads(session.read_text())
    content["results"][0]["recipe"]["setup"].append(f"open({str(proof)!r}, 'w')")
    foreign = tmp_path / "foreign.json"
    foreign.write_text(json.dumps(content))
    run = dlprof("ticket", foreign, state=state)
    assert run.code == 0
    assert "The reproducer was not run" in run.out
    assert not proof.exists()
    assert "shows the problem" in dlprof("ticket", foreign, "--run", state=state).out
    assert proof.exists()


def test_the_source_text_of_another_does_not_become_ours_by_a_resume(measured, tmp_path):
    state, session = measured
    proof = tmp_path / "harm"
    content = json.loads(session.read_text())
    content["results"][0]["recipe"]["setup"].append(f"open({str(proof)!r}, 'w')")
    foreign = tmp_path / "foreign.json"
    foreign.write_text(json.dumps(content))
    dlprof("run", "--resume", foreign, state=state)
    run = dlprof("ticket", foreign, state=state)
    assert run.code == 0
    assert "Not reproduced" in run.out
    assert not proof.exists()


def test_a_script_in_the_evidence_of_another_does_not_become_ours_either(measured, tmp_path):
    state, session = measured
    proof = tmp_path / "harm"
    content = json.loads(session.read_text())
    harm = {"create": f"open({str(proof)!r}, 'w')", "code": f"open({str(proof)!r}, 'w')"}
    for result in content["results"]:
        result["rounds"] = []
        for name in ("lifetime", "early_write"):
            result[name] = {"verdict": "unsafe", "evidence": {"sizes_bytes": {"1": "torn"}, **harm}}
    foreign = tmp_path / "foreign.json"
    foreign.write_text(json.dumps(content))
    dlprof("run", "--resume", foreign, state=state)
    assert "harm" not in foreign.read_text()
    dlprof("ticket", foreign, "DLP020", state=state)
    assert not proof.exists()


@pytest.mark.parametrize("words", [(), ("1",)])
def test_a_script_or_the_list_of_findings_is_printed(measured, words):
    state, session = measured
    run = dlprof("repro", session, *words, state=state)
    assert run.code == 0
    assert run.out.startswith('"""' if words else "1. error DLP018 promise-broken: ")


def test_the_script_of_no_finding_is_not_written_to_a_file(measured, tmp_path):
    state, session = measured
    run = dlprof("repro", session, "-o", tmp_path / "script.py", state=state)
    assert run.code == 2
    assert "name it" in run.sentence()
    assert not (tmp_path / "script.py").exists()


@pytest.mark.parametrize("words", [("repro", "1"), ("ticket", "--no-run")])
def test_a_dash_is_stdout(measured, tmp_path, words):
    state, session = measured
    verb, *rest = words
    plain = dlprof(verb, session, *rest, state=state)
    assert dlprof(verb, session, *rest, "-o", "-", state=state).out == plain.out


def test_no_run_runs_nothing(measured):
    state, session = measured
    assert "--no-run was asked for" in dlprof("ticket", session, "--no-run", state=state).out


def test_private_says_what_was_taken_out(measured):
    state, session = measured
    run = dlprof("ticket", session, "--no-run", "--private", state=state)
    assert run.code == 0
    assert "nothing private was found" in run.err or "removed" in run.err


def test_no_findings_is_one_sentence(tmp_path):
    session = tmp_path / "s.json"
    dlprof(*HONEST, "--no-diagnose", "-o", session, state=tmp_path)
    content = json.loads(session.read_text())
    content["findings"] = []
    session.write_text(json.dumps(content))
    run = dlprof("ticket", session, state=tmp_path)
    assert run.code == 0
    assert run.out == "There are no findings in this session, and so there is nothing to report.\n"
    assert dlprof("repro", session, "1", state=tmp_path).code == 2
    run = dlprof("repro", session, state=tmp_path)
    assert (run.code, run.out) == (
        0,
        "There are no findings in this session, and so there is nothing to reproduce.\n",
    )


def test_a_session_without_results_is_told_so(measured, tmp_path):
    state, session = measured
    content = json.loads(session.read_text())
    content["results"] = []
    empty = tmp_path / "empty.json"
    empty.write_text(json.dumps(content))
    assert "names no result" in dlprof("repro", empty, "1", state=state).sentence()
    run = dlprof("ticket", empty, state=state)
    assert run.code == 0
    assert "Not reproduced" in run.out
