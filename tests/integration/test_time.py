"""``dlprof time``: a user's own conversion, with real frameworks."""

import pytest
from command_line import content, dlprof

TORCH = "import torch, numpy; t = torch.rand(100, 30)"
BOX = """\
import numpy
class Box:
    def __init__(self, a):
        self.a = a
        self.__array_interface__ = a.__array_interface__
b = Box(numpy.arange(100.0))"""


@pytest.fixture
def timed(tmp_path):
    """Measure a statement. Return the run and the result."""

    def run(statement, setup, *options, code=0):
        path = tmp_path / "session.json"
        setups = [word for line in setup.split("\n@") for word in ("-s", line)]
        done = dlprof("time", *setups, statement, "--rounds", "1", *options, "-o", path)
        assert done.code == code, done.err
        (result,) = content(path)["results"]
        return result, done

    return run


def pair(result):
    return result["case"]["producer"], result["case"]["consumer"]


def verdicts(result, *names):
    return {name: result[name]["verdict"] for name in names}


def test_a_view_is_measured_with_all_instruments(timed, tmp_path):
    result, _ = timed("numpy.asarray(t)", TORCH, "--diagnose")
    assert pair(result) == ("torch", "numpy")
    case = {
        "code": "numpy.asarray(t)",
        "setup": TORCH,
        "source": "t",
        "shape": [100, 30],
        "dtype": "float32",
        "layout": "C",
    }
    assert {name: result["case"][name] for name in case} == case
    assert result["host_time"]["median_ns"] > 0
    assert result["first_call_ns"] > 0
    assert verdicts(result, "ownership", "values", "ordering", "lifetime") == {
        "ownership": "view",
        "values": "ok",
        "ordering": "synchronous",
        "lifetime": "safe",
    }
    assert "numpy.asarray(t)" in dlprof("report", tmp_path / "session.json").out


def test_the_frameworks_of_a_conversion_through_a_capsule_are_told_apart(timed):
    setup = "import torch, numpy; x = numpy.ones(30)"
    result, _ = timed("torch.from_dlpack(x.__dlpack__())", setup, "--no-diagnose")
    assert pair(result) == ("numpy", "torch")
    assert result["case"]["protocol"] == "dlpack-capsule"
    assert [event["call"] for event in result["handshake"]] == ["export"]


def test_an_object_of_no_known_framework_is_taken_at_its_word(timed):
    result, _ = timed("numpy.asarray(b)", BOX, "--quick")
    assert pair(result) == ("Box", "numpy")
    assert result["case"]["dtype"] == "float64"
    assert verdicts(result, "ownership", "values") == {"ownership": "view", "values": "ok"}


def test_what_cannot_be_told_is_unknown_with_its_reason(timed):
    setup = "import numpy\nclass Opaque:\n    values = [1, 2, 3]\nx = Opaque()"
    result, _ = timed("numpy.array(x.values)", setup, "--diagnose")
    assert result["host_time"]["median_ns"] > 0
    for name in ("ownership", "values", "ordering", "peak_memory", "early_write", "lifetime"):
        assert result[name]["verdict"] == "unknown", name
        assert result[name]["evidence"]["reason"], name


def test_bytes_are_an_array_of_the_dtype_of_the_result(timed):
    statement = "torch.frombuffer(x, dtype=torch.float32)"
    result, _ = timed(statement, "import torch; x = memoryview(bytearray(64))", "--no-diagnose")
    assert pair(result) == ("memoryview", "torch")
    assert (result["case"]["dtype"], result["case"]["shape"]) == ("float32", [16])
    assert result["ownership"]["verdict"] == "view"


def test_the_time_of_a_call_is_shown_if_nothing_says_when_its_result_is_ready(timed):
    setup = "import numpy; x = numpy.ones(3)\nclass Opaque:\n    def __init__(self, x): self.x = x"
    result, done = timed("Opaque(x)", f"{setup}\nOpaque.__module__ = 'opaque'", "--no-diagnose")
    assert pair(result) == ("numpy", "opaque.Opaque")
    assert "nothing says when opaque.Opaque is ready" in done.out
    assert "≥" in done.out


def test_a_view_of_memory_that_its_owner_unmaps_is_dangling(timed):
    setup = """import numpy; from multiprocessing.shared_memory import SharedMemory
x = SharedMemory(create=True, size=1 << 20); x.unlink()"""
    result, done = timed("numpy.ndarray(1 << 20, 'uint8', x.buf)", setup, "--diagnose")
    assert verdicts(result, "lifetime", "values") == {"lifetime": "dangling", "values": "unknown"}
    assert "DLP011" in done.out


def test_a_statement_that_changes_a_setting_is_told(timed):
    setup = (
        "import numpy\nx = numpy.ones(3)\ndef f(a):\n    numpy.seterr(all='ignore')\n    return a"
    )
    result, done = timed("f(x)", setup, "--quick")
    (changed,) = result["settings"]["evidence"]["changed"]
    assert changed["name"] == "handling of float errors of numpy"
    assert "DLP025" in done.out


