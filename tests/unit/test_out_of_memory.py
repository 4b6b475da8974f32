"""A process that memory ran out for is no crash of a framework; large cases stand alone."""

from __future__ import annotations

import sys

import pytest
from builders import make_case

from dlprof.plan.settings import OWN_PROCESS_BYTES, Settings, process_of
from dlprof.runner import interpreter
from dlprof.runner.interpreter import Worker

pytestmark = pytest.mark.unit


def outcome_of_a_killed_worker(monkeypatch, *counts):
    """What is said of a worker that was killed, if the kernel has ended so many processes."""
    kills = iter(counts)
    monkeypatch.setattr(interpreter, "oom_kills", lambda: next(kills))
    with Worker(sys.executable, {}) as worker:
        worker.process.kill()
        worker.process.wait()
        return worker.ask({"do": "inspect", "sources": [], "skip": []}, 5.0)


def test_a_worker_killed_while_memory_ran_out_is_skipped(monkeypatch):
    outcome = outcome_of_a_killed_worker(monkeypatch, 3, 4)
    assert outcome.status == "skipped"
    assert outcome.reason == "memory ran out during start: the kernel ended the process"
    assert not outcome.alive


def test_a_worker_that_somebody_else_killed_crashed(monkeypatch):
    outcome = outcome_of_a_killed_worker(monkeypatch, 3, 3)
    assert outcome.status == "crashed"
    assert "SIGKILL" in outcome.reason


def test_a_large_case_has_a_process_of_its_own():
    large, small = make_case(shape=(OWN_PROCESS_BYTES // 4,)), make_case()
    for settings in (Settings(), Settings(together=True)):
        assert process_of(1, large, settings) != process_of(2, large, settings)
        assert process_of(1, small, settings) == process_of(2, small, settings)


def test_cases_of_two_pairs_share_a_process_only_if_they_are_together():
    one, other = make_case("torch"), make_case("jax")
    assert process_of(1, one, Settings()) != process_of(2, other, Settings())
    together = Settings(together=True)
    assert process_of(1, one, together) == process_of(2, other, together)
