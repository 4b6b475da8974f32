"""What ``dlprof calibrate`` does: measure, write the noise file, say what it means."""

from __future__ import annotations

import contextlib
from pathlib import Path

import typer

from dlprof.cli.distinct import check_distinct, check_no_session
from dlprof.cli.gating import Asked, budget_s, check_budget, check_repeated, settings_of, sweep_of
from dlprof.cli.show import colour, say, width
from dlprof.cli.sweeping import Given
from dlprof.compare.criteria import Criteria
from dlprof.compare.match import key
from dlprof.errors import Interrupted, Unmeasured, UsageError
from dlprof.gate import noise
from dlprof.gate.calibrate import LEAST_ROUNDS, calibrate
from dlprof.gate.cases import cases_of
from dlprof.gate.kept import kept_in
from dlprof.gate.measure import Task
from dlprof.measuring.progress import Bar
from dlprof.reports import calibration
from dlprof.session import replaced


def measure(asked: Asked, given: Given, criteria: Criteria, output: Path | None) -> None:
    """Calibrate, and keep the file. Raises :class:`Unmeasured` where no case could be measured."""
    check_budget(asked)
    scenario, path = asked.scenario()
    target = _target(asked, path, output)
    sweep = sweep_of(scenario, path, given, asked.python)
    settings = settings_of(asked, sweep, criteria, None)
    if not criteria.times:
        raise UsageError("--fail-on names no measure, and nothing else can be calibrated")
    check_repeated(criteria.floors)
    if all(settings.own_floors.get(key(case)) == () for case in cases_of(sweep)):
        raise UsageError("the scenario judges no times: there is nothing to calibrate")
    kept = kept_in(None)
    with Bar() as bar:
        found = calibrate(Task(sweep, sweep, settings, criteria, kept, bar, budget_s(asked)))
    with contextlib.suppress(OSError):  # a full or closed stderr is no result of the run
        typer.echo(f"sessions: {' '.join(map(str, kept.written()))}", err=True)
    if found is None:
        raise Interrupted(f"stopped before {LEAST_ROUNDS} rounds, which tell nothing of the noise")
    if not found.noise.cases:
        raise Unmeasured("no case could be measured, so there is nothing to calibrate")
    noise.write(target, found.noise)
    say(calibration.render(found, settings.floors, width(), colour()))
    with contextlib.suppress(OSError):
        typer.echo(f"noise file: {target}", err=True)
    if found.interrupted:
        raise Interrupted("stopped; what was measured until then is in the noise file")


def _target(asked: Asked, path: Path, output: Path | None) -> Path:
    if output is None and asked.second is not None:
        raise UsageError("name the noise file with -o: there is no scenario beside which it goes")
    target = output or path.with_suffix(".noise.json")
    replaced.check_writable(target)
    check_distinct({"the noise file": target, "the scenario": path})
    check_no_session(target)
    return target
