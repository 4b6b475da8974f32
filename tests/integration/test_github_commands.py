"""A framework's text is never a command for the GitHub workflow that runs dlprof."""

import re

import pytest
from command_line import PROBE_FILES, process

PROBE = ("commands", "commands", "--probe", PROBE_FILES / "commands.py")
COMMAND = re.compile(r"(?m)^\s*::|##\[")
"""A command for GitHub's runner, in any line of stdout and stderr."""


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """Run a probe whose names and messages are commands. Return the run and its session."""
    path = tmp_path_factory.mktemp("commands") / "s.json"
    words = ("run", *PROBE, "--quick", "--shape", "16", "--full", "-o", path)
    return process(*words, GITHUB_ACTIONS="true"), path


def assert_obeyed_in_nothing(done):
    assert not COMMAND.search(done.out), done.out
    assert not COMMAND.search(done.err), done.err


def test_a_run_prints_no_command(ran):
    assert ran[0].code == 0
    assert "error::x" in ran[0].out
    assert_obeyed_in_nothing(ran[0])
