"""The machine: use of it by other programs."""

import os

import pytest

from dlprof.runner import machine
from dlprof.runner.machine import Meter, busy_s, oom_kills


@pytest.fixture
def proc(tmp_path, monkeypatch):
    """A folder in place of ``/proc``."""
    monkeypatch.setattr(machine, "PROC", tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("busy_s", "foreign_s"),
    [(118.0, 15.0), (101.0, 0.0), (None, None)],
    ids=["not ours", "never negative", "unknown"],
)
def test_time_of_other_programs_is_foreign(monkeypatch, busy_s, foreign_s):
    busy, own = iter([100.0, busy_s]), iter([5.0, 8.0])
    monkeypatch.setattr(machine, "busy_s", lambda: next(busy))
    monkeypatch.setattr(machine, "own_s", lambda: next(own))
    assert Meter().read()[1] == foreign_s


def test_idle_time_is_not_busy(proc):
    stat = proc / "stat"
    core = min(os.sched_getaffinity(0))
    stat.write_text(f"cpu  999 0 0 0 0 0 0\ncpu{core} 100 0 50 900000 7000 3 2 0 0 0\n", "ascii")
    assert busy_s() == pytest.approx(155 / os.sysconf("SC_CLK_TCK"))


def test_processes_killed_for_lack_of_memory_are_counted(proc):
    assert oom_kills() == 0
    (proc / "vmstat").write_text("oom_killer 9\noom_kill 3\nnr_free_pages 12\n")
    assert oom_kills() == 3
