"""The command that measures a finding again, pasted into a shell: it shows that finding."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from command_line import LIMIT_S, PROBE_FILES, QUICK, dlprof, environment

from dlprof.analysis.case_view import CaseView
from dlprof.evidence.rerun_command import rerun_command
from dlprof.session.model import load

pytestmark = pytest.mark.integration

SHELL = f'dlprof() {{ "{sys.executable}" -m dlprof "$@"; }}\n'
SETUP = "import numpy\nx = numpy.zeros((64, 64), 'float64')  # it's $HOME `id`"


def found_again(rule, path):
    """What is found when the command for a finding of this session is pasted into a shell."""
    session = load(path)
    finding = next(one for one in session.findings if one.rule == rule)
    cases = [CaseView(index, result) for index, result in enumerate(session.results)]
    against = cases[finding.against] if finding.against is not None else None
    command = rerun_command([cases[index] for index in finding.results], session, against, rule)
    done = subprocess.run(
        ["bash", "-c", f"{SHELL}{command} --json -"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=environment(),
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def rules_of(session):
    return [finding["rule"] for finding in session["findings"]]


def test_a_broken_promise_is_found_again_alone(tmp_path):
    probe, path = tmp_path / "a probe's $folder" / "liar.py", tmp_path / "s.json"
    probe.parent.mkdir()
    probe.write_bytes((PROBE_FILES / "liar.py").read_bytes())
    assert dlprof("run", "liar", "liar", "--probe", probe, *QUICK, "-o", path).code == 0
    again = found_again("DLP018", path)
    assert rules_of(again) == ["DLP018"]
    assert {result["case"]["import"] for result in again["results"]} == {"take", "copy"}


def test_a_conversion_of_ones_own_is_measured_again(tmp_path):
    path, statement = tmp_path / "s.json", "numpy.array(x, 'float32')"
    assert dlprof("time", "-s", SETUP, statement, "--quick", "-o", path).code == 0
    again = found_again("DLP007", path)
    assert "DLP007" in rules_of(again)
    assert again["results"][0]["case"]["shape"] == [64, 64]
