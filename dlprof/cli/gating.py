"""What ``dlprof gate`` does where it measures: read what is meant, measure, tell."""

from __future__ import annotations

import contextlib
import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import typer

from dlprof.cli import options
from dlprof.cli.comparing import tell
from dlprof.cli.comparison_wanted import ComparisonWanted
from dlprof.cli.distinct import are_one
from dlprof.cli.sweeping import Given, check_count, count, prepared
from dlprof.cli.typed import typed
from dlprof.compare.criteria import Criteria, own_floors
from dlprof.compare.decision import FAMILY_LEVEL
from dlprof.compare.outcome import REGRESSION
from dlprof.compare.sequential import IN_TURNS
from dlprof.compare.times import Settings
from dlprof.compare.verdicts import SCALES
from dlprof.errors import (
    BadInterpreter,
    Interrupted,
    Regression,
    Unmeasured,
    Unsure,
    UsageError,
)
from dlprof.gate import noise
from dlprof.gate.baseline import check
from dlprof.gate.cases import cases_of, without_turns
from dlprof.gate.kept import NAMES, Kept, kept_in, set_aside
from dlprof.gate.measure import Task, gate
from dlprof.measuring.progress import Bar
from dlprof.plan.floors import REPEATED, Floor, idle
from dlprof.reports.comparison import Names
from dlprof.scenario import expectation
from dlprof.scenario.expectation import TIMED
from dlprof.scenario.model import Scenario
from dlprof.scenario.read import read, validated
from dlprof.scenario.request import Sweep
from dlprof.session import model as sessions
from dlprof.session.merge import DIAGNOSIS
from dlprof.session.model import Session, is_session
from dlprof.text.clean import clean
from dlprof.text.lists import listed

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
    across_pythons: bool = False

    @property
    def measures(self) -> bool:
        return any((self.base_python, self.head_python, self.baseline))

    @property
    def head(self) -> str | None:
        """The interpreter of HEAD; None for this one."""
        return self.python if self.head_python is None else self.head_python

    def scenario(self) -> tuple[Scenario, Path]:
        """The scenario of a file, or that of a pair of frameworks."""
        if not self.first:
            raise UsageError("the scenario has an empty name")
        if self.second is None:
            path = Path(self.first)
            return read(path), path
        pair = f"{self.first}->{self.second}"
        content = {"title": pair, "question": f"Is {pair} slower?", "pairs": [pair]}
        return validated(content, "the command line"), Path(pair)


def check_files_only(asked: Asked, given: Given) -> None:
    """Raises :class:`UsageError` for what is no two session files, and for options of a
    measurement beside them.
    """
    names = [asked.first, *([] if asked.second is None else [asked.second])]
    scenarios = [name for name in names if Path(name).suffix == ".toml"]
    if len(names) > 1 and scenarios:
        raise UsageError(f"{scenarios[0]} is a scenario and no session: {HOW}")
    if len(names) == 1 or not any(map(_may_be_a_file, names)):
        raise UsageError(HOW)
    named = {
        **given.named(),
        "--python": asked.python,
        "--budget": asked.budget,
        "--noise": asked.noise,
        "--output": asked.output,
    }
    unfit = [name for name, value in named.items() if value is not None and value is not False]
    if unfit:
        raise UsageError(
            f"two session files are compared as they are: leave {', '.join(unfit)} out"
        )


def _may_be_a_file(name: str) -> bool:
    """Whether it is one, or is called like one; else it is meant for a framework."""
    return not name or name == "-" or bool(Path(name).suffix) or Path(name).exists()


def check_not_both(asked: Asked) -> None:
    """Raises :class:`UsageError` for two session files beside what is to be measured."""
    files = [name for name in (asked.first, asked.second or "") if is_session(Path(name))]
    named = {
        "--baseline": asked.baseline,
        "--base-python": asked.base_python,
        "--head-python": asked.head_python,
    }
    if not files:
        return
    if asked.second is None and asked.baseline is not None:
        raise UsageError(
            f"{files[0]} is a session and no scenario: two sessions are compared by "
            f"dlprof gate {asked.baseline} {files[0]}"
        )
    which = ", ".join(name for name, value in named.items() if value)
    raise UsageError(
        f"{files[0]} is a session, and two sessions are compared as they are: leave {which} out, "
        "or name a scenario"
    )


