"""Frameworks in their CUDA builds order queued work as their sources say.

``docs/results/simulated.md`` names file and function for each. The verdict holds for the default
stream and for a non-blocking one of the framework's own: the worse of both.
"""

import json
import os
import re
import subprocess
from pathlib import Path

import command_line
import pytest

import dlprof
from dlprof.simulated.environment import on_simulated_device, variables

PYTHON = os.environ.get("DLPROF_CUDA_PYTHON")
pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(
        not PYTHON, reason="DLPROF_CUDA_PYTHON names no interpreter with CUDA builds"
    ),
]
VIEWS = {
    ("cupy", "torch"): {
        "torch.from_dlpack(x)": "stream-ordered",
        "torch.from_dlpack(x.toDlpack())": "unordered",
        "torch.as_tensor(x, device='cuda')": "unordered",
    },
    ("torch", "cupy"): {
        "cupy.from_dlpack(x)": "stream-ordered",
        "cupy.from_dlpack(torch.utils.dlpack.to_dlpack(x))": "unordered",
        "cupy.asarray(x)": "unordered",
    },
    ("torch", "numba"): {"numba.cuda.as_cuda_array(x)": "unordered"},
    ("numba", "torch"): {"torch.as_tensor(x, device='cuda')": "unordered"},
    ("jax", "cupy"): {
        "cupy.from_dlpack(x)": "stream-ordered",
        "cupy.from_dlpack(x.__dlpack__())": "host-sync",
        "cupy.asarray(x)": "unordered",
    },
    ("jax", "torch"): {
        "torch.from_dlpack(x)": "stream-ordered",
        "torch.from_dlpack(x.__dlpack__())": "host-sync",
    },
    ("torch", "jax"): {
        "jax.dlpack.from_dlpack(x)": "stream-ordered",
        "jnp.asarray(x)": "unordered",
    },
    ("tensorflow", "cupy"): {
        "cupy.from_dlpack(tf.experimental.dlpack.to_dlpack(x))": "host-sync",
    },
    ("cupy", "tensorflow"): {
        "tf.experimental.dlpack.from_dlpack(x.__dlpack__())": "unordered",
    },
}


@pytest.mark.parametrize("pair", VIEWS, ids="-".join)
def test_a_view_waits_is_ordered_or_is_not_as_the_source_has_it(pair, tmp_path):
    session = dlprof.run(
        *pair,
        device="simulated",
        python=PYTHON,
        shape="256x256",
        rounds=1,
        path=[*VIEWS[pair]],
        output=tmp_path / "session.json",
    )
    found = {
        result.case.code: (result.ownership.verdict, result.ordering and result.ordering.verdict)
        for result in session.results
        if result.case.code in VIEWS[pair]
    }
    assert found == {code: ("view", order) for code, order in VIEWS[pair].items()}


def test_a_result_that_stays_on_the_host_is_measured(tmp_path):
    options = {"device": "simulated", "python": PYTHON, "shape": "256", "rounds": 1}
    path = ["torch.asarray(x.get())"]
    session = dlprof.run("cupy", "torch", path=path, output=tmp_path / "s.json", **options)
    (result,) = session.results
    assert result.ordering.verdict == "host-sync"


def from_second_device(tmp_path, code):
    """Measure the conversion of an array on the second of two devices."""
    setup = "import torch, cupy; x = torch.rand(64, 64, device='cuda:1')"
    words = ("-s", setup, "--device", "simulated:2", "--python", PYTHON)
    found = command_line.dlprof("time", *words, code, "-o", tmp_path / "s.json")
    (result,) = dlprof.load(tmp_path / "s.json").results
    return found.out, result.ordering


def test_a_wait_for_work_on_the_second_device_is_no_race(tmp_path):
    assert from_second_device(tmp_path, "x.cpu()")[1].verdict == "host-sync"


def test_a_copy_between_two_devices_on_default_streams_is_no_race(tmp_path):
    runs = from_second_device(tmp_path, "cupy.asarray(x)")[1].evidence.by_streams
    assert runs["default"]["verdict"] == "stream-ordered"
    assert runs["the consumer's own stream"]["verdict"] == "unordered"


def test_memory_that_is_named_after_another_device_is_an_error(tmp_path):
    code = "torch.as_tensor(cupy.from_dlpack(x), device='cuda:0')"
    assert "a wrong device: cuda:0 for memory of cuda:1" in from_second_device(tmp_path, code)[0]


