"""``dlprof time``: a user's own conversion, with real frameworks."""

from __future__ import annotations

import pytest
from command_line import content, dlprof

pytestmark = pytest.mark.integration

TORCH = "import torch, numpy; t = torch.rand(100, 30)"
JAX = "import numpy, jax, jax.numpy as jnp; a = jnp.arange(4096.0)"


def timed(statement, setup, tmp_path, *options):
    """What was measured of a statement that works."""
    path = tmp_path / "session.json"
    setups = [word for line in setup.splitlines() for word in ("-s", line)]
    words = ("time", *setups, statement, "--rounds", "1", *options, "-o", path)
    done = dlprof(*words, state=tmp_path)
    assert done.code == 0, done.err
    (result,) = content(path)["results"]
    return result


def refused(*words, tmp_path):
    done = dlprof("time", *words, "--quick", "--timeout", "4", state=tmp_path)
    return done.code, done.sentence().removeprefix("dlprof: ")


def pair(result):
    return result["case"]["producer"], result["case"]["consumer"]


def verdict(result, name):
    return result[name]["verdict"]


def test_a_view_is_measured_with_all_instruments(tmp_path):
    result = timed("numpy.asarray(t)", TORCH, tmp_path, "--diagnose")
    assert pair(result) == ("torch", "numpy")
    case = {
        name: result["case"][name]
        for name in ("code", "setup", "source", "shape", "dtype", "layout")
    }
    assert case == {
        "code": "numpy.asarray(t)",
        "setup": TORCH,
        "source": "t",
        "shape": [100, 30],
        "dtype": "float32",
        "layout": "C",
    }
    assert result["host_time"]["median_ns"] > 0
    assert result["first_call_ns"] > 0
    assert result["phases"]["release_ns"] is not None
    assert verdict(result, "ownership") == "view"
    assert verdict(result, "values") == "ok"
    assert verdict(result, "ordering") == "synchronous"
    assert verdict(result, "lifetime") == "safe"


def test_a_copy_is_named_as_a_copy(tmp_path):
    result = timed(
        "torch.tensor(a)", "import torch, numpy; a = numpy.arange(1000.0)", tmp_path, "--diagnose"
    )
    assert pair(result) == ("numpy", "torch")
    assert verdict(result, "ownership") == "copy"
    assert verdict(result, "early_write") == "safe"


def test_the_frameworks_of_a_conversion_through_a_capsule_are_told_apart(tmp_path):
    code = "tf.experimental.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(t))"
    result = timed(code, f"import tensorflow as tf\n{TORCH}", tmp_path, "--no-diagnose")
    assert pair(result) == ("torch", "tensorflow")
    assert result["case"]["protocol"] == "dlpack-capsule"
    assert None not in (result["phases"]["export_ns"], result["phases"]["import_ns"])
    assert [event["call"] for event in result["handshake"]] == ["export"]


def test_an_asynchronous_source_is_waited_for(tmp_path):
    result = timed("numpy.from_dlpack(a)", JAX, tmp_path, "--diagnose")
    assert pair(result) == ("jax", "numpy")
    assert result["case"]["protocol"] == "dlpack"
    assert "__dlpack__" in [event["call"] for event in result["handshake"]]
    assert verdict(result, "ordering") == "host-sync"
    assert verdict(result, "early_write") == "unknown"


def test_an_object_of_no_known_framework_is_taken_at_its_word(tmp_path):
    setup = "import numpy\nclass Box:\n    def __init__(self, a): self.a = a; self.__array_interface__ = a.__array_interface__\nb = Box(numpy.arange(100.0))"
    done = dlprof(
        "time",
        "-s",
        setup,
        "numpy.asarray(b)",
        "--quick",
        "-o",
        tmp_path / "s.json",
        state=tmp_path,
    )
    assert done.code == 0, done.err
    (result,) = content(tmp_path / "s.json")["results"]
    assert pair(result) == ("python", "numpy")
    assert result["case"]["dtype"] == "float64"
    assert verdict(result, "ownership") == "view"
    assert verdict(result, "values") == "ok"


