"""``dlprof calibrate``: a noise file, and a gate that uses it."""

from __future__ import annotations

import json
import re
import sys

import pytest
from command_line import PROBE_FILES, content, dlprof

pytestmark = pytest.mark.integration

SCENARIO = f"""
title = "Spun"
question = "Is it slower?"
pairs = ["spun->spun"]
shapes = ["64"]
probes = ["{PROBE_FILES / "spun.py"}"]
sample_ms = 2
diagnose = false
"""


@pytest.fixture(scope="module")
def scenario(tmp_path_factory):
    path = tmp_path_factory.mktemp("calibrate") / "spun.toml"
    path.write_text(SCENARIO, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def calibrated(scenario):
    done = dlprof("calibrate", scenario, "--budget", 1, state=scenario.parent)
    assert done.code == 0, done.out + done.err
    return done, content(scenario.with_name("spun.noise.json"))


def gate(tmp_path, scenario, noise, *words):
    return dlprof(
        "gate", scenario, "--base-python", sys.executable, "--head-python", sys.executable,
        "--noise", noise, "--budget", 0, *words, state=tmp_path,
    )  # fmt: skip


def test_every_case_has_its_noise(calibrated):
    _, found = calibrated
    assert found["schema"] == "dlprof.noise/1"
    assert found["rounds"] == 8
    assert sorted(one["case"]["import"] for one in found["cases"]) == ["copy", "view"]
    assert all(one["processes"] == 16 and one["spread"] > 0 for one in found["cases"])


def test_the_report_shows_the_cases_and_where_the_file_is(calibrated, scenario):
    done, _ = calibrated
    assert "8 rounds in turns" in done.out
    assert "spun(view(x))" in done.out
    assert f"noise file: {scenario.with_name('spun.noise.json')}" in done.err


def test_the_gate_raises_its_floors_and_says_so(tmp_path, scenario, calibrated):
    _, found = calibrated
    view, copy = sorted(found["cases"], key=lambda one: one["case"]["import"], reverse=True)
    view["floor"], copy["floor"] = 0.22, None
    path = tmp_path / "noise.json"
    path.write_text(json.dumps({**found, "cases": [view, copy]}), encoding="utf-8")
    text = gate(tmp_path, scenario, path, "--full").out
    assert re.search(r"spun\(view\(x\)\).*22 %", text)


def test_a_noise_file_of_another_machine_is_refused(tmp_path, scenario, calibrated):
    _, found = calibrated
    path = tmp_path / "noise.json"
    other = {**found["environment"], "cpu": "Z80"}
    path.write_text(json.dumps({**found, "environment": other}), encoding="utf-8")
    done = gate(tmp_path, scenario, path)
    assert done.code == 3
    assert "cpu Z80" in done.sentence()


def test_a_pair_without_a_file_name_is_told_before_anything_is_measured(tmp_path):
    done = dlprof("calibrate", "torch", "numpy", state=tmp_path)
    assert done.code == 2
    assert "name the noise file with -o" in done.sentence()


def test_a_budget_without_an_end_is_refused(tmp_path, scenario):
    done = dlprof("calibrate", scenario, "--budget", "inf", state=tmp_path)
    assert done.code == 2
    assert "--budget inf" in done.sentence()
