"""Judging a run: here, or in a process of its own."""

from __future__ import annotations

import pytest
from builders import make_header, make_result

from dlprof.rules import evaluate

pytestmark = pytest.mark.unit

BROKEN = {"case": {"promise": "copy"}, "ownership": {"verdict": "view"}}
RESULTS = [
    make_result("a.take(x)", **BROKEN),
    make_result("a.copy(x)", ownership={"verdict": "copy"}),
]


def test_a_process_of_its_own_finds_the_same(monkeypatch):
    here = evaluate.judge(make_header(), lambda: RESULTS, len(RESULTS))
    monkeypatch.setattr(evaluate, "MOST_HERE", 1)
    assert here
    assert evaluate.judge(make_header(), lambda: RESULTS, len(RESULTS)) == here


def test_many_results_are_judged_by_this_dlprof_wherever_it_was_started(monkeypatch, tmp_path):
    (tmp_path / "statistics.py").write_text("raise SystemExit(3)", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert evaluate.judge(make_header(), lambda: [make_result()], evaluate.MOST_HERE + 1) == []
