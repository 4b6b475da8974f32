"""``dlprof sweep``: a scenario is measured, and what it expects is checked."""

from __future__ import annotations

import re
import signal
import sys

import pytest
from command_line import FAKE, PROBE_FILES, content, dlprof, ended, running, wait_until

pytestmark = pytest.mark.integration

GATE = str(PROBE_FILES / "gate.py")
HEAD = 'title = "A fake problem"\nquestion = "Is it one?"\n'
FAST = "rounds = 1\nsample_ms = 1.0\ndiagnose = false\n"
PAIR = f'pairs = ["fake->fake"]\nprobes = ["{FAKE}"]\nshapes = ["16"]\n'


@pytest.fixture
def sweep(tmp_path):
    """Run a sweep of a scenario of this text, with further words."""

    def run(text: str, *words: object, **changes):
        path = tmp_path / "scenario.toml"
        path.write_text(HEAD + text)
        output = () if "--list" in words or "--dry-run" in words else ("-o", tmp_path / "s.json")
        return dlprof("sweep", path, *words, *output, state=tmp_path, **changes)

    return run


def without_load(text: str) -> str:
    """A report without what it says of other programs, which goes on while it is printed."""
    return re.sub(r"Other programs kept .*\n", "", text)


def test_a_scenario_is_measured_and_told_with_its_question(sweep, tmp_path):
    run = sweep(PAIR + FAST)
    assert run.code == 0, run.err
    assert run.out.startswith("A fake problem")
    assert "fastest" in run.out
    session = content(tmp_path / "s.json")
    assert [result["status"] for result in session["results"]] == ["ok", "ok"]


def test_options_stand_over_the_file_and_the_report_says_which(sweep, tmp_path):
    run = sweep(
        PAIR + FAST, "--shape", "32", "--path", "*->view", "--seed", "3", "--full", COLUMNS="200"
    )
    assert run.code == 0, run.err
    assert re.search(r"from the command line +shapes 32; paths \*->view; seed 3\n", run.out)
    (result,) = content(tmp_path / "s.json")["results"]
    assert result["case"]["shape"] == [32]


def test_the_report_of_the_session_is_that_of_the_sweep(sweep, tmp_path):
    run = sweep(PAIR + FAST + 'expect = ["no error"]\n')
    again = dlprof("report", tmp_path / "s.json", state=tmp_path)
    shown = without_load(again.out).replace(str(tmp_path / "s.json"), "LAST")
    assert shown == without_load(run.out)


def test_the_same_seed_gives_the_same_cases(sweep):
    first, second = (sweep(PAIR + FAST, "--list").out for _ in range(2))
    assert first == second
    assert first.splitlines()[0] == "fake->fake  16 float32 C cpu  type(x).from_buffer(x)"


def test_a_dry_run_says_what_would_run_and_measures_nothing(sweep, tmp_path):
    run = sweep(PAIR + "rounds = 2", "--dry-run")
    assert run.code == 0, run.err
    assert "fake → fake on cpu: paths: 2, arrays: 1\n" in run.out
    assert "2 cases, arrays of up to 64 B, 2 rounds\nlikely " in run.out
    assert not (tmp_path / "s.json").exists()


# Expectations


@pytest.mark.parametrize(
    ("expect", "code", "told"),
    [
        ("no DLP012", 3, "not checked"),
        ("DLP001 on fake->*", 3, "not checked"),
    ],
)
def test_what_cannot_be_checked_is_exit_code_three(sweep, expect, code, told):
    run = sweep(PAIR + f'expect = ["{expect}"]\n', "--quick")
    assert run.code == code
    assert any(
        line.split()[:1] == expect.split()[:1] and told in line for line in run.out.splitlines()
    )
    assert run.sentence() == f"dlprof: expectation not checked: {expect}"


