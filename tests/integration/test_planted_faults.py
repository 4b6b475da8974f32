"""Planted faults are found and innocent paths are not blamed, with real workers.

The reproducer of each fault shows it, and calls it gone on the innocent control. One plant for
each instrument is measured always, all of them nightly.
"""

import functools
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import dlprof
from dlprof.measuring import selftest
from dlprof.measuring.judged import load
from dlprof.runner.progress import Watcher
from dlprof.runner.session import FindingRecord
from dlprof.selftest.plants import PLANTS
from dlprof.ticket.reproducer import reproducer

ALWAYS = (
    *("view", "copy", "sync", "race", "wrong-strides", "leak", "dangle"),
    *("retry", "crash", "hang-after-fork", "broken-promise"),
    *("late", "surveyed-view", "forget-mask"),
)
WITHOUT_TIMES = replace(selftest.SETTINGS, rounds=1, times=False, together=True)
"""No rule of these compares times."""
SHOWN = ("sync", "wrong-strides", "retry", "broken-promise")
"""Their reproducers look at waiting, values, the handshake and memory."""

CONTROLS = {
    "retry": ("host.retry(x)", "x.__dlpack__()"),
    "freeze": ("host.lock(x)", "host.copy(x)"),
    "legacy-capsule": ("host.legacy_capsule(x.to_dlpack())", "host.from_capsule(x.to_dlpack())"),
    "refuse-oddly": ("host.asarray(x, copy=False)", "host.view(x)"),
}
"""By plant: the fault in its reproducer and its control, if the names do not give them."""

EVIDENCE = {
    "set-default": {"setting": "default dtype of synthetic"},
    "narrow": {"before": "float64", "after": "float32"},
    "race-and-wait": {"waits": "host-sync"},
    "refuse-oddly": {"prescribed": "ValueError"},
}
"""By plant: the evidence that the reproducer needs."""

FAULTS = [plant for plant in PLANTS if plant.rule]


def control_of(plant):
    """Return the fault in a plant's reproducer, and the innocent code to replace it."""
    follows = f"host.{plant.ways[0]}(x)", f"host.{plant.promise or 'view'}(x)"
    return CONTROLS.get(plant.name, follows)


def marked(plants, always):
    return [
        pytest.param(
            plant, id=plant.name, marks=() if plant.name in always else pytest.mark.nightly
        )
        for plant in plants
    ]


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """Return outcome and sessions of a plant. One run measures all plants that are always measured."""

    @functools.cache
    def of(always):
        folder = tmp_path_factory.mktemp("selftest")
        plants = [plant for plant in PLANTS if (plant.name in ALWAYS) == always]
        with pytest.MonkeyPatch.context() as patch:
            if always:
                patch.setattr(selftest, "SETTINGS", WITHOUT_TIMES)
            outcomes = selftest.run(sys.executable, folder, Watcher(), plants).outcomes
        found = [load(path) for path in sorted(folder.glob("*.json"))]
        return {outcome.plant.name: outcome for outcome in outcomes}, found

    def one(plant):
        outcomes, found = of(plant.name in ALWAYS)
        return outcomes[plant.name], found

    return one


@pytest.mark.parametrize("plant", marked(PLANTS, ALWAYS))
def test_a_fault_is_found_by_its_rule_and_a_control_is_not_blamed(measured, plant):
    outcome, _ = measured(plant)
    if plant.rule:
        assert not outcome.missed, outcome
    else:
        assert outcome.false_alarms == ()


def script_for(sessions, plant):
    """Return the reproducer of the finding of the plant's rule.

    The finding is made here: the machine's load decides whether a rule finds a slow path.
    """
    fault, _ = control_of(plant)
    for session in sessions:
        cases = [result.case for result in session.results]
        of_plant = [
            index
            for index, case in enumerate(cases)
            if plant.consumer in (case.consumer, case.producer)
        ]
        shown = [index for index in of_plant if cases[index].code == fault]
        if shown:
            found = [i for one in session.findings if one.rule == plant.rule for i in one.results]
            if plant.surveyed:
                shown = [i for i in shown if i in found]
            index = next((i for i in shown if cases[i].layout == plant.layouts[-1]), shown[0])
            others = [i for i in of_plant if cases[i] != cases[index]]
            return reproducer(session, finding_of(plant, session, index, others)).text
    raise AssertionError(f"{plant.name} was not measured")


def finding_of(plant, session, index, others):
    """Return the rule's finding of this result, compared with another of the plant."""
    return FindingRecord(
        rule=plant.rule,
        name=plant.name,
        severity="error",
        results=[index],
        summary=session.results[index].reason or "",
        evidence=EVIDENCE.get(plant.name, {}),
        against=others[0] if others else None,
    )


def ended(text, folder):
    """Run a script in a process with the synthetic framework. Return exit code and output."""
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


@pytest.mark.parametrize("plant", marked(FAULTS, SHOWN))
def test_a_reproducer_shows_the_fault_and_says_when_it_is_gone(measured, tmp_path, plant):
    text = script_for(measured(plant)[1], plant)
    code, output = ended(text, tmp_path)
    assert (code, output.splitlines()[-1]) == (1, "the problem is there"), output
    fault, innocent = control_of(plant)
    assert fault in text
    code, output = ended(text.replace(fault, innocent), tmp_path)
    assert (code, output.splitlines()[-1]) == (0, "the problem is gone"), output
