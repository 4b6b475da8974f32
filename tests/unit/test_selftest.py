"""The judgment and the table of the selftest; tests/integration covers the measuring."""

import pytest
from builders import make_catalog, make_result
from repro_builders import finding_of

from dlprof.judge import RULES
from dlprof.measuring.selftest import PlantResult, Selftest, judge, run
from dlprof.report.check_document import selftest_document
from dlprof.report.terminal import render as render_document
from dlprof.selftest import device, host
from dlprof.selftest.plants import DEVICE_PLANTS, PLANTS, Plant, probes
from dlprof.worker.loading import check_probe

LEAK = Plant("leak", ("leak",), "DLP010")
CONTROL = Plant("view", ("view",))


def result_of(plant, **changes):
    case = {"producer": "synthetic", "consumer": plant.consumer}
    return make_result(f"host.{plant.ways[0]}(x)", case=case, **changes)


def render(found, no_streams=None):
    return render_document(selftest_document(found, no_streams), 200)


def finding(rule, severity, *results):
    return finding_of(rule, severity=severity, results=list(results))


def outcome(plant, *found):
    (answer,) = judge([plant], [result_of(plant)], found)
    return answer


def test_a_fault_counts_as_found_by_its_own_rule():
    assert not outcome(LEAK, finding("DLP010", "warning", 0)).missed


def test_a_warning_on_a_control_is_a_false_alarm():
    assert outcome(CONTROL, finding("DLP010", "warning", 0)).false_alarms == ("DLP010",)


def test_a_missed_fault_fails_the_selftest_and_is_reported():
    found = Selftest((PlantResult(LEAK, ()), PlantResult(CONTROL, ())))
    assert not found.passed
    assert "MISSED" in render(found)
    assert "0 of 1" in render(found)


def test_every_rule_is_planted():
    planted = {plant.rule for plant in (*PLANTS, *DEVICE_PLANTS) if plant.rule}
    assert planted == {rule.id for rule in RULES}


@pytest.mark.parametrize(("plants", "framework"), [(PLANTS, host), (DEVICE_PLANTS, device)])
def test_every_plant_has_a_probe_that_follows_the_contract_and_paths_that_exist(plants, framework):
    known = {probe.name: probe for probe in probes()}
    for plant in plants:
        check_probe(type(known[plant.consumer]))
        assert plant.producer in {*known, "numpy"}
        assert tuple(way.name for way in known[plant.consumer].imports) == plant.ways
        functions = [way.removesuffix("_no_copy") for way in plant.ways]
        assert all(callable(getattr(framework, function)) for function in functions)


def test_an_unmeasured_plant_is_neither_clean_nor_missed():
    invalid = {"status": "invalid", "reason": "GPU 0 lowered its clocks"}
    for plant in (LEAK, CONTROL):
        (answer,) = judge([plant], [result_of(plant, **invalid)], [])
        assert answer.unmeasured
        assert not answer.missed
        found = Selftest((answer,))
        assert found.passed
        assert found.unmeasured == (answer,)
        assert "NOT MEASURED" in render(found)
        assert "GPU 0 lowered its clocks" in render(found)


@pytest.mark.parametrize(("at", "missed"), [(1, False), (3, False), (4, True)])
def test_a_plant_is_missed_only_if_it_is_missed_every_time(monkeypatch, tmp_path, at, missed):
    """``at`` is the measurement that shows the fault."""
    measured = []

    def measure(plants, catalog, path, watcher):
        measured.append(plants)
        return [*map(result_of, plants)]

    def findings(results):
        return [finding("DLP010", "warning", 0)] if results and len(measured) >= at else []

    monkeypatch.setattr("dlprof.measuring.selftest._measure", measure)
    monkeypatch.setattr("dlprof.measuring.selftest.find", findings)
    monkeypatch.setattr("dlprof.measuring.selftest.inspect_interpreter", lambda *_: make_catalog())
    (found,) = run("python", tmp_path, None, [LEAK]).outcomes
    assert found.missed is missed
    assert len(measured) == min(at, 3)
