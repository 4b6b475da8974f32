"""The command that measures a finding again, pasted into a shell: it shows that finding."""

import json
import subprocess
import sys

from command_line import LIMIT_S, dlprof, environment

from dlprof.analysis.case_view import CaseView
from dlprof.session.model import load
from dlprof.tickets.rerun_command import rerun_command

SHELL = f'dlprof() {{ "{sys.executable}" -m dlprof "$@"; }}\n'
SETUP = "import numpy\nx = numpy.zeros((64, 64), 'float64')  # it's $HOME `id`"


def test_a_conversion_of_ones_own_is_measured_again(tmp_path):
    path, statement = tmp_path / "s.json", "numpy.array(x, 'float32')"
    assert dlprof("time", "-s", SETUP, statement, "--quick", "-o", path).code == 0
    session = load(path)
    case = CaseView(0, session.results[0])
    command = rerun_command([case], session, None, "DLP007")
    done = subprocess.run(
        ["bash", "-c", f"{SHELL}{command} --json -"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=environment(),
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    again = json.loads(done.stdout)
    assert "DLP007" in [finding["rule"] for finding in again["findings"]]
    assert again["results"][0]["case"]["shape"] == [64, 64]
