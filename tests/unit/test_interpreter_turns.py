"""A worker that waits for its turns, seen from its parent; real processes."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from dlprof.runner.interpreter import Worker

pytestmark = pytest.mark.unit

STAMPED = f"file:{Path(__file__).parent.parent / 'probe_files' / 'stamped.py'}"


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


def test_a_worker_alone_is_given_every_turn_at_once(worker, tmp_path):
    outcome = worker.ask(case(tmp_path), 60.0)
    assert outcome.status == "ok"
    assert len(outcome.parts["host_time"]["samples_ns"]) == 5


def test_a_worker_stops_before_each_sample_and_says_of_what(worker, tmp_path):
    worker.send(case(tmp_path))
    outcome, turns = until_end(worker)
    assert turns[-5:] == ["host time"] * 5
    assert set(turns) == {"loop cost", "host time"}
    assert len(outcome.parts["host_time"]["samples_ns"]) == 5


def test_nothing_is_converted_while_a_worker_waits_for_its_turn(worker, tmp_path):
    worker.send(case(tmp_path))
    while worker.turn != "host time":
        assert worker.until_turn(60.0) is None
        worker.go() if worker.turn != "host time" else None
    before = (tmp_path / "stamps").stat().st_size
    time.sleep(0.1)
    assert (tmp_path / "stamps").stat().st_size == before


def test_waiting_for_a_turn_counts_towards_no_limit(worker, tmp_path):
    worker.send(case(tmp_path))
    assert worker.until_turn(2.0) is None
    time.sleep(2.1)
    worker.go()
    outcome, _ = until_end(worker, limit_s=2.0)
    assert outcome.status == "ok"


def test_the_limit_of_a_case_may_be_longer_than_that_of_the_import(worker, tmp_path):
    setup = "import time; time.sleep(0.5); hangs = 4"
    outcome = worker.ask(case(tmp_path, setup), 2.0, import_limit_s=1.0)
    assert outcome.reason == "no answer within 2 s during host_time"


def test_a_worker_that_hangs_in_its_turn_is_killed(worker, tmp_path):
    worker.send(case(tmp_path, "hangs = 40"))
    outcome, turns = until_end(worker, limit_s=1.0)
    assert (outcome.status, outcome.alive) == ("timeout", False)
    assert outcome.reason == "no answer within 1 s during host_time"
    assert turns[-1] == "host time"


def test_a_worker_that_dies_in_its_turn_is_told_with_its_stage(worker, tmp_path):
    worker.send(case(tmp_path, "breaks = 40"))
    outcome, turns = until_end(worker)
    assert outcome.reason == "killed by SIGABRT (Aborted) during host_time"
    assert turns[-1] == "host time"


def test_a_worker_that_dies_while_it_waits_is_told(worker, tmp_path):
    worker.send(case(tmp_path))
    assert worker.until_turn(60.0) is None
    worker.process.kill()
    worker.process.wait()
    worker.go()
    outcome, _ = until_end(worker)
    assert (outcome.alive, outcome.stage) == (False, "host_time")


def test_a_worker_serves_the_next_case_after_turns(worker, tmp_path):
    worker.send(case(tmp_path))
    until_end(worker)
    assert worker.ask({**case(tmp_path), "turns": None}, 60.0).status == "ok"
