"""The action and the GitLab job with the real dlprof: a regression fails the step and is reported."""

import os
import re
import sys
from xml.etree import ElementTree as ET

import pytest
from command_line import PROBE_FILES
from pipelines import JOB, ROOT, run_action, run_page_job, run_workflow, this_dlprof

from dlprof.measuring.scenario import read


def failures(file):
    return int(ET.parse(file).getroot().get("failures"))


SCENARIO = f"""
title = "Views"
question = "Is it still a view?"
pairs = ["addressed->addressed"]
shapes = ["64"]
probes = ["{PROBE_FILES / "addressed.py"}"]
expect = ["no error"]
diagnose = false
layouts = ["aligned"]
"""
PYTHON = f"""#!/bin/sh
case "$*" in
    "-m venv "*) mkdir -p "$3/bin" && exec cp "$0" "$3/bin/python" ;;
    "-m pip install "*) exec echo "$0 $*" ;;
esac
case "$0" in
    *after/bin/python) [ ! -e "$HOME/planted" ] || export DLPROF_TEST_COPIES=1 ;;
esac
exec {sys.executable} "$@"
"""
"""A stand-in for python3: an environment is a copy of it, and pip prints its arguments.
If a file ``planted`` exists, the framework of the environment ``after`` copies."""


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Return a project's folder in which the workflows of docs/ci.md run."""
    (tmp_path / "conversions.toml").write_text(SCENARIO, encoding="utf-8")
    python = tmp_path / "path" / "python3"
    python.parent.mkdir()
    python.write_text(PYTHON, encoding="utf-8")
    python.chmod(0o755)
    monkeypatch.setenv("PATH", f"{python.parent}:{os.environ['PATH']}")
    return tmp_path


@pytest.mark.parametrize("planted", [False, True], ids=["equal", "planted"])
def test_the_workflow_of_the_page_passes_equal_code_and_fails_a_copy(project, planted):
    if planted:
        (project / "planted").touch()
    ran = run_workflow({"dlprof": str(this_dlprof(project / "path"))}, project)
    assert (ran.code, ran.output) == (int(planted), f"exit-code={int(planted)}\n"), ran.err
    assert ("HEAD is worse" in ran.summary) == planted
    assert ("ownership: view, now copy" in ran.out) == planted
    assert failures(project / "dlprof-junit.xml") == planted


@pytest.mark.parametrize("planted", [False, True], ids=["equal", "planted"])
def test_the_job_of_the_page_passes_equal_code_and_fails_a_copy(project, planted):
    if planted:
        (project / "planted").touch()
    ran = run_page_job({"command": str(this_dlprof(project / "path"))}, project)
    assert ran.code == planted, ran.err
    assert all((project / name).is_file() for name in JOB["artifacts"]["paths"])
    assert failures(project / JOB["artifacts"]["reports"]["junit"]) == planted


@pytest.mark.parametrize(
    ("command", "words", "code"),
    [
        ("run", "numpy numpy --quick --shape 4", 0),
        ("survey", "numpy numpy --path numpy.asarray(x)", 0),
        ("conformance", "numpy", 0),
        ("trace", "--fail-on copy a.py", 1),
    ],
)
def test_each_command_of_the_action_runs_and_adds_a_summary(tmp_path, command, words, code):
    (tmp_path / "a.py").write_text("import numpy, torch\ntorch.tensor(numpy.ones(3))\n")
    (tmp_path / "bin").mkdir()
    inputs = {"command": command, "arguments": words, "dlprof": str(this_dlprof(tmp_path / "bin"))}
    ran = run_action(inputs, tmp_path)
    assert (ran.code, ran.output) == (code, f"exit-code={code}\n"), ran.err
    assert ran.summary.startswith("## "), ran.summary


def test_the_scenario_of_the_page_can_be_read(tmp_path):
    page = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    file = tmp_path / "conversions.toml"
    file.write_text(re.search(r"```toml\n(.*?)```", page, re.DOTALL)[1], encoding="utf-8")
    assert read(file).problem.expect == ["no error"]
