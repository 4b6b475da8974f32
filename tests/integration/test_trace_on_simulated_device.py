"""``dlprof trace --device simulated``: the driver's record says which calls wait."""

import json
import os
from importlib.util import find_spec

import pytest
from command_line import dlprof

PYTHON = os.environ.get("DLPROF_CUDA_PYTHON")
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


TENSORFLOW = """
import tensorflow as tf, cupy
x = tf.random.uniform((64, 64))
for _ in range(3):
    capsule = tf.experimental.dlpack.to_dlpack(x @ x)  # export
    cupy.from_dlpack(capsule)  # import
    cupy.from_dlpack(tf.experimental.dlpack.to_dlpack(x))  # both
    tf.experimental.dlpack.to_dlpack(x)  # alone
    float(x[0, 0])  # float
"""
TORCH = """
import numpy, torch
x, host, a = torch.ones(64, device="cuda"), torch.ones(64), numpy.ones(64)
zero = torch.tensor(0).cuda()
print(x)  # print
for _ in range(3):
    x[0].item()  # item
    float(x[0])  # float
    if x[0]: pass  # if
    [0, 1][zero]  # index
    x.tolist()  # tolist
    x.cpu()  # cpu
    host.copy_(x)  # copy to the host
    x.copy_(host)  # copy to the device
    host.to("cuda")  # pageable
    torch.tensor(a, device="cuda")  # from numpy
    torch.tensor([1.0, 2.0], device="cuda")  # from numbers
"""
PINNED = """
import torch
pinned = torch.ones(64).pin_memory()
for _ in range(3):
    pinned.to("cuda", non_blocking=True)
"""
JAX = """
import jax.numpy as jnp, numpy
x = jnp.ones(64)
for _ in range(3):
    y = x * 2
    float(y[0])  # float
    numpy.asarray(y)  # copy
    numpy.asarray(y)  # kept
"""


def waits_of(program, folder):
    (folder / "program.py").write_text(program)
    words = ("trace", "--device", "simulated", "--python", PYTHON, "--fail-on", "wait", "--full")
    done = dlprof(*words, "-o", folder / "t.json", folder / "program.py")
    names = [line.rpartition("# ")[2] for line in program.splitlines()]
    rows = json.loads((folder / "t.json").read_text())["rows"]
    return done, {names[row["line"] - 1]: (row["result"], row["waits"]) for row in rows}


@pytest.mark.nightly
@pytest.mark.skipif(not PYTHON, reason="DLPROF_CUDA_PYTHON names no CUDA builds")
def test_an_export_of_tensorflow_is_the_wait_on_its_own_line(tmp_path):
    done, waits = waits_of(TENSORFLOW, tmp_path)
    assert waits == {
        "export": ("view", 3),
        "import": ("view", 0),
        "both": ("view", 3),
        "alone": ("view", 3),
        "float": ("read", 3),
    }
    assert done.code == 1
    cause = "to_dlpack(x) waits for all that TensorFlow has queued"
    assert cause in " ".join(done.err.split())


@pytest.mark.nightly
@pytest.mark.skipif(not PYTHON, reason="DLPROF_CUDA_PYTHON names no CUDA builds")
def test_a_hot_path_without_waits_is_checked_by_fail_on(tmp_path):
    done, waits = waits_of(TORCH, tmp_path)
    names = {line.rpartition("# ")[2] for line in TORCH.splitlines() if "# " in line}
    assert names <= {name for name, (_, count) in waits.items() if count}
    assert done.code == 1
    done, waits = waits_of(PINNED, tmp_path)
    assert ({*waits.values()}, done.code) == ({("copy", 0)}, 0)


@pytest.mark.nightly
@pytest.mark.skipif(not PYTHON, reason="DLPROF_CUDA_PYTHON names no CUDA builds")
def test_a_value_of_jax_on_the_host_is_a_wait(tmp_path):
    _, waits = waits_of(JAX, tmp_path)
    assert {name: count for name, (_, count) in waits.items()} == {"float": 3, "copy": 3, "kept": 0}
