"""The next worker: one that has imported ahead of its first case, or a fresh one; real processes."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from dlprof.runner.standby import Interpreter, Standby

pytestmark = pytest.mark.unit

FAKE = f"file:{Path(__file__).parent.parent / 'probe_files' / 'fake.py'}"
CASE = {
    "do": "case", "producer": (FAKE, "fake"), "consumer": (FAKE, "fake"), "export": "array",
    "import": "view", "shape": (16,), "dtype": "float32", "layout": "C", "device": "cpu",
    "instruments": ("first_call",), "setup": "", "placements": (), "budget_ns": 1_000_000,
    "largest_bytes": 1 << 20,
}  # fmt: skip


@pytest.fixture
def standby():
    standby = Standby(Interpreter(sys.executable, {}))
    yield standby
    standby.close()


def begun(standby, setup=""):
    standby.begin({**CASE, "setup": setup})
    return standby._next


def told(standby, setup=""):
    stages = []
    with standby.worker() as worker:
        outcome = worker.ask({**CASE, "setup": setup}, 60.0, stages.append)
    return outcome, stages


def given(standby):
    worker = standby.worker()
    worker.close()
    return worker


def is_alive(worker):
    return worker.process.poll() is None


def test_the_worker_that_was_started_is_given_once(standby):
    worker = begun(standby)
    assert given(standby) is worker
    assert given(standby) is not worker


def test_a_second_start_ends_the_first(standby):
    worker = begun(standby)
    assert begun(standby) is not worker
    assert not is_alive(worker)


def test_nothing_is_waited_for_where_nothing_was_started(standby):
    standby.settle()
    standby.wait(60.0)


def test_a_case_that_was_begun_stops_after_its_imports(standby, tmp_path):
    worker = begun(standby, f"open({str(tmp_path / 'imported')!r}, 'w')")
    standby.settle()
    assert (tmp_path / "imported").is_file()
    assert "held" in worker._early[-1]


@pytest.mark.parametrize("settled", [True, False])
def test_a_case_that_was_begun_is_told_as_any_other(standby, settled):
    begun(standby)
    if settled:
        standby.settle()
    outcome, stages = told(standby)
    assert (outcome.status, stages[:3]) == ("ok", ["import", "create", "first call"])
    assert outcome.parts["first_call"]["cases_before"] == 0


@pytest.mark.parametrize("settled", [True, False])
def test_a_crash_of_the_import_is_told_with_its_stage_and_last_words(standby, settled):
    setup = "import os, sys; print('no licence', flush=True); os.abort()"
    worker = begun(standby, setup)
    if settled:
        standby.settle()
        worker.process.wait()
    outcome, _ = told(standby, setup)
    assert outcome.reason == "killed by SIGABRT (Aborted) during import"
    assert outcome.output.startswith("no licence")


@pytest.mark.parametrize("settled", [True, False])
def test_an_import_that_fails_is_told_and_the_worker_serves_on(standby, settled):
    setup = "raise ImportError('libnothing.so cannot be loaded')"
    begun(standby, setup)
    if settled:
        standby.settle()
    with standby.worker() as worker:
        failed = worker.ask({**CASE, "setup": setup}, 60.0)
        after = worker.ask(CASE, 60.0)
    assert "libnothing.so cannot be loaded" in failed.reason
    assert after.status == "ok"


def test_a_slow_import_is_waited_for_once_and_goes_on(standby, monkeypatch):
    monkeypatch.setattr("dlprof.runner.standby.QUIET_LIMIT_S", 0.0)
    worker = begun(standby)
    standby.settle()
    standby.settle()
    assert worker._early == []
    assert told(standby)[0].status == "ok"


def test_the_limit_of_an_import_counts_from_its_begin(standby):
    setup = "import time; time.sleep(600)"
    begun(standby, setup)
    time.sleep(0.5)
    with standby.worker() as worker:
        outcome = worker.ask({**CASE, "setup": setup}, 60.0, import_limit_s=0.5)
    assert outcome.reason in (
        "no answer within 0.5 s during import",
        "no answer within 0.5 s during start",
    )
    assert not outcome.alive
