"""dlprof from Python: the same as from the command line, without its exits."""

import subprocess
import sys
import threading

import pandas as pd
import pytest
from command_line import FAKE
from recordings import NUMPY_TORCH
from replay import replayed

import dlprof as package
from dlprof.errors import MissingFramework, Unmeasured, UsageError

SETUP = "import numpy; x = numpy.ones((64, 64))"


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("run") / "session.json"


@pytest.fixture(scope="module")
def session(path):
    with replayed(NUMPY_TORCH):
        return package.run("numpy", "torch", shapes=[(64,)], survey=False, output=path)


def test_a_run_gives_the_session_that_is_kept(session, path):
    assert isinstance(session, package.Session)
    assert session.complete
    assert package.load(path).results == session.results
    assert package.load(path).findings == session.findings


def test_the_frame_of_a_run_is_the_frame_of_its_file(session, path):
    frame = session.to_frame()
    pd.testing.assert_frame_equal(frame, package.load(path).to_frame())
    assert (frame["ready_time_median_ns"] > 0).all()
    assert set(frame["ownership"]) == {"view", "copy"}


def test_it_may_be_called_from_several_threads(state):
    found = []

    def work():
        found.append(package.measure("numpy.asarray(x)", setup=SETUP, quick=True))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [one.results[0].status for one in found] == ["ok", "ok"]
    assert len(list(state.glob("dlprof/*.json"))) == 2


def test_nothing_is_printed_and_no_framework_is_imported():
    setup = "import numpy, wave; x = numpy.ones(4)"
    code = (
        "import sys, dlprof\n"
        f"dlprof.measure('numpy.asarray(x)', setup={setup!r}, quick=True)\n"
        "assert not {'wave', 'torch', 'pandas', 'typer.testing'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("statement", "arguments", "kind", "said"),
    [
        ("f(", {}, UsageError, "not Python"),
        ("f(x)", {"setup": "import nope"}, Unmeasured, "ModuleNotFoundError"),
        ("f(x)", {"setup": "x = 1"}, UsageError, "x is no array"),
        ("f(x)", {"setup": "x = bytes(8)"}, UsageError, "name 'f'"),
    ],
)
def test_a_conversion_that_makes_no_sense_is_refused(statement, arguments, kind, said):
    with pytest.raises(kind) as caught:
        package.measure(statement, **arguments)
    assert said in str(caught.value)
    assert isinstance(caught.value, package.DlprofError)


def test_a_probe_of_ones_own_is_measured_and_a_framework_that_is_missing_is_told():
    assert package.run("fake", "fake", probes=FAKE, quick=True, shapes="16").results
    with pytest.raises(MissingFramework, match="pip install nobody-has-it"):
        package.run("missing", "fake", probes=[FAKE])


@pytest.mark.parametrize(
    "arguments",
    [("numpy", 3), (None, "torch")],
)
def test_a_value_of_another_type_is_refused_in_a_sentence(arguments):
    with replayed(NUMPY_TORCH), pytest.raises(UsageError, match="no probe of"):
        package.run(*arguments, quick=True)
