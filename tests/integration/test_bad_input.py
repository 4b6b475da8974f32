"""Bad input gets one clear sentence and the documented exit code, and costs nothing."""

import os

import pytest
from command_line import COMMAND, RUN_RECORDED, content, dlprof, process
from comparison_builders import suite
from recordings import NUMPY_TORCH
from replay import replayed

from dlprof.device.cuda import driver_devices


@pytest.fixture
def good(keep):
    return keep("good", suite())


def test_a_shape_too_large_for_memory_is_skipped_with_its_size_and_costs_the_others_nothing(
    tmp_path,
):
    path = tmp_path / "session.json"
    words = ("--quick", "--path", "*->asarray", "-o", path)
    assert dlprof("run", "numpy", "numpy", "--shape", "1Ti,16", *words).code == 0
    huge, small = content(path)["results"]
    assert (huge["status"], small["status"]) == ("skipped", "ok")
    assert "8,192.0 GiB more memory" in huge["reason"]


@pytest.mark.skipif(isinstance(driver_devices(), int), reason="a GPU is here")
@pytest.mark.parametrize("verb", [("run", "numpy", "numpy"), ("selftest",)], ids=" ".join)
def test_no_gpu_with_device_cuda_is_reported_in_one_sentence(verb):
    run = dlprof(*verb, "--device", "cuda")
    assert run.code == 4
    assert "cuda" in run.sentence()


@pytest.mark.parametrize(
    ("words", "name", "reason"),
    [
        (("report",), "nothing.json", "No such file"),
        (("report",), "x" * 300, "File name too long"),
        (("report",), "/dev/zero", "not a regular file"),
        (("run",), "/dev/zero", "not a regular file"),
        (("jobs", "run"), "/dev/zero", "not a regular file"),
        (("report",), "pipe", "not a regular file"),
        (("run",), "pipe.toml", "not a regular file"),
        (("jobs", "run"), "pipe", "not a regular file"),
        (("compare", "good.json"), "pipe", "not a regular file"),
        (("ticket",), "pipe", "not a regular file"),
        (
            ("time", "-s", "import numpy", "numpy.asarray(x)", "--probe"),
            "pipe",
            "not a regular file",
        ),
        (("compare", "good.json", "good.json", "--junit"), "x" * 300, "File name too long"),
    ],
)
@pytest.mark.usefixtures("good")
def test_an_unreadable_file_is_reported(tmp_path, monkeypatch, words, name, reason):
    monkeypatch.chdir(tmp_path)
    for pipe in ("pipe", "pipe.toml"):
        os.mkfifo(pipe)
    run = dlprof(*words, name)
    assert run.code == 2
    assert name in run.sentence()
    assert reason in run.sentence()


def test_a_session_may_come_from_stdin(good):
    done = process("report", "-", command=("sh", "-c", f'exec "$@" <{good}', "sh", *COMMAND))
    assert (done.code, done.err) == (0, "")
    named = dlprof("report", good).out.replace(str(good), "/dev/stdin")
    assert done.out.split() == named.split()  # a longer name breaks a line elsewhere


# Places for output


@pytest.mark.parametrize(
    ("option", "place", "reason"),
    [
        ("-o", "missing/session.json", "No such file"),
        ("-o", "file/session.json", "Not a directory"),
        ("-o", "loop", "oop"),
        ("-o", "/proc/session.json", "cannot write /proc/session.json"),
        ("--json", "missing/session.json", "No such file"),
    ],
)
def test_an_unwritable_output_is_refused_before_anything_is_measured(
    tmp_path, option, place, reason
):
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with replayed(NUMPY_TORCH) as recording:
        run = dlprof(*RUN_RECORDED, option, tmp_path / place)
    assert run.code == 2
    assert reason in run.sentence()
    assert run.out == ""
    assert {request["do"] for request in recording.asked} == {"inspect"}
