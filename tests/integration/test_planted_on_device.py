"""The selftest's device half with real workers, on the simulated driver.

It tests all steps from plants to rules, through processes, rounds and clocks. ``tests/cuda`` tests
CUDA itself. One plant for each instrument is measured always, all of them nightly.
"""

import subprocess
import sys

import pytest

from dlprof.measuring.judged import load
from dlprof.measuring.selftest import SIMULATED_PLANTS, run
from dlprof.runner.progress import Watcher
from dlprof.runner.worker_client import child_environment
from dlprof.simulated.environment import variables
from dlprof.ticket.reproducer import reproducer

ALWAYS = ("view", "private-stream", "sync", "race", "bounce", "leak", "to-host", "reuse", "upload")
TRIES, CANNOT_TELL = 5, 2
CHOSEN = [plant for plant in SIMULATED_PLANTS if plant.name in ALWAYS]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("selftest")


@pytest.fixture(scope="module")
def found(folder):
    return run(sys.executable, folder, Watcher(), CHOSEN, simulated=1)


@pytest.mark.parametrize("plant", CHOSEN, ids=lambda plant: plant.name)
def test_a_fault_on_the_device_is_found_by_its_rule_and_a_control_is_not_blamed(found, plant):
    (outcome,) = (one for one in found.outcomes if one.plant.name == plant.name)
    check(outcome)


@pytest.mark.nightly
def test_every_fault_that_shows_without_times_is_found_on_the_device(tmp_path):
    for outcome in run(sys.executable, tmp_path, Watcher(), SIMULATED_PLANTS, 1).outcomes:
        check(outcome)


def check(outcome):
    assert not outcome.unmeasured, outcome
    if outcome.plant.rule:
        assert not outcome.missed, outcome
    else:
        assert outcome.false_alarms == ()


@pytest.mark.parametrize(
    ("name", "control"),
    [("sync", "view"), ("race", "view"), ("to-host", "view"), ("reuse", "copy")],
)
def test_a_reproducer_shows_the_fault_and_calls_a_control_gone(
    found, folder, tmp_path, name, control
):
    (plant,) = (one.plant for one in found.outcomes if one.plant.name == name)
    script = tmp_path / "reproducer.py"
    (text,) = (
        reproducer(session, finding).text
        for session in map(load, folder.glob("*.json"))
        for finding in session.findings
        if finding.rule == plant.rule
        and session.results[finding.results[0]].case.consumer == plant.consumer
    )
    for code, way in ((1, plant.ways[0]), (0, control)):
        script.write_text(text.replace(f".{plant.ways[0]}(", f".{way}("))
        done = until_it_tells(script)
        assert done.returncode == code, done.stdout + done.stderr


def until_it_tells(script):
    """Exit code 2 is "cannot tell": the queue runs dry while others have the cores."""
    for _ in range(TRIES):
        done = subprocess.run(
            [sys.executable, script],
            env=child_environment(sys.executable, variables(1)),
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
        if done.returncode != CANNOT_TELL:
            break
    return done
