"""A worker as its parent sees it, with real processes: turns, limits, crashes."""

import sys
import time
from pathlib import Path

import pytest

from dlprof.errors import UsageError
from dlprof.runner import worker_client
from dlprof.runner.catalog import inspect_interpreter
from dlprof.runner.worker_client import Worker

PROBE_FILES = Path(__file__).parent.parent / "probe_files"
STAMPED = f"file:{PROBE_FILES / 'stamped.py'}"
BITE = "\x1b]0;owned\x07\u202e"
INSPECT = {"do": "inspect", "sources": [], "skip": []}


def case(tmp_path, setup="", **changes):
    return {
        "do": "case", "producer": (STAMPED, "stamped"), "consumer": (STAMPED, "stamped"),
        "export": "array", "import": "view", "shape": (16,), "dtype": "float32", "layout": "C",
        "device": "cpu", "instruments": ("host_time",), "placements": (), "budget_ns": 1,
        "largest_bytes": 1 << 20, "turns": {"cpu": None, "offset_bytes": 0},
        "setup": f"stamps = open({str(tmp_path / 'stamps')!r}, 'ab'); {setup}", **changes,
    }  # fmt: skip


@pytest.fixture
def worker():
    with Worker(sys.executable, {}) as worker:
        yield worker


def until_end(worker, limit_s=60.0):
    turns = []
    while (outcome := worker.poll(limit_s, wait_s=0.05)) is None:
        if worker.turn:
            turns.append(worker.turn)
            worker.go()
    return outcome, turns


def test_a_worker_that_waits_for_its_turn_converts_nothing_and_meets_no_limit(worker, tmp_path):
    worker.send(case(tmp_path))
    while worker.turn != "host time":
        assert worker.poll(1.0, wait_s=0.05) is None
        worker.go() if worker.turn not in ("", "host time") else None
    before = (tmp_path / "stamps").stat().st_size
    time.sleep(1.1)  # longer than the limit
    assert (tmp_path / "stamps").stat().st_size == before
    worker.go()
    assert until_end(worker, limit_s=1.0)[0].status == "ok"


def test_what_a_worker_says_steers_no_terminal(tmp_path):
    probe = tmp_path / f"{BITE}.py"
    probe.write_text(
        f'print("{BITE}", flush=True)\nraise ImportError("{BITE}")\n', encoding="utf-8"
    )
    with Worker(sys.executable, {}) as worker:
        outcome = worker.ask({**INSPECT, "sources": [f"file:{probe}"]}, 60.0)
    (fault,) = outcome.parts["inspect"]["faults"].items()
    assert "owned" in fault[1]
    assert "".join(fault).isprintable()
    with pytest.raises(UsageError, match="probe file"):
        inspect_interpreter(sys.executable, (str(probe),))


def test_the_last_words_of_a_worker_steer_no_terminal(tmp_path):
    with Worker(sys.executable, {}) as worker:
        setup = f"import os; print({BITE!r}, flush=True); os._exit(3)"
        outcome = worker.ask(case(tmp_path, setup), 60.0)
    assert outcome.output == r"\x1b]0;owned\x07\u202e"


def test_the_limit_of_a_case_begins_after_its_imports(worker, tmp_path):
    setup = "import time; time.sleep(1.1); hangs = 4"
    outcome = worker.ask(case(tmp_path, setup), 1.0)
    assert (outcome.status, outcome.stage) == ("timeout", "host_time")


@pytest.mark.parametrize(
    ("setup", "status", "reason"),
    [
        ("hangs = 40", "timeout", "1 s"),
        ("breaks = 40", "crashed", "SIGABRT"),
    ],
)
def test_a_worker_that_hangs_or_dies_in_its_turn_is_told(worker, tmp_path, setup, status, reason):
    worker.send(case(tmp_path, setup))
    outcome, turns = until_end(worker, limit_s=1.0)
    assert (outcome.status, outcome.stage, outcome.alive) == (status, "host_time", False)
    assert reason in outcome.reason
    assert turns[-1] == "host time"
    assert worker.process.poll() is not None


def test_an_import_that_hangs_meets_a_limit_of_its_own(worker, tmp_path, monkeypatch):
    monkeypatch.setattr(worker_client, "IMPORT_LIMIT_S", 0.5)
    setup = "import time; time.sleep(600)"
    outcome = worker.ask(case(tmp_path, setup), 60.0)
    assert (outcome.status, outcome.alive) == ("timeout", False)
    assert outcome.stage in ("start", "import")


def test_a_killed_worker_crashed_if_memory_did_not_run_out_meanwhile(worker, monkeypatch):
    monkeypatch.setattr(worker_client, "oom_kills", lambda: 3)
    worker.process.kill()
    worker.process.wait()
    outcome = worker.ask(INSPECT, 5.0)
    assert (outcome.status, outcome.alive) == ("crashed", False)


DAEMONS = f"file:{PROBE_FILES / 'daemons.py'}"


@pytest.mark.parametrize("name", ["PYTHONPATH", "PYTHONHOME"])
def test_variables_that_lead_to_this_python_are_dropped_for_another(monkeypatch, name):
    monkeypatch.setenv(name, "/somewhere")
    assert name not in worker_client.child_environment("/other/python", {})
    assert worker_client.child_environment(sys.executable, {})[name] == "/somewhere"


@pytest.mark.parametrize("way", ["daemon", "daemon_and_crash"])
def test_a_daemon_in_a_session_of_its_own_ends_with_the_worker(tmp_path, monkeypatch, way):
    pids = tmp_path / "pids"
    monkeypatch.setenv("DLPROF_TEST_DAEMONS", str(pids))
    asked = case(tmp_path, producer=(DAEMONS, "daemons"), consumer=(DAEMONS, "daemons"))
    with Worker(sys.executable, {}) as worker:
        outcome = worker.ask({**asked, "import": way}, 60.0)
    assert outcome.status == ("ok" if way == "daemon" else "crashed"), outcome.reason
    assert pids.read_text()
    assert [pid for pid in pids.read_text().split() if Path("/proc", pid).exists()] == []


def test_a_case_that_the_kernel_ends_for_memory_is_skipped(worker, monkeypatch, tmp_path):
    kills = iter((3, 4))
    monkeypatch.setattr(worker_client, "oom_kills", lambda: next(kills))
    outcome = worker.ask(case(tmp_path, "import os; os.kill(os.getpid(), 9)"), 60.0)
    assert (outcome.status, outcome.lost) == ("skipped", None)
    assert "out of memory" in outcome.reason
