"""Conversions in the loops that use them: real frameworks, real workers."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy
import pytest
from command_line import content, dlprof

from dlprof.probes.base import ArraySpec
from dlprof.probes.numba import Numba

pytestmark = pytest.mark.integration

QUICK = ("--quick", "--shape", "16x16")
ALL = ("--placement", "convert,in-loop", "--placement", "hoisted,implicit")


@pytest.fixture
def run(tmp_path):
    def run(*words):
        path = tmp_path / "session.json"
        done = dlprof("run", *words, *QUICK, "-o", path, state=tmp_path, COLUMNS="80")
        assert done.code == 0, done.err
        return done, {result["case"]["code"]: result for result in content(path)["results"]}

    return run


def test_a_conversion_is_measured_inside_and_before_a_loop(run):
    done, results = run("numpy", "torch", "--path", "torch.tensor(x)", *ALL)
    placement = results["torch.tensor(x)"]["placement"]
    assert placement["use"] == "torch.add(x, 1)"
    assert min(placement[name]["median_ns"] for name in ("in_loop", "hoisted")) > 0
    assert "must be Tensor" in placement["refused"]["implicit"]
    assert "In a loop with torch.add(x, 1)" in done.out
    assert max(map(len, done.out.splitlines())) <= 80


def test_a_compiled_stencil_takes_three_converted_arrays(run):
    pytest.importorskip("numba")
    words = ("--path", "take(x.numpy())", *ALL)
    _, results = run("torch", "numba", *words)
    placement = results["take(x.numpy())"]["placement"]
    assert placement["use"] == "stencil(x, weights, output)"
    assert placement["hoisted"]["median_ns"] > 0
    assert "torch.Tensor" in placement["refused"]["implicit"]


IMAGE = numpy.arange(30.0, dtype="float32").reshape(5, 6) % 7
WEIGHTS = numpy.array([[0, 1, 0], [1, -4, 1], [2, 1, 0]], dtype="float32")


def expected():
    output = numpy.zeros_like(IMAGE)
    for row in range(1, 4):
        for column in range(1, 5):
            window = IMAGE[row - 1 : row + 2, column - 1 : column + 2]
            output[row, column] = (WEIGHTS * window).sum()
    return output


def test_the_stencil_on_the_cpu_computes_a_weighted_sum():
    pytest.importorskip("numba")
    use = Numba().use_many(ArraySpec(IMAGE.shape, "float32"))
    names = {"image": IMAGE, "weights": WEIGHTS, "output": numpy.zeros_like(IMAGE)}
    exec("import numba\n" + use.setup, names)
    eval(use.code.format(x="image", weights="weights", output="output"), names)
    assert numpy.array_equal(names["output"], expected())


SIMULATED = """
import numpy
exec({setup!r})
image = numpy.array({image}, dtype='float32')
weights = numpy.array({weights}, dtype='float32')
output = numpy.zeros_like(image)
{code}
print(output.tolist())
"""


def test_the_stencil_on_cuda_computes_the_same_in_the_simulator():
    pytest.importorskip("numba.cuda")
    use = Numba().use_many(ArraySpec(IMAGE.shape, "float32", device="cuda"))
    program = SIMULATED.format(
        setup=use.setup,
        image=IMAGE.tolist(),
        weights=WEIGHTS.tolist(),
        code=use.code.format(x="image", weights="weights", output="output"),
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "NUMBA_ENABLE_CUDASIM": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert eval(done.stdout) == expected().tolist()


def test_an_array_that_is_no_image_has_no_stencil():
    for spec in (ArraySpec((8,), "float32"), ArraySpec((4, 4), "bool"), ArraySpec((), "float64")):
        assert Numba().use_many(spec) is None
