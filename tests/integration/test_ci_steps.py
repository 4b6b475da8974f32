"""The action and the GitLab job with the real dlprof: a regression fails the step, and is told."""

from xml.etree import ElementTree as ET

import pytest
from comparison_builders import suite
from pipelines import JOB, run_action, run_job, this_dlprof


@pytest.fixture
def gated(keep):
    """Inputs of a gate that must fail."""
    keep("base", suite())
    keep("head", suite({"c": 1.5}, seed=50))
    return {"base": "base.json", "head": "head.json"}


def failures(file):
    return int(ET.parse(file).getroot().get("failures"))


def test_the_action_fails_and_annotates(tmp_path, gated):
    ran = run_action({**gated, "dlprof": str(this_dlprof(tmp_path))}, tmp_path)
    assert (ran.code, ran.output) == (1, "exit-code=1\n"), ran.err
    assert "::error title=dlprof%3A SLOWER::" in ran.out
    assert ran.summary.startswith("## dlprof: BASE and HEAD")
    assert failures(tmp_path / "dlprof-junit.xml") == 1


def test_the_job_fails_and_leaves_its_reports(tmp_path, gated):
    ran = run_job({**gated, "command": str(this_dlprof(tmp_path))}, tmp_path)
    assert ran.code == 1, ran.err
    assert all((tmp_path / name).is_file() for name in JOB["artifacts"]["paths"])
    assert failures(tmp_path / JOB["artifacts"]["reports"]["junit"]) == 1
