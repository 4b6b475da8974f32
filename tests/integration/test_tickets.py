"""``dlprof ticket`` from the command line to the paste."""

import json
import subprocess
import sys

import pytest
from command_line import PROBE_FILES, QUICK, dlprof

from dlprof.measuring.judged import load
from dlprof.runner.session_file import document


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    """A session with a documented copy that is a view."""
    path = tmp_path_factory.mktemp("sharer") / "s.json"
    words = ("run", "sharer", "sharer", "--probe", PROBE_FILES / "sharer.py", *QUICK, "-o", path)
    assert dlprof(*words).code == 0
    return path


@pytest.fixture
def changed(session, tmp_path):
    """A copy of the session file; ``change`` alters its content."""

    def write(change):
        content = json.loads(document(load(session)))
        change(content)
        path = tmp_path / "changed.json"
        path.write_text(json.dumps(content))
        return path

    return write


def test_a_reproducer_shows_its_finding_without_dlprof(session, tmp_path):
    script = tmp_path / "repro.py"
    assert dlprof("ticket", session, "1", "--script", "-o", script).out == ""
    for name in ("DLP018", "promise-broken"):
        assert dlprof("ticket", session, name, "--script").out == script.read_text()
    done = subprocess.run(
        [sys.executable, "-I", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    assert done.stdout.endswith("the problem is there\n")


def test_a_ticket_never_replaces_its_session(session):
    run = dlprof("ticket", session, "-o", session)
    assert (run.code, run.out) == (2, "")
    assert "a session is in it" in run.err


@pytest.mark.parametrize("finding", ["0", "99", "DLP003", "nonsense"])
def test_a_finding_that_is_not_there_is_refused_in_a_sentence(session, finding):
    run = dlprof("ticket", session, finding)
    assert (run.code, run.out) == (2, "")
    assert run.sentence()


def test_a_ticket_runs_the_reproducer_if_that_is_asked_for(session):
    run = dlprof("ticket", session, "--run")
    assert run.code == 0
    assert "the problem is there" in run.out
    assert sys.executable in run.err


def test_the_text_of_a_session_is_never_run_unasked(changed, tmp_path):
    proof = tmp_path / "harm"

    def harm(content):
        content["environment"]["executable"] = content["request"]["python"] = "/bin/false"
        for result in content["results"]:
            result["recipe"]["setup"].append(f"open({str(proof)!r}, 'w')")

    foreign = changed(harm)
    assert dlprof("ticket", foreign).code == 0
    assert not proof.exists()
    assert "the problem is there" in dlprof("ticket", foreign, "--run").out
    assert proof.exists()
