"""An interpreter before anything is measured, and what a Ctrl-C says then."""

from __future__ import annotations

import sys

import pytest

from dlprof.runner import inspecting
from dlprof.runner.inspecting import UNMEASURED, Inspection

pytestmark = pytest.mark.unit


def stop(*_, **__):
    raise KeyboardInterrupt


def test_ctrl_c_while_the_process_is_started_says_that_nothing_was_measured(monkeypatch):
    monkeypatch.setattr(inspecting, "Worker", stop)
    with pytest.raises(KeyboardInterrupt, match=UNMEASURED):
        Inspection(sys.executable)


def test_ctrl_c_while_it_answers_says_that_nothing_was_measured(monkeypatch):
    def catalog_of_one_that_is_stopped():
        with Inspection(sys.executable) as asked:
            monkeypatch.setattr(inspecting.Worker, "wait", stop)
            asked.catalog()

    with pytest.raises(KeyboardInterrupt, match=UNMEASURED):
        catalog_of_one_that_is_stopped()


def test_ctrl_c_while_the_process_is_ended_says_that_nothing_was_measured(monkeypatch):
    inspection, close = Inspection(sys.executable), inspecting.Worker.close
    monkeypatch.setattr(inspecting.Worker, "close", lambda worker: (close(worker), stop()))
    with pytest.raises(KeyboardInterrupt, match=UNMEASURED):
        inspection.__exit__(None, None, None)
