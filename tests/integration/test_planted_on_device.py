"""The selftest's half on a device with real workers, on a device whose streams are threads.

It proves the way from plants to rules, through processes, rounds and clocks. What CUDA does is a
question for ``tests/cuda``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dlprof.evidence.reproducer import reproducer
from dlprof.measuring.selftest import plants_for, run
from dlprof.runner.progress import Silent
from dlprof.selftest.faults import DEVICE_PLANTS as PLANTS
from dlprof.selftest.faults import PLANTS as HOST_PLANTS
from dlprof.session import model as sessions

pytestmark = pytest.mark.integration

THREADS = Path(__file__).parent / "threads_for_streams"
MEASURED = ("view", "private-stream", "sync", "race", "bounce", "leak")
"""One for each instrument, on one array: all of them run on the simulated device, in seconds."""
CHOSEN = [plant for plant in PLANTS if plant.name in MEASURED]


@pytest.fixture(scope="module")
def _device_of_threads():
    with pytest.MonkeyPatch.context() as patch:
        folders = [str(THREADS), *filter(None, [os.environ.get("PYTHONPATH")])]
        patch.setenv("PYTHONPATH", os.pathsep.join(folders))
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("selftest")


@pytest.fixture(scope="module")
def found(folder, _device_of_threads):
    return run(sys.executable, folder, Silent(), CHOSEN)


@pytest.mark.parametrize("plant", CHOSEN, ids=lambda plant: plant.name)
def test_a_fault_on_the_device_is_found_by_its_rule_and_a_control_is_not_blamed(found, plant):
    (outcome,) = (one for one in found.outcomes if one.plant.name == plant.name)
    assert not outcome.unmeasured, outcome
    if plant.rule:
        assert not outcome.missed, outcome
    else:
        assert outcome.false_alarms == ()


@pytest.mark.usefixtures("_device_of_threads")
@pytest.mark.parametrize(("name", "innocent"), [("sync", "view"), ("race", "view")])
def test_a_reproducer_shows_a_wait_and_a_race_on_the_device(
    found, folder, tmp_path, name, innocent
):
    (plant,) = (one.plant for one in found.outcomes if one.plant.name == name)
    script = tmp_path / "reproducer.py"
    (text,) = (
        reproducer(session, finding).text
        for session in map(sessions.load, folder.glob("*.json"))
        for finding in session.findings
        if finding.rule == plant.rule
        and session.results[finding.results[0]].case.consumer == plant.consumer
    )
    for code, way in ((1, plant.ways[0]), (0, innocent)):
        script.write_text(text.replace(f".{plant.ways[0]}(", f".{way}("))
        done = subprocess.run(
            [sys.executable, script], capture_output=True, text=True, timeout=200, check=False
        )
        assert done.returncode == code, done.stdout + done.stderr


@pytest.mark.usefixtures("_device_of_threads")
def test_a_machine_with_a_device_gets_both_halves():
    assert plants_for(sys.executable, None) == ((*HOST_PLANTS, *PLANTS), None)
    assert plants_for(sys.executable, "cuda") == (PLANTS, None)
