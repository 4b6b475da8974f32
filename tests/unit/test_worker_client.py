"""A worker seen from its parent, with real processes: turns, imports ahead, and how it is lost."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from dlprof.runner import inspection, worker_client
from dlprof.runner.inspection import UNMEASURED, Inspection
from dlprof.runner.worker_client import Worker, WorkerPool

pytestmark = pytest.mark.unit

PROBE_FILES = Path(__file__).parent.parent / "probe_files"
STAMPED = f"file:{PROBE_FILES / 'stamped.py'}"
INSPECT = {"do": "inspect", "sources": [], "skip": []}


def case(tmp_path, setup="", **changes):
    return {
        "do": "case", "producer": (STAMPED, "stamped"), "consumer": (STAMPED, "stamped"),
        "export": "array", "import": "view", "shape": (16,), "dtype": "float32", "layout": "C",
        "device": "cpu", "instruments": ("host_time",), "placements": (), "budget_ns": 1,
        "largest_bytes": 1 << 20, "turns": {"cpu": None},
        "setup": f"stamps = open({str(tmp_path / 'stamps')!r}, 'ab'); {setup}", **changes,
    }  # fmt: skip


@pytest.fixture
def worker():
    with Worker(sys.executable, {}) as worker:
        yield worker


def until_end(worker, limit_s=60.0):
    turns = []
    while (outcome := worker.until_turn(limit_s)) is None:
        turns.append(worker.turn)
        worker.go()
    return outcome, turns


def test_a_worker_stops_before_each_sample_and_serves_on_afterwards(worker, tmp_path):
    worker.send(case(tmp_path))
    outcome, turns = until_end(worker)
    assert turns[-5:] == ["host time"] * 5
    assert set(turns) == {"loop cost", "host time"}
    assert len(outcome.parts["host_time"]["samples_ns"]) == 5
    assert worker.ask({**case(tmp_path), "turns": None}, 60.0).status == "ok"


def test_a_worker_that_waits_for_its_turn_converts_nothing_and_meets_no_limit(worker, tmp_path):
    worker.send(case(tmp_path))
    while worker.turn != "host time":
        assert worker.until_turn(1.0) is None
        worker.go() if worker.turn != "host time" else None
    before = (tmp_path / "stamps").stat().st_size
    time.sleep(1.1)  # longer than the limit
    assert (tmp_path / "stamps").stat().st_size == before
    worker.go()
    assert until_end(worker, limit_s=1.0)[0].status == "ok"


def test_the_limit_of_a_case_begins_after_its_imports(worker, tmp_path):
    setup = "import time; time.sleep(1.1); hangs = 4"
    outcome = worker.ask(case(tmp_path, setup), 1.0)
    assert outcome.reason == "no answer within 1 s during host_time"


@pytest.mark.parametrize(
    ("setup", "status", "reason"),
    [
        ("hangs = 40", "timeout", "no answer within 1 s during host_time"),
        ("breaks = 40", "crashed", "killed by SIGABRT (Aborted) during host_time"),
    ],
)
def test_a_worker_that_hangs_or_dies_in_its_turn_is_told(worker, tmp_path, setup, status, reason):
    worker.send(case(tmp_path, setup))
    outcome, turns = until_end(worker, limit_s=1.0)
    assert (outcome.status, outcome.reason, outcome.alive) == (status, reason, False)
    assert turns[-1] == "host time"
    assert worker.process.poll() is not None


def test_a_crash_of_an_import_is_told_with_its_last_words(worker, tmp_path):
    setup = "import os, sys; print('no licence', flush=True); os.abort()"
    outcome = worker.ask(case(tmp_path, setup), 60.0)
    assert outcome.reason == "killed by SIGABRT (Aborted) during import"
    assert outcome.output.startswith("no licence")


def test_an_import_that_hangs_meets_a_limit_of_its_own(worker, tmp_path, monkeypatch):
    monkeypatch.setattr(worker_client, "IMPORT_LIMIT_S", 0.5)
    setup = "import time; time.sleep(600)"
    outcome = worker.ask(case(tmp_path, setup), 60.0)
    assert (outcome.status, outcome.alive) == ("timeout", False)
    assert outcome.stage in ("start", "import")


def test_a_worker_that_cannot_be_killed_is_told_and_not_waited_for(worker, monkeypatch):
    def never(timeout=None):
        assert timeout is not None, "nobody may wait for ever"
        raise subprocess.TimeoutExpired("python", timeout)

    worker.process.kill()
    worker.process.wait()  # its pipes are closed, as if it hung in a driver on its way out
    monkeypatch.setattr(worker.process, "wait", never)
    monkeypatch.setattr(worker.process, "poll", lambda: None)
    outcome = worker.ask(INSPECT, 5.0)
    assert (outcome.status, outcome.alive) == ("crashed", False)
    assert outcome.reason == "a process that cannot be killed during start"


@pytest.mark.parametrize(("after", "status"), [(4, "skipped"), (3, "crashed")])
def test_only_a_worker_that_the_kernel_ended_for_memory_is_skipped(
    worker, monkeypatch, after, status
):
    kills = iter((3, after))
    monkeypatch.setattr(worker_client, "oom_kills", lambda: next(kills))
    worker.process.kill()
    worker.process.wait()
    outcome = worker.ask(INSPECT, 5.0)
    assert (outcome.status, outcome.alive) == (status, False)


@pytest.mark.parametrize("name", ["PYTHONPATH", "PYTHONHOME"])
def test_variables_that_lead_to_this_python_are_dropped_for_another(monkeypatch, name):
    monkeypatch.setenv(name, "/somewhere")
    assert name not in worker_client.child_environment("/other/python", {})
    assert worker_client.child_environment(sys.executable, {})[name] == "/somewhere"


# The pool


@pytest.fixture
def pool():
    pool = WorkerPool(sys.executable, {})
    yield pool
    pool.close()


def test_the_worker_that_imports_ahead_is_given_once(pool, tmp_path):
    setup = "import sys; fresh = 'ahead' not in sys.modules; sys.modules['ahead'] = sys"
    pool.load([case(tmp_path, setup)])
    pool.wait(60.0)
    with pool.worker() as first, pool.worker() as second:
        assert first.process.pid != second.process.pid
        assert first.ask(case(tmp_path, setup), 60.0).parts["first_call"]["cases_before"] == 0


# The inspection


def stop(*_, **__):
    raise KeyboardInterrupt


def test_ctrl_c_before_the_catalog_is_there_says_that_nothing_was_measured(monkeypatch):
    with pytest.raises(KeyboardInterrupt, match=UNMEASURED), worker_client.started_by(stop):
        Inspection(sys.executable)
    monkeypatch.setattr(Worker, "wait", stop)
    with pytest.raises(KeyboardInterrupt, match=UNMEASURED):
        inspection.inspect_interpreter(sys.executable)
