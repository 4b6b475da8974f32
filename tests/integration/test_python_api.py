"""dlprof from Python: the same as from the command line, without its exits."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pandas as pd
import pytest
from command_line import FAKE, dlprof

import dlprof as package
from dlprof.errors import MissingFramework, Unmeasured, UsageError

pytestmark = pytest.mark.integration

SETUP = "import numpy, torch; x = torch.rand(64, 64)"


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "session.json"
    return package.run("torch", "numpy", shapes=[(64, 64)], quick=True, output=path), path


def test_a_run_gives_a_session(session):
    found, _ = session
    assert isinstance(found, package.Session)
    assert {result.case.shape for result in found.results} == {(64, 64)}
    assert found.complete


def test_a_run_is_kept_as_it_was_given(session):
    found, path = session
    assert package.load(path).results == found.results
    assert package.load(path).findings == found.findings


def test_a_run_measures_what_the_command_line_measures(session, tmp_path):
    found, _ = session
    path = tmp_path / "s.json"
    done = dlprof(
        "run", "torch", "numpy", "--shape", "64x64", "--quick", "-o", path, state=tmp_path
    )
    assert done.code == 0, done.err
    assert [result.case for result in package.load(path).results] == [
        result.case for result in found.results
    ]


def test_the_frame_of_a_run_is_the_frame_of_its_file(session):
    found, path = session
    frame = found.to_frame()
    pd.testing.assert_frame_equal(frame, package.load(path).to_frame())
    measured = frame[frame["status"] == "ok"]
    assert (measured["ready_time_median_ns"] > 0).all()
    assert set(measured["ownership"]) == {"view", "copy"}


def test_the_tables_of_the_command_line_say_the_same(session, tmp_path):
    _, path = session
    files = {form: tmp_path / f"t.{form}" for form in ("csv", "parquet", "markdown")}
    options = [word for form, file in files.items() for word in (f"--{form}", file)]
    done = dlprof("report", path, *options, state=tmp_path)
    assert done.code == 0, done.err
    by_csv = pd.read_csv(files["csv"])
    by_parquet = pd.read_parquet(files["parquet"])
    assert list(by_csv.columns) == list(by_parquet.columns)
    for name in ("ready_time_median_ns", "ownership", "case"):
        pd.testing.assert_series_equal(by_csv[name], by_parquet[name], check_dtype=False)
    assert files["markdown"].read_text(encoding="utf-8").startswith("## dlprof: torch → numpy")


def test_a_session_without_a_name_is_kept_in_the_state_folder(state):
    found = package.measure("numpy.asarray(x)", setup=SETUP, quick=True)
    (path,) = state.glob("dlprof/*.json")
    assert package.load(path).results == found.results


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


def test_it_may_be_called_while_an_event_loop_runs():
    async def cell():
        return package.measure("numpy.asarray(x)", setup=SETUP, quick=True)

    # In a thread of its own: a browser of other tests may have a loop running in this one.
    with ThreadPoolExecutor(1) as threads:
        session = threads.submit(lambda: asyncio.run(cell())).result()
    assert session.results[0].status == "ok"


def test_nothing_is_printed_and_no_framework_is_imported():
    code = (
        "import sys, dlprof\n"
        f"dlprof.measure('numpy.asarray(x)', setup={SETUP!r}, quick=True)\n"
        "assert not {'torch', 'pandas', 'typer.testing'} & set(sys.modules), sorted(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("arguments", "changes", "sentence"),
    [
        (("torch", "numpi"), {}, "did you mean 'numpy'"),
        (("torch", 3), {}, "the framework must be text"),
        (("torch", "numpy"), {"shapes": [(4, "4")]}, "expected text, or lengths such as"),
        (("torch", "numpy"), {"paths": "nope*"}, "no path matches nope*"),
        (("torch", "numpy"), {"output": "none/there/s.json"}, "cannot write none/there/s.json"),
        (("torch", "numpy"), {"output": 3}, "output 3: expected a file"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(arguments, changes, sentence):
    with pytest.raises(UsageError) as caught:
        package.run(*arguments, **changes)
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "kind", "sentence"),
    [
        ({"statement": "f("}, UsageError, "the statement is not Python"),
        ({"statement": 3}, UsageError, "the statement must be text"),
        ({"statement": "f(x)", "setup": None}, UsageError, "the setup must be text"),
        ({"statement": "f(x)", "source": 3}, UsageError, "the source must be text"),
        (
            {"statement": "f(x)", "setup": "import nope"},
            Unmeasured,
            "the setup raised ModuleNotFoundError",
        ),
        (
            {"statement": "f(x)", "setup": "x = 1", "quick": True},
            Unmeasured,
            "NameError: name 'f' is not defined; the session is in ",
        ),
    ],
)
def test_a_conversion_that_makes_no_sense_is_refused(arguments, kind, sentence):
    with pytest.raises(kind) as caught:
        package.measure(**arguments)
    assert sentence in str(caught.value)
    assert isinstance(caught.value, package.DlprofError)


def test_a_framework_that_is_missing_is_told(tmp_path):
    probe = tmp_path / "absent.py"
    probe.write_text(
        "from dlprof.probes.base import Probe\n"
        "class Absent(Probe):\n    name = module = 'absent_framework'\n    distributions = ('absent',)\n",
        encoding="utf-8",
    )
    with pytest.raises(MissingFramework, match="pip install absent"):
        package.run("absent_framework", "numpy", probes=[probe])


def test_a_probe_of_ones_own_recognises_its_arrays(tmp_path):
    assert package.run("fake", "fake", probes=FAKE, quick=True, shapes="16").results


def test_a_session_gives_its_page(session):
    found, _ = session
    page = found.to_html()
    assert page.lstrip().lower().startswith("<!doctype html>")
    assert "torch" in page
