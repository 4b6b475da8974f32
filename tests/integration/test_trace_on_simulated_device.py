"""``dlprof trace --device simulated``: the driver's record says which calls wait."""

import json
from importlib.util import find_spec

import pytest
from command_line import dlprof

pytestmark = pytest.mark.skipif(
    None in (find_spec("cupy"), find_spec("numba_cuda")), reason="needs cupy and numba-cuda"
)
PROGRAM = """
import cupy, numpy
from numba import cuda

@cuda.jit
def scale(values, factor):
    place = cuda.grid(1)
    if place < values.size:
        values[place] *= factor

x, host = cupy.ones(1024, "float32"), numpy.ones(1024, "float32")
view = cuda.as_cuda_array(x, sync=False)
for _ in range(3):
    scale[128, 32](x, 2.0)  # launch
    scale[128, 32](view, 2.0)  # own
    scale[128, 32](host, 2.0)  # host
    cuda.as_cuda_array(x)  # waits
    cuda.as_cuda_array(x, sync=False)  # ordered by nothing
    x.get()  # get
    float(x[0])  # float
"""


@pytest.fixture(scope="module")
def traced(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trace")
    (folder / "program.py").write_text(PROGRAM)
    words = ("trace", "--device", "simulated", "--fail-on", "wait", "-o", folder / "t.json")
    done = dlprof(*words, folder / "program.py")
    rows = json.loads((folder / "t.json").read_text())["rows"]
    names = [line.rpartition("# ")[2] for line in PROGRAM.splitlines()]
    return done, {names[row["line"] - 1]: row for row in rows}


def test_a_call_that_synchronizes_or_copies_to_the_host_waits(traced):
    _, rows = traced
    waits = {name: row["waits"] for name, row in rows.items()}
    assert waits == {
        "launch": 0,
        "host": 3,
        "waits": 3,
        "ordered by nothing": 0,
        "view = cuda.as_cuda_array(x, sync=False)": 0,
        "get": 3,
        "float": 3,
    }


def test_an_array_given_to_a_kernel_in_a_loop_is_a_row_with_its_advice(traced):
    done, rows = traced
    assert [rows[name]["result"] for name in ("launch", "host")] == ["view", "copy"]
    assert rows["host"]["bytes"] == 3 * 2 * 4096
    assert "converts its arguments at each launch" in done.err


def test_fail_on_wait_fails_with_the_lines_of_the_record(traced):
    done, rows = traced
    assert done.code == 1
    assert f"program.py:{rows['waits']['line']}" in done.err