def measure(
    asked: Asked, given: Given, criteria: Criteria, unsure: int, wanted: ComparisonWanted
) -> None:
    """Measure both sides, tell, and raise what the exit code says."""
    check_not_both(asked)
    _check(asked)
    _check_files(asked, wanted)
    scenario, path = asked.scenario()
    known = None if asked.noise is None else noise.load(asked.noise)
    try:
        base, head = _sides(asked, given, scenario, path)
        if known is not None:
            noise.check(known, head)
    except (Unsure, Unmeasured, BadInterpreter) as error:
        # What cannot be compared is unsure, and --unsure says what becomes of that; never a pass.
        fails = unsure == REGRESSION and isinstance(error, Unsure)
        told = Regression(str(error)) if fails else error
        wanted.refuse(told, None if asked.second is not None else path)
        raise told from None
    _check_looked_for(criteria, head)
    _check_expected(criteria, scenario)
    check_repeated(criteria.floors)
    kept = kept_in(asked.output)
    aside = set_aside(kept)
    if aside is not None:
        typer.echo(f"the sessions of an earlier gate are now in {aside}", err=True)
    with Bar() as bar:
        settings = settings_of(asked, head, criteria, known)
        task = Task(
            base,
            head,
            settings,
            criteria,
            kept,
            bar,
            budget_s(asked),
            told=(
                *(without_turns(head) if settings.in_turns else ()),
                *_undiagnosed(head),
                *_idle_floors(head),
                *_noise_text(known, head, settings, budget_s(asked)),
            ),
        )
        try:
            found = gate(task)
        except KeyboardInterrupt:  # before the first round, or while a session is written
            raise _interrupted(asked, kept) from None
    try:
        names = _names(asked)
        tell(found.comparison, criteria, unsure, names, wanted, stopped=found.interrupted)
    finally:
        with contextlib.suppress(OSError):  # a full or closed stderr is no result of the gate
            typer.echo(f"sessions: {' '.join(map(str, kept.written()))}", err=True)
    if found.interrupted:
        raise _interrupted(asked, kept)


def _check_expected(criteria: Criteria, scenario: Scenario) -> None:
    """Raises :class:`UsageError` for what is expected not to be found, takes times to tell, and
    has none: it would never be checked.
    """
    expected = [(text, expectation.parse(text)) for text in scenario.expect]
    timed = [text for text, one in expected if one.absent and one.what in TIMED]
    if timed and not criteria.times:
        raise UsageError(
            f"the scenario expects {timed[0]!r}, which takes times to tell, and --fail-on has none "
            "judged: add ready to it"
        )


def _sides(
    asked: Asked, given: Given, scenario: Scenario, path: Path
) -> tuple[Sweep | Session, Sweep]:
    """What is to be compared; all that can be refused before anything is measured is."""
    if asked.baseline is None:
        sides = [_side(scenario, path, given, p) for p in (asked.base_python, asked.head)]
        for side in sides:
            cases_of(side)
        return sides[0], sides[1]
    baseline = sessions.load(asked.baseline)
    head = _side(scenario, path, given, asked.head)
    check(baseline, head, asked.across_pythons)
    return baseline, head


def _check_looked_for(criteria: Criteria, head: Sweep) -> None:
    """Raises :class:`UsageError` for verdicts that nothing will look for."""
    looked_at = set(SCALES) - (set() if head.request.settings.diagnose else set(DIAGNOSIS))
    blind = criteria.blind(looked_at)
    if blind:
        need = "needs" if len(blind) == 1 else "need"
        raise UsageError(
            f"--fail-on {', '.join(blind)} {need} the diagnosis, which the scenario leaves out: "
            "write diagnose = true"
        )


def check_repeated(floors: Sequence[Floor]) -> None:
    """Raises :class:`UsageError` for times of which rounds do not make more: they would be UNSURE
    whatever the time.
    """
    single = sorted({floor.measure for floor in floors} - set(REPEATED))
    if single:
        raise UsageError(
            f"a gate cannot judge {', '.join(single)}, of which a session keeps one value: "
            f"name {' or '.join(REPEATED)}"
        )


