"""Planted faults are found, and innocent ways are not blamed: with real workers.

Every planted fault has a reproducer that shows it, and that calls its innocent control gone.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import dlprof
from dlprof.api import Silent
from dlprof.evidence.reproducer import reproducer
from dlprof.measuring.selftest import run
from dlprof.selftest.faults import PLANTS
from dlprof.session import model as sessions
from dlprof.session.model import FindingRecord

pytestmark = pytest.mark.integration

CONTROLS = {
    "sync": ("host.sync(x)", "host.view(x)"),
    "device-sync": ("host.device_sync(x)", "host.view(x)"),
    "race": ("host.race(x)", "host.view(x)"),
    "race-and-wait": ("host.race_and_wait(x)", "host.copy(x)"),
    "avoidable-copy": ("host.copy(x)", "host.view(x)"),
    "copy-twice": ("host.copy_twice(x)", "host.copy(x)"),
    "narrow": ("host.narrow(x)", "host.copy(x)"),
    "wrong-strides": ("host.wrong_strides(x)", "host.copy(x)"),
    "change-source": ("host.change_source(x)", "host.copy(x)"),
    "one-buffer": ("host.one_buffer(x)", "host.copy(x)"),
    "stale": ("host.stale(x)", "host.copy(x)"),
    "lose-read-only": ("host.lose_read_only(x)", "host.view(x)"),
    "leak": ("host.leak(x)", "host.view(x)"),
    "dangle": ("host.dangle(x)", "host.view(x)"),
    "slow": ("host.slow(x)", "host.view(x)"),
    "asymmetric": ("host.slow(x)", "host.view(x)"),
    "slow-in-loop": ("host.slow(x)", "host.view(x)"),
    "retry": ("host.retry(x)", "x.__dlpack__()"),
    "crash": ("host.crash(x)", "host.view(x)"),
    "hang": ("host.hang(x)", "host.view(x)"),
    "copy-if-strided": ("host.copy_if_strided(x)", "host.view(x)"),
    "broken-promise": ("host.view(x)", "host.copy(x)"),
    "early": ("host.early(x)", "host.copy(x)"),
    "late": ("host.late(x)", "host.copy(x)"),
}
"""By plant: the fault in its reproducer, and the innocent way to put there instead."""

EVIDENCE = {
    "narrow": {"before": "float64", "after": "float32"},
    "race-and-wait": {"waits": "host-sync"},
}
"""By plant: what the reproducer needs of what the rule found."""

FAULTS = [plant for plant in PLANTS if plant.rule]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("selftest")


@pytest.fixture(scope="module")
def outcomes(folder):
    return {one.plant.name: one for one in run(sys.executable, folder, Silent()).outcomes}


@pytest.fixture(scope="module")
def found(folder, outcomes):
    """The sessions of all plants."""
    assert outcomes
    return [sessions.load(path) for path in sorted(folder.glob("*.json"))]


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.name)
def test_a_fault_is_found_by_its_rule_and_a_control_is_not_blamed(outcomes, plant):
    outcome = outcomes[plant.name]
    if plant.rule:
        assert not outcome.missed, outcome
    else:
        assert outcome.false_alarms == ()


def test_a_race_that_waits_is_told_as_both(found):
    of_plant = "synthetic-race-and-wait"
    (session,) = (one for one in found if any(r.case.consumer == of_plant for r in one.results))
    (told,) = (
        finding
        for finding in session.findings
        if any(session.results[index].case.consumer == of_plant for index in finding.results)
    )
    assert (told.rule, told.severity, told.evidence["waits"]) == ("DLP003", "error", "host-sync")
    assert told.evidence["wrong_values"] is True


def script_for(found, plant):
    """The reproducer of the finding that the plant's rule has, or has to have, of it.

    The finding is written down here: whether a rule finds a slow path depends on the machine's load.
    """
    fault = CONTROLS[plant.name][0]
    for session in found:
        cases = [result.case for result in session.results]
        of_plant = [
            index
            for index, case in enumerate(cases)
            if plant.consumer in (case.consumer, case.producer)
        ]
        shown = [index for index in of_plant if cases[index].code == fault]
        if shown:
            index = next((i for i in shown if cases[i].layout == plant.layouts[-1]), shown[0])
            others = [i for i in of_plant if cases[i] != cases[index]]
            return reproducer(session, finding_of(plant, session, index, others)).text
    raise AssertionError(f"{plant.name} was not measured")


def finding_of(plant, session, index, others):
    """What the rule says of the result with this index; it is compared with another of the plant."""
    reason = session.results[index].reason or ""
    return FindingRecord(
        rule=plant.rule,
        name=plant.name,
        severity="error",
        results=[index],
        summary=reason,
        evidence=EVIDENCE.get(plant.name, {}),
        against=others[0] if others else None,
    )


def ended(text, folder):
    """Exit code and output of a script, in a process that knows the synthetic framework."""
    path = folder / "reproducer.py"
    path.write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(path)],
        env={**os.environ, "PYTHONPATH": str(Path(dlprof.__file__).parent.parent)},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_every_planted_fault_has_a_control():
    assert {plant.name for plant in FAULTS} == set(CONTROLS)


@pytest.mark.parametrize("plant", FAULTS, ids=lambda plant: plant.name)
def test_a_reproducer_shows_the_fault(found, tmp_path, plant):
    code, output = ended(script_for(found, plant), tmp_path)
    assert (code, output.splitlines()[-1]) == (1, "the problem is there"), output


ONE_OF_EACH = ("sync", "wrong-strides", "retry", "broken-promise")
"""Their reproducers look at waiting, values, the handshake and memory."""


@pytest.mark.parametrize(
    "plant",
    [
        pytest.param(plant, marks=() if plant.name in ONE_OF_EACH else pytest.mark.nightly)
        for plant in FAULTS
    ],
    ids=lambda plant: plant.name,
)
def test_a_reproducer_says_that_the_fault_is_gone(found, tmp_path, plant):
    fault, innocent = CONTROLS[plant.name]
    text = script_for(found, plant)
    assert fault in text
    code, output = ended(text.replace(fault, innocent), tmp_path)
    assert (code, output.splitlines()[-1]) == (0, "the problem is gone"), output


@pytest.mark.parametrize("name", ["broken-promise", "crash"])
def test_a_reproducer_that_lacks_a_framework_cannot_tell(found, tmp_path, name):
    (plant,) = (plant for plant in FAULTS if plant.name == name)
    text = script_for(found, plant).replace("import numpy\n", "import numpy_is_not_here\n")
    code, output = ended(text, tmp_path)
    assert code == 2, output
    assert "cannot tell" in output
