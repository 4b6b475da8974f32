"""The reproducer of each finding of severity error confirms it, for all CPU frameworks."""

import importlib.util
import itertools
import sys

import pytest
from command_line import dlprof

from dlprof.errors import NoReproducer
from dlprof.measuring.judged import load
from dlprof.ticket import ticket as tickets
from dlprof.ticket.reproducer import reproducer


def installed(*names):
    return [name for name in names if importlib.util.find_spec(name.partition(".")[0])]


FRAMEWORKS = installed("numpy", "torch", "tensorflow", "jax", "onnxruntime", "numba", "mxnet")
NEWER = installed("warp", "mlx", "pyarrow", "polars", "tvm_ffi", "cuda.core")
HOST_MEMORY = [
    "bytes",
    "bytearray",
    "array",
    "mmap",
    *(f"{name}-buffer" for name in installed("pyarrow")),
]
PAIRS = [
    *itertools.permutations(FRAMEWORKS, 2),
    *itertools.product(HOST_MEMORY, FRAMEWORKS),
    *itertools.product(NEWER, ("numpy", "torch")),
    *itertools.product(("numpy", "torch"), NEWER),
    *itertools.product(FRAMEWORKS, installed("safetensors")),
]


@pytest.mark.nightly
@pytest.mark.timeout(900)  # nine scripts that import TensorFlow twice take long beside other work
@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_each_error_of_a_pair_is_shown_without_dlprof(pair, tmp_path):
    path = tmp_path / "session.json"
    done = dlprof("run", *pair, "--rounds", 2, "-o", path)
    if done.code == 2:  # no path joins them
        pytest.skip(done.err.strip()[-200:])
    session = load(path)
    errors = [finding for finding in session.findings if finding.severity == "error"]
    wrong = {}
    for finding in errors:
        try:
            script = reproducer(session, finding).text
        except NoReproducer as reason:
            wrong[finding.headline] = str(reason)
            continue
        ran = tickets.run(script, sys.executable)
        if ran.verdict != "there":
            wrong[finding.headline] = ran.verdict, ran.output, ran.errors
    assert not wrong
