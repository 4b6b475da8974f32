"""The ready scenario for a gate, and the benchmark's sixteen conversions, are the same."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest
from command_line import dlprof

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from gate_suite import ROOT, SUITE, scenario

pytestmark = pytest.mark.integration

READY = ROOT / "scenarios" / "gate.toml"


def listed(path, state):
    done = dlprof("sweep", path, "--list", state=state)
    assert done.code == 0, done.err
    return [line.split("  ") for line in done.out.splitlines()]


def test_the_ready_scenario_has_the_conversions_of_the_benchmark(tmp_path):
    path = tmp_path / "spun.toml"
    path.write_text(scenario(), encoding="utf-8")
    ready, planted = listed(READY, tmp_path), listed(path, tmp_path)
    assert Counter(pair for pair, *_ in ready) == Counter(one.pair for one in SUITE)
    assert [f"_spun({code})" for *_, code in ready] == [code for *_, code in planted]
