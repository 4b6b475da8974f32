"""dlprof from Python: the same as from the command line, without its exits."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pandas as pd
import pytest
from command_line import FAKE, RUN_RECORDED, dlprof, replay
from recordings import NUMPY_TORCH

import dlprof as package
from dlprof.errors import MissingFramework, Unmeasured, UsageError
from dlprof.runner.replay import replayed

pytestmark = pytest.mark.integration

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


def test_a_run_measures_what_the_command_line_measures(session, tmp_path):
    assert replay(*RUN_RECORDED, "-o", tmp_path / "s.json").code == 0
    other = package.load(tmp_path / "s.json")
    assert [one.case for one in other.results] == [one.case for one in session.results]


def test_the_frame_of_a_run_is_the_frame_of_its_file(session, path):
    frame = session.to_frame()
    pd.testing.assert_frame_equal(frame, package.load(path).to_frame())
    assert (frame["ready_time_median_ns"] > 0).all()
    assert set(frame["ownership"]) == {"view", "copy"}


def test_the_tables_of_the_command_line_say_the_same(session, path, tmp_path):
    files = {form: tmp_path / f"t.{form}" for form in ("csv", "parquet")}
    options = [word for form, file in files.items() for word in (f"--{form}", file)]
    assert dlprof("report", path, *options).code == 0
    by_csv, by_parquet = pd.read_csv(files["csv"]), pd.read_parquet(files["parquet"])
    assert list(by_csv.columns) == list(by_parquet.columns)
    for name in ("ready_time_median_ns", "ownership", "case"):
        pd.testing.assert_series_equal(by_csv[name], by_parquet[name], check_dtype=False)


def test_a_session_gives_its_page(session):
    assert session.to_html().startswith("<!doctype html>")


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
        with replayed(NUMPY_TORCH):
            return package.run("numpy", "torch", shapes="64", paths="*from_numpy*", survey=False)

    # In a thread of its own: a browser of other tests may have a loop running in this one.
    with ThreadPoolExecutor(1) as threads:
        session = threads.submit(lambda: asyncio.run(cell())).result()
    assert session.results[0].status == "ok"


def test_nothing_is_printed_and_no_framework_is_imported():
    setup = "import torch, numpy; x = torch.ones(4)"
    code = (
        "import sys, dlprof\n"
        f"dlprof.measure('numpy.asarray(x)', setup={setup!r}, quick=True)\n"
        "assert not {'torch', 'pandas', 'typer.testing'} & set(sys.modules), sorted(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("arguments", "changes", "said"),
    [
        (("torch", "numpi"), {}, "did you mean 'numpy'"),
        (("torch", "numpy"), {"shapes": [(4, "4")]}, "expected text, or lengths such as"),
        (("torch", "numpy"), {"paths": "nope*"}, "no path matches nope*"),
        (("torch", "numpy"), {"output": "none/there/s.json"}, "cannot write none/there/s.json"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(arguments, changes, said):
    with replayed(NUMPY_TORCH), pytest.raises(UsageError) as caught:
        package.run(*arguments, **changes)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "kind", "said"),
    [
        ({"statement": "f("}, UsageError, "the statement is not Python"),
        ({"statement": "f(x)", "setup": "import nope"}, Unmeasured, "ModuleNotFoundError"),
        ({"statement": "f(x)", "setup": "x = 1", "quick": True}, Unmeasured, "name 'f'"),
    ],
)
def test_a_conversion_that_makes_no_sense_is_refused(arguments, kind, said):
    with pytest.raises(kind) as caught:
        package.measure(**arguments)
    assert said in str(caught.value)
    assert isinstance(caught.value, package.DlprofError)


def test_a_probe_of_ones_own_is_measured_and_a_framework_that_is_missing_is_told():
    assert package.run("fake", "fake", probes=FAKE, quick=True, shapes="16").results
    with pytest.raises(MissingFramework, match="pip install nobody-has-it"):
        package.run("missing", "fake", probes=[FAKE])


@pytest.mark.parametrize(
    ("arguments", "options"),
    [(("numpy", 3), {}), ((None, "torch"), {}), (("numpy", "torch"), {"output": 5})],
)
def test_a_value_of_another_type_is_refused_in_a_sentence(arguments, options):
    with replayed(NUMPY_TORCH), pytest.raises(UsageError, match=r"is no "):
        package.run(*arguments, quick=True, **options)