def test_what_cannot_be_told_is_unknown_with_its_reason(tmp_path):
    setup = "import numpy; x = [1, 2, 3]"
    result = timed("numpy.array(x)", setup, tmp_path, "--diagnose")
    assert result["host_time"]["median_ns"] > 0
    for name in ("ownership", "values", "ordering", "peak_memory", "early_write", "lifetime"):
        assert verdict(result, name) == "unknown", name
        assert result[name]["evidence"]["reason"], name


def test_a_result_whose_ready_time_is_not_known_has_a_host_time(tmp_path):
    setup = "import numpy, types; x = numpy.arange(3)"
    path = tmp_path / "s.json"
    words = ("time", "-s", setup, "types.SimpleNamespace(a=x)", "--quick", "-o", path)
    done = dlprof(*words, state=tmp_path)
    assert done.code == 0, done.err
    (result,) = content(path)["results"]
    assert result["ready_time"] is None
    assert result["host_time"]["median_ns"] > 0
    assert "nothing says when a types.SimpleNamespace is ready" in " ".join(done.out.split())


def test_a_setup_that_prints_disturbs_nothing(tmp_path):
    setup = f"print('{{}}' * 9); import sys; print('no', file=sys.stderr); {TORCH}"
    assert timed("t.numpy()", setup, tmp_path, "--quick")["status"] == "ok"


def test_a_session_of_time_can_be_reported(tmp_path):
    path = tmp_path / "session.json"
    timed("numpy.asarray(t)", TORCH, tmp_path, "--quick")
    done = dlprof("report", path, state=tmp_path)
    assert done.code == 0, done.err
    assert "numpy.asarray(t)" in done.out


def test_a_statement_that_is_refused_is_a_result(tmp_path):
    path = tmp_path / "s.json"
    setup = "import numpy; x = numpy.ones(3)"
    done = dlprof("time", "-s", setup, "numpy.nope(x)", "--quick", "-o", path, state=tmp_path)
    assert done.code == 4
    assert done.sentence().startswith(
        "dlprof: nothing could be measured: AttributeError: module 'numpy'"
    )
    (result,) = content(path)["results"]
    assert result["status"] == "unsupported"


@pytest.mark.parametrize(
    ("statement", "status"), [("os.abort() or x", "crashed"), ("os._exit(0) or x", "crashed")]
)
def test_a_statement_that_ends_the_process_is_a_result(statement, status, tmp_path):
    path = tmp_path / "s.json"
    setup = "import os, numpy; x = numpy.ones(3)"
    done = dlprof("time", "-s", setup, statement, "--quick", "-o", path, state=tmp_path)
    assert done.code == 4
    (result,) = content(path)["results"]
    assert result["status"] == status


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (
            ("-s", "import nothing_there", "f(x)"),
            4,
            "nothing could be measured: the setup raised ModuleNotFoundError",
        ),
        (
            ("-s", "raise ValueError('a\\nb')", "f(x)"),
            4,
            "nothing could be measured: the setup raised ValueError: a b",
        ),
        (
            ("-s", "import sys; sys.exit(3)", "f(x)"),
            4,
            "nothing could be measured: the setup raised SystemExit: 3",
        ),
        (
            ("-s", "import os; os._exit(0)", "f(x)"),
            4,
            "nothing could be measured: the process ended with exit code 0 during the setup",
        ),
        (
            ("-s", "import os; os.abort()", "f(x)"),
            4,
            "nothing could be measured: killed by SIGABRT",
        ),
        (("-s", "x = (", "f(x)"), 2, "--setup is not Python: '(' was never closed"),
        (("-s", "x = 1", "f(x"), 2, "the statement is not Python: '(' was never closed"),
        (("-s", "x = 1", "--source", "y", "f(y)"), 2, "the setup binds no name y: it binds x"),
        (
            ("-s", "import numpy; a = b = numpy.ones(3)", "a + b"),
            2,
            "name the array to convert as the source: the statement uses several: a, b",
        ),
        (
            ("3",),
            2,
            "name the array to convert as the source: the statement uses none that the setup binds",
        ),
        (
            ("--csv", "-", "--markdown", "-", "f(x)"),
            2,
            "only one of --csv, --markdown can be printed",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(words, code, sentence, tmp_path):
    found = refused(*words, tmp_path=tmp_path)
    assert found[0] == code
    assert found[1].startswith(sentence)
