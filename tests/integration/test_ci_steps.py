"""The action and the GitLab job with the real dlprof: a regression fails the step, and is told."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "unit"))
from comparison_builders import session, suite
from pipelines import JOB, run_action, run_job, this_dlprof

pytestmark = pytest.mark.integration

HEADS = {"same": (None, 0), "slower": ({"c": 1.5}, 1)}


@pytest.fixture(params=HEADS)
def gated(tmp_path, request):
    """Inputs of a gate over two session files, and the exit code it must have."""
    ratio, code = HEADS[request.param]
    for name, results in (("base", suite()), ("head", suite(ratio, seed=50))):
        found = session(results, created=f"2026-01-01 {name}")
        (tmp_path / f"{name}.json").write_text(found.model_dump_json(by_alias=True), "utf-8")
    return {"base": "base.json", "head": "head.json"}, code


def failures(file):
    return int(ET.parse(file).getroot().get("failures"))


def test_the_action_fails_and_annotates(tmp_path, gated):
    inputs, code = gated
    command = str(this_dlprof(tmp_path))
    ran = run_action({**inputs, "dlprof": command}, tmp_path)
    assert (ran.code, ran.output) == (code, f"exit-code={code}\n"), ran.err
    assert ("::error title=dlprof%3A SLOWER::" in ran.out) == bool(code)
    assert ran.summary.startswith("## dlprof: BASE and HEAD")
    assert failures(tmp_path / "dlprof-junit.xml") == code


def test_the_job_fails_and_leaves_its_reports(tmp_path, gated):
    inputs, code = gated
    ran = run_job({**inputs, "command": str(this_dlprof(tmp_path))}, tmp_path)
    assert ran.code == code, ran.err
    assert all((tmp_path / name).is_file() for name in JOB["artifacts"]["paths"])
    reports = JOB["artifacts"]["reports"]
    assert failures(tmp_path / reports["junit"]) == code


SPUN = Path(__file__).parent.parent / "probe_files" / "spun.py"
SCENARIO = f"""
title = "Spun"
question = "Does it copy now?"
pairs = ["spun->spun"]
shapes = ["64"]
probes = ["{SPUN}"]
sample_ms = 2
diagnose = false
"""


def interpreter(folder, name, **variables):
    """An interpreter that has these variables set."""
    lines = "".join(f"export {key}={value}\n" for key, value in variables.items())
    file = folder / name
    file.write_text(f'#!/bin/sh\n{lines}exec {sys.executable} "$@"\n', "utf-8")
    file.chmod(0o755)
    return name


@pytest.mark.parametrize("run", [run_action, run_job])
def test_two_interpreters_are_measured_by_a_scenario(tmp_path, run):
    (tmp_path / "spun.toml").write_text(SCENARIO, "utf-8")
    command = str(this_dlprof(tmp_path))
    inputs = {
        "scenario": "spun.toml",
        "base-python": interpreter(tmp_path, "before"),
        "head-python": interpreter(tmp_path, "after", DLPROF_TEST_BREAK="copies"),
        "fail-on": "warning",
        "budget": "20",
        "sessions": "kept",
    }
    ran = run({**inputs, "dlprof" if run is run_action else "command": command}, tmp_path)
    assert ran.code == 1, ran.err
    assert failures(tmp_path / "dlprof-junit.xml") == 1
    assert (tmp_path / "kept" / "base.json").is_file()
    if run is run_action:
        told = "::error file=spun.toml,line=1,title=dlprof%3A WORSE::spun(view(x)): ownership"
        assert told in ran.out


def test_a_baseline_of_another_machine_is_no_pass(tmp_path, gated):
    inputs, _ = gated
    file = tmp_path / "head.json"
    found = json.loads(file.read_text("utf-8"))
    found["environment"] = {"cpu": "another"}
    file.write_text(json.dumps(found), "utf-8")
    base = json.loads((tmp_path / "base.json").read_text("utf-8"))
    base["environment"] = {"cpu": "this one"}
    (tmp_path / "base.json").write_text(json.dumps(base), "utf-8")
    command = str(this_dlprof(tmp_path))
    ran = run_action({**inputs, "unsure": "pass", "dlprof": command}, tmp_path)
    assert (ran.code, ran.output) == (3, "exit-code=3\n")
    assert "::error title=dlprof%3A INCOMPARABLE::the times cannot be compared" in ran.out
