"""Ctrl-C ends the wait for an interpreter that does not answer, in words."""

import signal

import pytest
from command_line import FAKE, ended, running, signal_group, wait_until

SCENARIO = f"""
title = "Fake"
question = "Does it start?"
pairs = ["fake->fake"]
shapes = ["16"]
probes = ["{FAKE}"]
"""
VERBS = {
    "run": ("run", "fake", "fake", "--probe", FAKE, "--python", "{python}"),
    "gate": ("gate", "{scenario}", "--base-python", "{python}", "--head-python", "{python}"),
}


@pytest.fixture
def command(tmp_path):
    """Return a command whose interpreter writes a file and then hangs."""
    python, scenario = tmp_path / "mute", tmp_path / "fake.toml"
    python.write_text(f"#!/bin/sh\n: > {tmp_path}/started\nexec sleep 600\n", encoding="utf-8")
    python.chmod(0o755)
    scenario.write_text(SCENARIO, encoding="utf-8")

    def words(verb):
        return [word.format(python=python, scenario=scenario) for word in VERBS[verb]]

    return words


@pytest.mark.parametrize("verb", VERBS)
def test_ctrl_c_while_an_interpreter_starts_is_told(tmp_path, command, verb):
    with running(*command(verb)) as process:
        wait_until((tmp_path / "started").is_file, "the interpreter has started")
        signal_group(process, signal.SIGINT)
        done = ended(process)
    assert (done.code, done.out) == (130, "")
    assert "interrupted, nothing measured" in done.sentence()
