"""``dlprof repro`` and ``dlprof ticket``, from the command line to the paste."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from command_line import PROBE_FILES, QUICK, dlprof

pytestmark = pytest.mark.integration

SHARER = ("run", "sharer", "sharer", "--probe", PROBE_FILES / "sharer.py", *QUICK)


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A state folder, and a session in it with a documented copy that is a view."""
    state = tmp_path_factory.mktemp("state")
    session = state / "s.json"
    assert dlprof(*SHARER, "-o", session, state=state).code == 0
    return state, session


def changed(session, path, change):
    """A copy of a session file; ``change`` alters its content."""
    content = json.loads(session.read_text())
    change(content)
    path.write_text(json.dumps(content))
    return path


def test_a_reproducer_shows_its_finding_without_dlprof(measured, tmp_path):
    state, session = measured
    script = tmp_path / "repro.py"
    assert dlprof("repro", session, "1", "-o", script, state=state).code == 0
    for name in ("DLP018", "promise-broken"):
        assert dlprof("repro", session, name, state=state).out == script.read_text()
    done = subprocess.run(
        [sys.executable, "-I", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    assert done.stdout.endswith("the problem is there\n")


@pytest.mark.parametrize("verb", ["repro", "ticket"])
@pytest.mark.parametrize("finding", ["0", "99", "DLP003", "nonsense"])
def test_a_finding_that_is_not_there_is_refused_in_a_sentence(measured, verb, finding):
    state, session = measured
    run = dlprof(verb, session, finding, state=state)
    assert run.code == 2
    assert run.sentence().startswith("dlprof: ")


def test_without_a_finding_repro_lists_them(measured, tmp_path):
    state, session = measured
    assert dlprof("repro", session, state=state).out.startswith("1. error DLP018 promise-broken: ")
    run = dlprof("repro", session, "-o", tmp_path / "script.py", state=state)
    assert run.code == 2
    assert not (tmp_path / "script.py").exists()


def test_a_ticket_runs_the_reproducer_if_that_is_asked_for(measured):
    state, session = measured
    run = dlprof("ticket", session, "--run", state=state)
    assert run.code == 0
    assert "Exit code 1: the problem is there" in run.out
    assert str(PROBE_FILES) not in run.out
    assert str(state) not in run.out
    assert f"running the reproducer in {sys.executable}" in run.err


def test_the_text_of_a_session_is_never_run_unasked(measured, tmp_path):
    state, session = measured
    proof = tmp_path / "harm"
    code = f"open({str(proof)!r}, 'w')"

    def harm(content):
        content["environment"]["executable"] = content["request"]["python"] = "/bin/false"
        for result in content["results"]:
            result["recipe"]["setup"].append(code)

    foreign = changed(session, tmp_path / "foreign.json", harm)
    assert "The reproducer was not run" in dlprof("ticket", foreign, state=state).out
    assert not proof.exists()
    assert "the problem is there" in dlprof("ticket", foreign, "--run", state=state).out
    assert proof.exists()


def test_no_findings_is_one_sentence(measured, tmp_path):
    state, session = measured
    empty = changed(session, tmp_path / "s.json", lambda content: content.update(results=[]))
    assert "names no result" in dlprof("repro", empty, "1", state=state).sentence()
    assert "Not reproduced" in dlprof("ticket", empty, state=state).out
    changed(empty, empty, lambda content: content.update(findings=[]))
    for verb in ("ticket", "repro"):
        run = dlprof(verb, empty, state=state)
        assert run.code == 0
        assert run.out.startswith("There are no findings in this session")
    assert dlprof("repro", empty, "1", state=state).code == 2
