"""DLP009's reproducer for arrays that are never writable: of the real fault, and of a control."""

from __future__ import annotations

import subprocess
import sys

import pytest
from command_line import dlprof

from dlprof.evidence.repro import reproducer
from dlprof.session import model as sessions
from dlprof.session.model import FindingRecord

pytestmark = pytest.mark.integration

PAIRS = {
    ("tensorflow", "torch"): ("torch.from_dlpack(x)", "torch.tensor(x.numpy())"),
    ("jax", "torch"): ("torch.from_dlpack(x)", "torch.tensor(numpy.asarray(x))"),
    ("jax", "numpy"): (
        (
            "numpy.ctypeslib.as_array((numpy.ctypeslib.ctypes.c_float * 16)"
            ".from_address(x.unsafe_buffer_pointer()))"
        ),
        "numpy.asarray(x)",
    ),
}
"""A writable view of an array that cannot be written; and what is a copy, or keeps the flag.

No measured view from JAX to NumPy can be written, so that one is made by hand.
"""


@pytest.fixture(scope="module", params=PAIRS, ids="-".join)
def scripts(request, tmp_path_factory):
    """The reproducers of the fault and of its control."""
    folder = tmp_path_factory.mktemp("measured")
    path = folder / "s.json"
    assert (
        dlprof("run", *request.param, "--quick", "--shape", "16", "-o", path, state=folder).code
        == 0
    )
    session = sessions.load(path)
    return [script_for(session, code) for code in PAIRS[request.param]]


def script_for(session, code):
    """The reproducer that a finding of such a conversion has."""
    place, result = next(
        (index, one) for index, one in enumerate(session.results) if one.status == "ok"
    )
    writable = {"verdict": "ok", "evidence": {"writable": {"source": False, "result": True}}}
    fields = result.model_dump(by_alias=True) | {"values": writable}
    fields["case"]["code"] = code
    results = [*session.results]
    results[place] = type(result).model_validate(fields)
    record = FindingRecord(
        rule="DLP009", name="read-only-lost", severity="error", results=[place], summary="lost"
    )
    return reproducer(session.model_copy(update={"results": results}), record).text


def ended(text, folder):
    """Exit code and output of a script, in a process of its own."""
    path = folder / "reproducer.py"
    path.write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-I", path], capture_output=True, text=True, timeout=200, check=False
    )
    return done.returncode, done.stdout


def test_a_writable_view_of_an_immutable_array_is_shown(scripts, tmp_path):
    code, output = ended(scripts[0], tmp_path)
    assert (code, output.splitlines()[-1]) == (1, "the problem is there"), output
    assert "does not let x be written" in output
    assert "16 of 16 values of x were overwritten through y" in output


def test_a_copy_or_a_view_that_keeps_the_flag_is_called_gone(scripts, tmp_path):
    code, output = ended(scripts[1], tmp_path)
    assert (code, output.splitlines()[-1]) == (0, "the problem is gone"), output