def test_a_finding_that_is_not_there_is_exit_code_one(sweep):
    run = sweep(PAIR + "rounds = 2\nsample_ms = 1.0\ndiagnose = false\n" + 'expect = ["DLP016"]\n')
    assert run.code == 1
    assert re.search(r"DLP016 +not met", run.out)
    assert run.sentence() == "dlprof: expectation not met: DLP016"


# Missing frameworks


def test_what_is_missing_and_what_remains_is_said(sweep):
    text = f'pairs = ["fake->missing", "fake->fake"]\nprobes = ["{FAKE}"]\nshapes = ["16"]\n'
    run = sweep(text + FAST)
    assert run.code == 0, run.err
    assert "missing is not installed: pip install nobody-has-it" in run.out
    assert "fastest" in run.out


def test_a_scenario_of_missing_frameworks_only_measures_nothing(sweep):
    run = sweep(PAIR.replace("fake->fake", "missing->fake") + FAST)
    assert run.code == 4
    assert run.sentence() == "dlprof: missing is not installed: pip install nobody-has-it"


# What makes no sense


@pytest.mark.parametrize(
    ("text", "words", "sentence"),
    [
        ("", (), "scenario.toml: it names neither of pairs and steps: name one of them"),
        (PAIR + "round = 3\n", (), "line 6: unknown key 'round': did you mean 'rounds'?"),
        (
            PAIR.replace("fake->", "fak->"),
            (),
            "scenario.toml, line 3: pairs 1: there is no framework 'fak': did you mean 'fake'?",
        ),
        (
            PAIR + 'report = "loop"\n',
            (),
            "report: 'loop' needs a placement: in-loop, hoisted or implicit",
        ),
        (PAIR.replace(FAKE, "none.py"), (), "none.py: there is no such file"),
        (PAIR + 'paths = ["nothing"]\n', (), "no path matches nothing"),
    ],
)
def test_what_makes_no_sense_is_told_in_one_sentence(sweep, text, words, sentence):
    run = sweep(text, *words)
    assert run.code == 2
    assert sentence in run.sentence()


def test_a_dry_run_refuses_what_the_run_would(sweep, tmp_path):
    text = 'pairs = ["numpy->numpy"]\npaths = ["*->asarray"]\nshapes = ["16"]\n' + FAST
    python = tmp_path / "empty"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S -I "$@"\n')
    python.chmod(0o755)
    words = ("--python", python)
    dry, run = sweep(text, *words, "--dry-run"), sweep(text, *words)
    assert (dry.code, run.code) == (4, 4)
    assert dry.sentence() == run.sentence()


# Stop and resume


def test_a_sweep_that_was_stopped_is_finished_from_its_file(tmp_path):
    gate, path, scenario = tmp_path / "gate", tmp_path / "s.json", tmp_path / "scenario.toml"
    gate.mkdir()
    scenario.write_text(
        HEAD
        + f'pairs = ["gate->gate"]\nprobes = ["{GATE}"]\nshapes = ["16"]\npaths = ["*->[vcg]*"]\n'
        + "rounds = 2\nsample_ms = 1.0\ndiagnose = false\n"
        + 'expect = ["no DLP016"]\n'
    )
    words = ("sweep", scenario, "-o", path)
    with running(*words, state=tmp_path, DLPROF_TEST_GATE=str(gate)) as run:
        # The worker of the first round is through; that of the second waits at the gate.
        wait_until(lambda: len(list(gate.glob("process-*"))) == 2, "the second round has begun")
        run.send_signal(signal.SIGINT)
        stopped = ended(run)
    assert stopped.code == 130
    assert stopped.sentence() == f"dlprof: stopped; finish it with: dlprof run --resume {path}"
    assert not content(path)["complete"]
    (gate / "open").touch()
    finished = dlprof("run", "--resume", path, state=tmp_path, DLPROF_TEST_GATE=str(gate))
    assert finished.code == 0, finished.err
    session = content(path)
    assert session["complete"]
    assert {tuple(result["rounds"]) for result in session["results"]} == {(0, 1)}
    assert session["expectations"][0]["verdict"] == "met"
    assert finished.out.startswith("A fake problem")
