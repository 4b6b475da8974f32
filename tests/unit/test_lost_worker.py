"""A worker that nobody can end."""

from __future__ import annotations

import subprocess
import sys

import pytest

from dlprof.runner.interpreter import Worker

pytestmark = pytest.mark.unit


def test_a_worker_that_cannot_be_killed_is_told_and_not_waited_for(monkeypatch):
    def never(timeout=None):
        assert timeout is not None, "nobody may wait for ever"
        raise subprocess.TimeoutExpired("python", timeout)

    with Worker(sys.executable, {}) as worker:
        worker.process.kill()
        worker.process.wait()  # its pipes are closed, as if it hung in a driver on its way out
        monkeypatch.setattr(worker.process, "wait", never)
        monkeypatch.setattr(worker.process, "poll", lambda: None)
        outcome = worker.ask({"do": "inspect", "sources": [], "skip": []}, 5.0)
    assert (outcome.status, outcome.alive) == ("crashed", False)
    assert outcome.reason == "a process that cannot be killed during start"
