"""The command that measures a finding again, pasted into a shell: it shows that finding."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from command_line import LIMIT_S, PROBE_FILES, dlprof, environment

from dlprof.analysis.case_view import CaseView
from dlprof.evidence.rerun_command import rerun_command
from dlprof.session.model import load

pytestmark = pytest.mark.integration

SHELL = f'dlprof() {{ "{sys.executable}" -m dlprof "$@"; }}\n'
JAX = "import jax.numpy as jnp, numpy\nx = numpy.zeros((64, 64), 'float64')  # it's $HOME `id`"


@pytest.fixture
def measured(tmp_path):
    """A session, after dlprof was run with these words."""

    def run(*words):
        path = tmp_path / "session.json"
        done = dlprof(*words, "-o", path, state=tmp_path)
        assert done.code == 0, done.err
        return load(path)

    return run


def pasted(command, folder):
    """What is found when the command is pasted into a shell."""
    done = subprocess.run(
        ["bash", "-c", f"{SHELL}{command} --json -"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=environment(folder),
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def command_for(session, rule):
    finding = next(one for one in session.findings if one.rule == rule)
    cases = [CaseView(index, result) for index, result in enumerate(session.results)]
    against = cases[finding.against] if finding.against is not None else None
    return rerun_command([cases[index] for index in finding.results], session, against, rule)


def test_a_broken_promise_is_found_again_alone(measured, tmp_path):
    probe = tmp_path / "a probe's $folder" / "liar.py"
    probe.parent.mkdir()
    probe.write_bytes((PROBE_FILES / "liar.py").read_bytes())
    session = measured("run", "liar", "liar", "--probe", probe, "--quick", "--shape", "16")
    again = pasted(command_for(session, "DLP018"), tmp_path)
    assert [finding["rule"] for finding in again["findings"]] == ["DLP018"]
    assert {result["case"]["import"] for result in again["results"]} == {"take", "copy"}


def test_a_conversion_of_ones_own_is_measured_again(measured, tmp_path):
    pytest.importorskip("jax")
    session = measured("time", "-s", JAX, "jnp.asarray(x)", "--quick")
    again = pasted(command_for(session, "DLP007"), tmp_path)
    assert "DLP007" in [finding["rule"] for finding in again["findings"]]
    assert again["results"][0]["case"]["shape"] == [64, 64]
