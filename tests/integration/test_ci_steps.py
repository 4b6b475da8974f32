"""The action and the GitLab job with the real dlprof: a regression fails the step, and is told."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest
from comparison_builders import suite
from pipelines import JOB, run_action, run_job, this_dlprof

pytestmark = pytest.mark.integration

HEADS = {"same": (None, 0), "slower": ({"c": 1.5}, 1)}


@pytest.fixture(params=HEADS)
def gated(tmp_path, keep, request):
    """Inputs of a gate over two session files, and the exit code it must have."""
    ratio, code = HEADS[request.param]
    keep("base", suite())
    keep("head", suite(ratio, seed=50))
    return {"base": "base.json", "head": "head.json"}, code


def failures(file):
    return int(ET.parse(file).getroot().get("failures"))


def test_the_action_fails_and_annotates(tmp_path, gated):
    inputs, code = gated
    ran = run_action({**inputs, "dlprof": str(this_dlprof(tmp_path))}, tmp_path)
    assert (ran.code, ran.output) == (code, f"exit-code={code}\n"), ran.err
    assert ("::error title=dlprof%3A SLOWER::" in ran.out) == bool(code)
    assert ran.summary.startswith("## dlprof: BASE and HEAD")
    assert failures(tmp_path / "dlprof-junit.xml") == code


def test_the_job_fails_and_leaves_its_reports(tmp_path, gated):
    inputs, code = gated
    ran = run_job({**inputs, "command": str(this_dlprof(tmp_path))}, tmp_path)
    assert ran.code == code, ran.err
    assert all((tmp_path / name).is_file() for name in JOB["artifacts"]["paths"])
    assert failures(tmp_path / JOB["artifacts"]["reports"]["junit"]) == code
