"""``--setup``: switches of a framework, set after its import, in every process."""

from __future__ import annotations

import json
import signal

import pytest
from command_line import QUICK, dlprof, ended, running, wait_until

pytestmark = pytest.mark.integration

ASYNC = "tf.config.experimental.set_synchronous_execution(False)"


def verdicts(path, measure):
    return [
        result[measure]["verdict"]
        for result in json.loads(path.read_text())["results"]
        if result[measure]
    ]


def test_tensorflow_that_is_told_to_queue_is_seen_to_be_waited_for(tmp_path):
    pytest.importorskip("tensorflow")
    session = tmp_path / "s.json"
    options = ("--rounds", 1, "--diagnose", "--shape", "256", "--path", "numpy->*")
    run = dlprof(
        "run", "tf", "numpy", "--full", *options, "--setup", ASYNC, "-o", session, state=tmp_path
    )
    assert run.code == 0
    assert verdicts(session, "ordering") == ["host-sync"]
    assert ASYNC in " ".join(run.out.split())


def test_the_session_and_its_recipes_keep_it(tmp_path):
    session = tmp_path / "s.json"
    dlprof("run", "numpy", "numpy", *QUICK, "--setup", "limit = 3", "-o", session, state=tmp_path)
    kept = json.loads(session.read_text())
    assert kept["request"]["settings"]["setup"] == "limit = 3"
    assert all(result["recipe"]["setup"][-1] == "limit = 3" for result in kept["results"])


def test_what_it_sets_can_be_used_by_all_that_follows(tmp_path):
    session = tmp_path / "s.json"
    options = (*QUICK, "--setup", "del numpy", "-o", session)
    dlprof("run", "numpy", "numpy", *options, state=tmp_path)
    reasons = {result["reason"] for result in json.loads(session.read_text())["results"]}
    assert reasons == {"NameError: name 'numpy' is not defined"}


def test_text_that_is_not_python_is_refused_before_anything_is_measured(tmp_path):
    run = dlprof("run", "numpy", "numpy", "--setup", "a = (", state=tmp_path)
    assert run.code == 2
    assert run.sentence() == "dlprof: --setup is not Python: '(' was never closed"


@pytest.mark.parametrize(
    ("setup", "sentence"),
    [
        ("nobody", "the setup fails: NameError: name 'nobody' is not defined"),
        ("import sys; sys.exit(3)", "the setup fails: SystemExit: 3"),
        ("import os; os.abort()", "the setup, or an import before it, ended: killed by SIGABRT"),
    ],
)
def test_text_that_fails_is_told_and_blamed_on_no_framework(tmp_path, setup, sentence):
    session = tmp_path / "s.json"
    options = (*QUICK, "--setup", setup, "-o", session)
    run = dlprof("run", "numpy", "numpy", *options, state=tmp_path)
    assert run.code == 4
    assert sentence in run.err
    assert not session.exists()


def test_it_may_be_given_in_several_lines(tmp_path):
    session = tmp_path / "s.json"
    options = ("--setup", "a = 1", "--setup", "assert a == 1", "-o", session)
    assert dlprof("run", "numpy", "numpy", *QUICK, *options, state=tmp_path).code == 0
    kept = json.loads(session.read_text())["request"]["settings"]["setup"]
    assert kept == "a = 1\nassert a == 1"


def test_a_run_that_is_finished_has_its_setup_from_the_file(tmp_path):
    session = tmp_path / "s.json"
    dlprof("run", "numpy", "numpy", *QUICK, "-o", session, state=tmp_path)
    run = dlprof("run", "--resume", session, "--setup", "limit = 3", state=tmp_path)
    assert run.code == 2
    assert "leave --setup out" in run.err


def test_who_stops_it_while_the_setup_is_tried_is_named_no_session(tmp_path):
    here, session = tmp_path / "here", tmp_path / "s.json"
    setup = f"import pathlib, time; pathlib.Path({str(here)!r}).touch(); time.sleep(600)"
    words = ("run", "numpy", "numpy", *QUICK, "--setup", setup, "-o", session)
    with running(*words, state=tmp_path) as run:
        wait_until(here.exists, "the setup runs")
        run.send_signal(signal.SIGINT)
        done = ended(run)
    assert (done.code, done.out) == (130, "")
    assert done.sentence() == "dlprof: interrupted, nothing measured"
    assert not session.exists()
