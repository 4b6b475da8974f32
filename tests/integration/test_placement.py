"""Conversions in the loops that use them: real frameworks, real workers."""

import os
import subprocess
import sys
from importlib.util import find_spec

import numpy
import pytest
from command_line import content, dlprof

from dlprof.probes.base import ArraySpec
from dlprof.probes.numba import Numba

pytestmark = pytest.mark.skipif(find_spec("numba") is None, reason="needs numba")


def test_a_compiled_stencil_takes_three_converted_arrays(tmp_path):
    path = tmp_path / "session.json"
    words = ("--path", "take(x.numpy())", "--placement", "convert,in-loop", "--quick")
    options = ("--placement", "hoisted,implicit", "--shape", "16x16", "-o", path)
    done = dlprof("run", "torch", "numba", *words, *options, COLUMNS="80")
    assert done.code == 0, done.err
    (result,) = content(path)["results"]
    placement = result["placement"]
    assert placement["use"] == "stencil(x, weights, output)"
    assert min(placement[name]["median_ns"] for name in ("in_loop", "hoisted")) > 0
    assert "torch.Tensor" in placement["refused"]["implicit"]
    assert "stencil" in done.out
    assert max(map(len, done.out.splitlines())) <= 80


IMAGE = numpy.arange(30.0, dtype="float32").reshape(5, 6) % 7
WEIGHTS = numpy.array([[0, 1, 0], [1, -4, 1], [2, 1, 0]], dtype="float32")


def expected():
    output = numpy.zeros_like(IMAGE)
    for row in range(1, 4):
        for column in range(1, 5):
            window = IMAGE[row - 1 : row + 2, column - 1 : column + 2]
            output[row, column] = (WEIGHTS * window).sum()
    return output


SIMULATED = """
import numpy
exec({setup!r})
image = numpy.array({image}, dtype='float32')
weights = numpy.array({weights}, dtype='float32')
output = numpy.zeros_like(image)
{code}
print(output.tolist())
"""


@pytest.mark.parametrize(
    ("device", "setup", "variables"),
    [
        ("cpu", "import numba\n", {}),
        ("cuda", "", {"NUMBA_ENABLE_CUDASIM": "1"}),
    ],
)
def test_the_stencil_computes_a_weighted_sum(device, setup, variables):
    pytest.importorskip("numba.cuda")
    use = Numba().use_many(ArraySpec(IMAGE.shape, "float32", device=device))
    program = SIMULATED.format(
        setup=setup + use.setup,
        image=IMAGE.tolist(),
        weights=WEIGHTS.tolist(),
        code=use.code.format(x="image", weights="weights", output="output"),
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert eval(done.stdout) == expected().tolist()