def _check(asked: Asked) -> None:
    if asked.baseline is not None and asked.base_python is not None:
        raise UsageError(
            "--baseline and --base-python exclude each other: BASE is a session or an interpreter"
        )
    if asked.baseline is not None and asked.python is not None and asked.head_python is not None:
        raise UsageError("--python and --head-python both name the interpreter of HEAD: leave one")
    if asked.baseline is None and None in (asked.base_python, asked.head_python):
        raise UsageError("name both interpreters: --base-python and --head-python")
    if asked.baseline is None and asked.python is not None:
        raise UsageError(
            "--python goes with --baseline: name --base-python and --head-python alone"
        )
    check_budget(asked)


def check_budget(asked: Asked) -> None:
    """Raises :class:`UsageError` for what is no number of seconds."""
    if asked.budget is not None and not math.isfinite(asked.budget):
        raise UsageError(f"--budget must be a number of seconds, not {asked.budget}")


def _check_files(asked: Asked, wanted: ComparisonWanted) -> None:
    """Raises :class:`UsageError` before anything is written or moved over what is read."""
    inputs = {
        "the scenario": Path(asked.first) if asked.second is None else None,
        "the baseline": asked.baseline,
        "--noise": asked.noise,
    }
    kept = {} if asked.output is None else {name: Kept(asked.output).path(name) for name in NAMES}
    for what, file in inputs.items():
        for path in kept.values():
            if file is not None and are_one(file, path):
                raise UsageError(
                    f"{what} is {path}, where -o {asked.output} keeps a session: "
                    "name another folder"
                )
    wanted.check(**inputs, **{f"the session {path.name}": path for path in kept.values()})


def sweep_of(scenario: Scenario, path: Path, given: Given, python: str | None) -> Sweep:
    """What the scenario comes to in one interpreter. Raises :class:`UsageError`."""
    if scenario.step:
        raise UsageError(
            f"{path} has steps, which take no turns: measure it twice with dlprof sweep, and "
            "compare the sessions"
        )
    found = prepared(scenario, path, given, options.interpreter(python))
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
    across = asked.across_pythons
    in_turns = asked.baseline is None
    level = IN_TURNS.level * IN_TURNS.shares()[-1] if in_turns else FAMILY_LEVEL
    return Settings(floors, own, in_turns=in_turns, across_pythons=across, level=level)


def _undiagnosed(head: Sweep) -> tuple[str, ...]:
    if head.request.settings.diagnose:
        return ()
    left = sorted(set(SCALES) & set(DIAGNOSIS))
    return (f"Without a diagnosis nothing was compared of: {', '.join(left)}.",)


def _idle_floors(head: Sweep) -> tuple[str, ...]:
    """Floors of the scenario that are nobody's: a glob with a fault, or what is not installed."""
    scenario = head.request.scenario
    globs = idle(scenario.floors, cases_of(head)) if scenario else []
    named = listed([clean(repr(glob)) for glob in globs])
    return (f"No conversion has the floor that the scenario sets for {named}.",) if globs else ()


def _noise_text(
    found: noise.Noise | None, head: Sweep, settings: Settings, limit_s: float
) -> tuple[str, ...]:
    if found is None:
        return ()
    terms = noise.Terms(settings.in_turns, limit_s, head.request.settings.sample_ns)
    return tuple(noise.said(found, cases_of(head), settings.own_floors, terms))


def budget_s(asked: Asked) -> float:
    return BUDGET_S if asked.budget is None else asked.budget


def _names(asked: Asked) -> Names:
    if asked.baseline is not None:
        return Names(str(asked.baseline), options.interpreter(asked.head))
    return Names(str(asked.base_python), str(asked.head_python))


def _interrupted(asked: Asked, kept: Kept) -> Interrupted:
    files = (asked.baseline or kept.path("base"), kept.path("head"))
    names = " ".join(shlex.quote(str(path)) for path in files)
    return Interrupted(f"stopped; see what is there with: dlprof compare {names}")
