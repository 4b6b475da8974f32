"""Plain host memory into real frameworks."""

from __future__ import annotations

import pytest
from command_line import content, dlprof

pytestmark = pytest.mark.integration

QUICK = ("--quick", "--shape", "3x4", "--dtype", "float64")


@pytest.fixture
def run(tmp_path):
    def run(*words):
        path = tmp_path / "session.json"
        done = dlprof("run", *words, "-o", path, state=tmp_path, COLUMNS="80")
        assert done.code == 0, done.err
        return done, content(path)["results"]

    return run


@pytest.mark.parametrize("producer", ["bytes", "bytearray", "array", "mmap", "pyarrow"])
def test_plain_memory_reaches_torch_with_every_value(run, producer):
    if producer == "pyarrow":
        pytest.importorskip("pyarrow")
    _, results = run(producer, "torch", *QUICK)
    verdicts = {r["case"]["import"]: r["ownership"]["verdict"] for r in results}
    assert verdicts["frombuffer"] == verdicts["from_numpy"] == "view"
    assert verdicts["tensor"] == verdicts["asarray_buffer_copy"] == "copy"
    assert all(result["values"]["verdict"] == "ok" for result in results)
    assert all(result["create_ns"] > 0 for result in results)


def test_several_producers_and_consumers_are_one_run(run):
    done, results = run("bytes,bytearray", "torch,numpy", "--path", "buffer->*", *QUICK)
    pairs = {(r["case"]["producer"], r["case"]["consumer"]) for r in results}
    assert pairs == {(p, c) for p in ("bytes", "bytearray") for c in ("torch", "numpy")}
    assert "Left out: cupy" not in done.out


def test_the_peak_of_memory_is_none_for_a_view_and_one_array_for_a_copy(run):
    words = ("--quick", "--shape", "16777216", "--dtype", "float64", "--path", "*frombuffer")
    done, results = run("bytearray", "torch", *words, "--path", "*asarray_buffer_copy")
    peaks = {r["case"]["import"]: r["first_call_peak_bytes"] for r in results}
    if None in peaks.values():
        pytest.skip("this kernel does not let the high-water mark be reset")
    arrays = {name: peak / (16777216 * 8) for name, peak in peaks.items()}
    assert arrays == pytest.approx({"frombuffer": 0, "asarray_buffer_copy": 1}, abs=0.25)
    assert "128 MiB" in done.out


def test_dtype_and_shape_of_an_array_stand_in_the_list_of_paths(tmp_path):
    done = dlprof("paths", "bytes", "torch", state=tmp_path)
    code = "torch.frombuffer(x, dtype=torch.float32).reshape((1024, 1024))"
    assert code in done.out
    assert "float32, 1024x1024" in done.out
