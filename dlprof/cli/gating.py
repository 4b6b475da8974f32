"""What ``dlprof gate`` does where it measures: read what is meant, measure, tell."""

from __future__ import annotations

import contextlib
import math
import shlex
from dataclasses import dataclass, replace
from pathlib import Path

import typer

from dlprof import session as sessions
from dlprof.cli import options
from dlprof.cli.comparing import tell
from dlprof.cli.comparison_wanted import ComparisonWanted
from dlprof.cli.progress import Bar
from dlprof.cli.sweeping import Given, check_count, count, prepared
from dlprof.cli.typed import typed
from dlprof.compare.criteria import Criteria
from dlprof.compare.floors import own_floors
from dlprof.compare.sequential import BLOCK
from dlprof.compare.times import Settings
from dlprof.errors import DlprofError, Interrupted, UsageError
from dlprof.gate import noise
from dlprof.gate.baseline import check
from dlprof.gate.cases import cases_of
from dlprof.gate.kept import Kept, kept_in
from dlprof.gate.measure import Task, gate
from dlprof.reports.comparison import Names
from dlprof.scenario.model import Scenario
from dlprof.scenario.read import read, validated
from dlprof.scenario.request import Sweep
from dlprof.session import Session

BUDGET_S = 300.0
HOW = (
    "name what to compare: a scenario and two interpreters (--base-python, --head-python), "
    "a scenario and a session (--baseline), or two session files"
)


@dataclass(frozen=True)
class Asked:
    """The gate's own part of the command line."""

    first: str
    second: str | None
    base_python: str | None
    head_python: str | None
    baseline: Path | None
    python: str | None
    budget: float | None
    noise: Path | None
    output: Path | None

    @property
    def measures(self) -> bool:
        return any((self.base_python, self.head_python, self.baseline))

    def scenario(self) -> tuple[Scenario, Path]:
        """The scenario of a file, or that of a pair of frameworks."""
        if self.second is None:
            path = Path(self.first)
            return read(path), path
        pair = f"{self.first}->{self.second}"
        content = {"title": pair, "question": f"Is {pair} slower?", "pairs": [pair]}
        return validated(content, "the command line"), Path(pair)


def check_files_only(asked: Asked, given: Given) -> None:
    """Raises :class:`UsageError` for options of a measurement beside two session files."""
    if asked.second is None:
        raise UsageError(HOW)
    named = {
        **given.named(),
        "--python": asked.python,
        "--budget": asked.budget,
        "--noise": asked.noise,
        "--output": asked.output,
    }
    unfit = [name for name, value in named.items() if value not in (None, False)]
    if unfit:
        raise UsageError(
            f"two session files are compared as they are: leave {', '.join(unfit)} out"
        )


def measure(
    asked: Asked, given: Given, criteria: Criteria, unsure: int, wanted: ComparisonWanted
) -> None:
    """Measure both sides, tell, and raise what the exit code says."""
    _check(asked)
    wanted.check(**{"the scenario": Path(asked.first), "the baseline": asked.baseline})
    scenario, path = asked.scenario()
    base: Sweep | Session
    if asked.baseline is not None:
        base = sessions.load(asked.baseline)
        head = _side(scenario, path, given, asked.python)
        check(base, head)
    else:
        base = _side(scenario, path, given, asked.base_python)
        head = _side(scenario, path, given, asked.head_python)
    known = None if asked.noise is None else noise.load(asked.noise)
    if known is not None:
        noise.check(known, head)
    kept = kept_in(asked.output)
    with Bar() as bar:
        task = Task(
            base,
            head,
            settings_of(asked, head, criteria, known),
            criteria,
            kept,
            bar,
            budget_s(asked),
            told=_noise_text(known, head, criteria),
        )
        try:
            found = gate(task)
        except KeyboardInterrupt:  # before the first round, or while a session is written
            raise _interrupted(asked, kept) from None
    try:
        tell(found.comparison, criteria, unsure, _names(asked), wanted)
    except DlprofError:
        if not found.interrupted:
            raise
    finally:
        with contextlib.suppress(OSError):  # a full or closed stderr is no result of the gate
            typer.echo(f"sessions: {' '.join(map(str, kept.written()))}", err=True)
    if found.interrupted:
        raise _interrupted(asked, kept)


def _check(asked: Asked) -> None:
    if (asked.base_python is None) != (asked.head_python is None):
        raise UsageError("name both interpreters: --base-python and --head-python")
    if asked.baseline is not None and asked.base_python:
        raise UsageError("--baseline is BASE: name HEAD's interpreter with --python")
    if asked.base_python and asked.python:
        raise UsageError(
            "--python goes with --baseline: name --base-python and --head-python alone"
        )
    if asked.budget is not None and not math.isfinite(asked.budget):
        raise UsageError(f"--budget must be a number of seconds, not {asked.budget}")


def sweep_of(scenario: Scenario, path: Path, given: Given, python: str | None) -> Sweep:
    """What the scenario comes to in one interpreter. Raises :class:`UsageError`."""
    found = prepared(scenario, path, given, options.interpreter(python), may_install=True)
    check_count(count(found), meant=False)
    return found


def _side(scenario: Scenario, path: Path, given: Given, python: str | None) -> Sweep:
    """As :func:`sweep_of`, recorded as what was typed."""
    found = sweep_of(scenario, path, given, python)
    command = typed(("gate", *found.request.command[1:]))
    return replace(found, request=replace(found.request, command=command))


def settings_of(
    asked: Asked, head: Sweep, criteria: Criteria, found: noise.Noise | None
) -> Settings:
    floors = criteria.floors
    rules = head.request.scenario.floors if head.request.scenario else ()
    own = own_floors(rules, cases_of(head), floors)
    if found is not None:
        own = noise.raised(found, cases_of(head), floors, own)
    block = BLOCK if asked.baseline is None else None
    return Settings(floors=floors, own_floors=own, block=block)


def _noise_text(found: noise.Noise | None, head: Sweep, criteria: Criteria) -> tuple[str, ...]:
    return () if found is None else tuple(noise.said(found, cases_of(head), criteria.floors))


def budget_s(asked: Asked) -> float:
    return BUDGET_S if asked.budget is None else asked.budget


def _names(asked: Asked) -> Names:
    if asked.baseline is not None:
        return Names(str(asked.baseline), options.interpreter(asked.python))
    return Names(str(asked.base_python), str(asked.head_python))


def _interrupted(asked: Asked, kept: Kept) -> Interrupted:
    files = (asked.baseline or kept.path("base"), kept.path("head"))
    names = " ".join(shlex.quote(str(path)) for path in files)
    return Interrupted(f"stopped; see what is there with: dlprof compare {names}")
