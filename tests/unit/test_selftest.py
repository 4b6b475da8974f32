"""The selftest's judgement and its table; the measuring is tested in tests/integration."""

from __future__ import annotations

import pytest
from builders import make_result

from dlprof.reports.selftest import render
from dlprof.rules import RULES, Finding
from dlprof.selftest import Outcome, Selftest, judge
from dlprof.synthetic import ways
from dlprof.synthetic.faults import NOT_PLANTED, PLANTS, Plant
from dlprof.synthetic.probe import probes

pytestmark = pytest.mark.unit

LEAK = Plant("leak", ("leak",), "DLP010")
CONTROL = Plant("view", ("view",))


def result_of(plant):
    case = {"producer": "synthetic", "consumer": plant.consumer}
    return make_result(f"ways.{plant.ways[0]}(x)", case=case)


def finding(rule, severity, *results):
    return Finding(rule, "name", severity, results, "summary")


def outcome(plant, *found):
    (answer,) = judge([plant], [result_of(plant)], found)
    return answer


def test_a_fault_counts_as_found_by_its_own_rule():
    assert not outcome(LEAK, finding("DLP010", "warning", 0)).missed


def test_another_rule_does_not_find_it():
    assert outcome(LEAK, finding("DLP011", "error", 0)).missed


def test_a_finding_on_another_plant_does_not_find_it():
    results = [result_of(CONTROL), result_of(LEAK)]
    (answer,) = judge([LEAK], results, [finding("DLP010", "warning", 0)])
    assert answer.missed


def test_a_warning_on_a_control_is_a_false_alarm():
    assert outcome(CONTROL, finding("DLP010", "warning", 0)).false_alarms == ("DLP010",)


def test_an_info_on_a_control_is_none():
    assert outcome(CONTROL, finding("DLP001", "info", 0)).false_alarms == ()


def test_a_missed_fault_fails_the_selftest_and_is_said():
    found = Selftest((Outcome(LEAK, ()), Outcome(CONTROL, ())), 60.0, 0.01)
    assert not found.passed
    assert "MISSED" in render(found)
    assert "0 of 1 faults found" in render(found)


def test_a_false_alarm_fails_the_selftest_and_is_said():
    found = Selftest((Outcome(CONTROL, ("DLP010",)),), None, None)
    assert not found.passed
    assert "FALSE ALARM" in render(found)


def test_every_rule_is_planted_or_it_is_said_why_not():
    planted = {plant.rule for plant in PLANTS if plant.rule}
    assert planted | set(NOT_PLANTED) == {rule.id for rule in RULES}
    assert not planted & set(NOT_PLANTED)


def test_every_plant_has_a_probe_with_its_ways():
    known = {probe.name: probe for probe in probes()}
    for plant in PLANTS:
        assert tuple(way.name for way in known[plant.consumer].imports) == plant.ways
        assert all(callable(getattr(ways, way)) for way in plant.ways)


def test_the_table_fits_eighty_columns():
    found = Selftest(tuple(Outcome(plant, ("DLP001", "DLP002")) for plant in PLANTS), 60.0, 0.01)
    assert max(len(line) for line in render(found).splitlines()) <= 80
