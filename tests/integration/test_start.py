"""An interpreter that does not answer: that it starts is said, and Ctrl-C ends the wait in words."""

import os
import signal
import subprocess

import pytest
from command_line import FAKE, INTERRUPTIBLE, ended, environment, running, signal_group, wait_until

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
    """The words of a verb whose interpreter writes a file and says no more."""
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


def test_on_a_terminal_it_is_said_that_an_interpreter_starts(tmp_path, command):
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        [*INTERRUPTIBLE, *command("gate")],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        env=environment(TERM="xterm", COLUMNS="200"),
        start_new_session=True,
    )
    os.close(theirs)
    said = b""
    try:
        while b"starting " not in said:
            said += os.read(ours, 4096)  # fails where all has been said
        signal_group(process, signal.SIGINT)
        while b"interrupted" not in said:
            said += os.read(ours, 4096)
        assert process.wait(60) == 130
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    assert f"starting {tmp_path}/mute".encode() in said
