"""Who else used the machine."""

from __future__ import annotations

import os
import time

import pytest

from dlprof.session import machine
from dlprof.session.machine import Meter, Usage, oom_kills, processor_s, usage

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("after", "earlier", "expected"),
    [
        (Usage(118.0, 8.0, clock_s=10.0), (), (10.0, 15.0)),
        (Usage(101.0, 8.0, clock_s=10.0), (), (10.0, 0.0)),
        (Usage(None, 8.0, clock_s=10.0), (), (10.0, None)),
        (Usage(118.0, 8.0, clock_s=10.0), (5.0, 2.0), (15.0, 17.0)),
        (Usage(118.0, 8.0, clock_s=10.0), (5.0, None), (15.0, None)),
    ],
    ids=["not ours", "never negative", "not told", "resumed", "resumed, not told"],
)
def test_time_that_was_not_ours_is_foreign(monkeypatch, after, earlier, expected):
    readings = iter([Usage(100.0, 5.0, clock_s=0.0), after])
    monkeypatch.setattr(machine, "usage", lambda: next(readings))
    assert Meter(*earlier).read() == expected


def test_idle_time_is_not_busy(tmp_path):
    stat = tmp_path / "stat"
    core = min(os.sched_getaffinity(0))
    stat.write_text(f"cpu  999 0 0 0 0 0 0\ncpu{core} 100 0 50 900000 7000 3 2 0 0 0\n", "ascii")
    assert usage(stat).busy_s == pytest.approx(155 / os.sysconf("SC_CLK_TCK"))


def test_cores_that_we_may_not_use_do_not_count(tmp_path):
    stat = tmp_path / "stat"
    stat.write_text("cpu  9 0 0 0 0 0 0\ncpu99999 100 0 50 9 7 3 2\n", "ascii")
    assert usage(stat).busy_s is None


@pytest.mark.parametrize("text", ["", "intr 1 2 3\n"])
def test_a_strange_file_is_unknown(tmp_path, text):
    stat = tmp_path / "stat"
    stat.write_text(text, encoding="ascii")
    assert usage(stat).busy_s is None


def test_processes_that_memory_ran_out_for_are_counted(tmp_path):
    vmstat = tmp_path / "vmstat"
    vmstat.write_text("oom_killer 9\noom_kill 3\nnr_free_pages 12\n")
    assert oom_kills(vmstat) == 3
    assert oom_kills(tmp_path / "none") == 0


def test_the_processor_time_of_a_process_is_read_whatever_it_is_called(tmp_path):
    (tmp_path / "7").mkdir()
    fields = " ".join(["S", *["0"] * 10, "250", "50", *["0"] * 30])
    (tmp_path / "7" / "stat").write_text(f"7 (a) 1 (b)) {fields}\n", encoding="utf-8")
    assert processor_s(7, tmp_path) == pytest.approx(300 / os.sysconf("SC_CLK_TCK"))


def test_the_processor_time_of_what_is_gone_is_not_known(tmp_path):
    assert processor_s(7, tmp_path) is None


def test_the_processor_time_of_this_process_is_what_it_says_itself():
    used = processor_s(os.getpid())
    assert used is not None
    assert abs(used - time.process_time()) < 1.0