@pytest.mark.parametrize(
    ("statement", "status", "framework"),
    [("numpy.nope(x)", "unsupported", "numpy"), ("os.abort() or x", "crashed", "no result")],
)
def test_a_statement_that_fails_or_ends_the_process_is_a_result(
    timed, statement, status, framework
):
    setup = "import os, numpy; x = numpy.ones(3)"
    result, done = timed(statement, setup, "--quick", code=4)
    assert pair(result) == ("numpy", framework)
    assert result["status"] == status
    assert result["reason"] in done.sentence()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("-s", "raise ValueError('a\\nb')", "f(x)"), 4, "ValueError: a b"),
        (("-s", "import sys; sys.exit(3)", "f(x)"), 4, "SystemExit: 3"),
        (("-s", "import os; os._exit(0)", "f(x)"), 4, "ended with exit code 0"),
        (("-s", "x = 1", "--source", "y", "f(y)"), 2, "no name y"),
        (("-s", "a = b = [1]", "a + b"), 2, "--source"),
        (("3",), 2, "no array"),
        (("-s", "x = b'abcd'", "bytearray(x)", "--survey"), 2, "and no bytes"),
        (("-s", "x = 3", "x + 1"), 2, "x is no array: its type is int"),
        (("-s", "import numpy; x = numpy.ones(3)", "nmpy.sum(x)"), 2, "'nmpy' is not defined"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(words, code, said):
    done = dlprof("time", *words, "--quick")
    assert done.code == code
    assert said in done.sentence()


def test_several_statements_are_compared_with_the_fastest_first(tmp_path):
    path = tmp_path / "session.json"
    setup = "import numpy, torch; x = numpy.arange(3e5)"
    statements = ["torch.tensor(list(x))", "torch.from_numpy(x)", "numpy.array(x)"]
    done = dlprof("time", "-s", setup, *statements, "--quick", "-o", path)
    assert done.code == 0, done.err
    assert [result["case"]["code"] for result in content(path)["results"]] == statements
    assert "numpy → torch, numpy" in done.out
    rows = [line for line in done.out.splitlines() if "(x" in line]
    assert "fastest  torch.from_numpy(x)" in rows[0]
    assert "torch.tensor(list(x))" in rows[-1]
    assert "equal" not in rows[-1]


def test_statements_of_different_arrays_are_refused():
    done = dlprof("time", "-s", "import numpy; a = b = numpy.ones(3)", "numpy.array(a)", "b.copy()")
    assert done.code == 2
    assert "several arrays (a, b): name one --source" in done.sentence()


def test_a_probe_file_of_the_sources_framework_is_used(tmp_path):
    probe = tmp_path / "mine.py"
    probe.write_text(
        "from dlprof.probes.numpy import NumPy\nclass Mine(NumPy):\n    name = 'mine'\n"
    )
    setup = "import numpy; x = numpy.ones(4)"
    words = ("time", "-s", setup, "bytes(x)", "--probe", probe, "--quick")
    done = dlprof(*words, "-o", tmp_path / "s.json")
    assert done.code == 0, done.err
    assert content(tmp_path / "s.json")["results"][0]["case"]["producer"] == "mine"


def test_a_survey_tries_the_statement_with_other_arrays(tmp_path):
    path = tmp_path / "session.json"
    setup = "import numpy, torch; y = numpy.arange(6.0)"
    statement = "torch.from_numpy(y.reshape(-1))"
    words = ("--survey", "--rounds", "1", "--no-diagnose", "-o", path)
    done = dlprof("time", "-s", setup, statement, *words)
    assert done.code == 0, done.err
    timed, *surveyed = content(path)["results"]
    assert timed["case"]["shape"] == [6]
    arrays = {(case["case"]["dtype"], case["case"]["layout"]): case for case in surveyed}
    assert arrays["float32", "reversed"]["status"] == "ok"  # the reshape is a copy
    assert arrays["uint8", "aligned"]["ownership"]["verdict"] == "view"
    assert arrays["uint8", "aligned"]["case"]["code"] == statement


def test_an_array_of_the_standard_library_has_its_dtype(timed):
    setup = "import array, torch; x = array.array('d', [1, 2, 3])"
    result, _ = timed("torch.tensor(x, dtype=torch.float64)", setup, "--no-diagnose")
    assert pair(result) == ("array.array", "torch")
    assert (result["case"]["dtype"], result["values"]["verdict"]) == ("float64", "ok")


def test_a_call_that_takes_several_arrays_has_a_time_per_array(tmp_path):
    setup = (
        "import time, numpy; x = numpy.arange(9)\n"
        "def f(*a):\n    time.sleep(0.002 * len(a))\n    return sum(a)"
    )
    path = tmp_path / "session.json"
    done = dlprof("time", "--quick", "--arrays", "1,4", "-s", setup, "f(x)", "-o", path)
    assert done.code == 0, done.err
    one, four = content(path)["results"]
    assert [one["case"].get("arrays", 1), four["case"]["arrays"]] == [1, 4]
    assert four["case"]["code"] == "f(x, *more_3)"
    assert four["host_time"]["median_ns"] > 3 * one["host_time"]["median_ns"]
    assert "per array" in done.out
    assert "more_3: 3 copies of x" in done.out
    assert four["values"]["verdict"] == "unknown"  # a sum is no wrong conversion