BETWEEN_TWO = """
import cupy, numpy, torch
a = torch.from_numpy(numpy.arange(8.0)).to("cuda:1")
print(a.to("cuda:0").cpu().tolist() == a.cpu().tolist(), cupy.from_dlpack(a).device.id)
"""


def test_frameworks_use_two_devices():
    environment = on_simulated_device({**os.environ, **variables(2)}, PYTHON)
    command = [PYTHON, "-c", BETWEEN_TWO]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["True", "1"], done.stderr


@pytest.mark.parametrize(
    "text",
    [
        "import torch; x = torch.ones(8, 8, device='cuda'); print(*(x @ x).shape)",
        "import cupy; x = cupy.ones((8, 8)); print(*(x @ x).shape)",
    ],
    ids=["torch", "cupy"],
)
def test_a_program_with_a_product_of_matrices_runs(text):
    environment = on_simulated_device({**os.environ, **variables(1)}, PYTHON)
    command = [PYTHON, "-c", text]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["8", "8"], done.stderr


@pytest.mark.parametrize(
    ("pair", "code", "device"),
    [
        (("torch", "jax"), "jax.dlpack.from_dlpack(x)", "cpu"),
        (("numba", "torch"), "torch.from_numpy(x)", "cpu"),
        (("cupy", "jax"), "jax.dlpack.from_dlpack(x)", "cpu"),
        (("cupy", "tensorflow"), "tf.convert_to_tensor(x)", "cuda"),
        (("torch", "cupy"), "cupy.asarray(x)", "cuda"),
    ],
)
def test_page_locked_memory_stays_on_the_host_or_is_copied(pair, code, device, tmp_path):
    options = {"device": "simulated", "python": PYTHON, "layout": "pinned", "diagnose": False}
    session = dlprof.run(*pair, shape="256", path=code, output=tmp_path / "s.json", **options)
    (result,) = session.results
    assert result.ownership.verdict == ("view" if device == "cpu" else "copy")
    assert result.ownership.evidence.result_device == device


SCENARIO = Path(__file__).parents[2] / "scenarios" / "torch-numba-loop.toml"


def test_a_loop_that_converts_at_each_launch_is_told_without_a_gpu(tmp_path):
    where = ("--device", "simulated", "--python", PYTHON, "--shape", "32x32,64x64")
    paths = ("--path", "*as_cuda_array(x*", "--path", "kernel[[]128, 32](x)")
    words = (SCENARIO, *where, *paths, "-o", tmp_path / "s.json")
    found = command_line.dlprof("run", *words, COLUMNS="120")
    assert found.code == 0, found.err
    pairs, *loops = found.out.split("In a loop with ")
    assert re.search(r"torch → numba +32.32 +unsafe +numba.cuda.as_cuda_array\(x\)  DLP003", pairs)
    for told in loops:
        assert re.search(r"3 arrays +\d.* [mµ]s +ordered +stencil\[", told)
        assert re.search(r"3 arrays +\d.* [mµ]s +race .*as_cuda_array\(x, sync=False", told)
        assert "Convert before the loop" in told
    *from_torch, cupy, last = loops
    for told in from_torch:
        assert "sync=False changes nothing: the call races with work on a non-blocking" in told
    for told in (cupy, last):
        assert re.search(r"3 arrays +waits for the queue +numba.cuda.as_cuda_array\(x\)", told)
        assert "Without it, the call waits for the queue." in told


def test_conformance_is_checked_with_arrays_on_the_device(tmp_path):
    where = ("--device", "simulated", "--python", PYTHON)
    done = command_line.dlprof("conformance", "cupy", *where, "-o", tmp_path / "v.json")
    assert done.code == 0, done.err
    assert "on a simulated CUDA device" in done.out
    found = {
        one["name"]: one["verdict"]
        for one in json.loads((tmp_path / "v.json").read_text())["checks"]
    }
    names = ("device-pair", "byte-offset", "row-gaps", "deleter-once", "asks-for-no-stream")
    assert [found[name] for name in names] == [*["holds"] * 4, "not applicable"]


def test_two_words_for_one_copy_read_the_source_equally_late(tmp_path):
    options = {"device": "simulated", "python": PYTHON, "shape": "256", "rounds": 1}
    paths = ["jnp.array(x)", "jnp.asarray(x, copy=True)"]
    session = dlprof.run("torch", "jax", path=paths, output=tmp_path / "s.json", **options)
    assert len({result.early_write.verdict for result in session.results}) == 1
