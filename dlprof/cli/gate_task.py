"""What ``dlprof gate`` and ``dlprof calibrate`` do: read what is meant, measure, report."""

from __future__ import annotations

import contextlib
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import typer

from dlprof.analysis.slower import FAMILY_LEVEL
from dlprof.cli.comparison import tell
from dlprof.cli.comparison_output import refuse
from dlprof.cli.files import are_one, check_distinct, check_no_session
from dlprof.cli.inspection import inspected
from dlprof.cli.measure import typed
from dlprof.cli.options import Given
from dlprof.cli.outputs import Outputs
from dlprof.cli.show import show
from dlprof.compare.criteria import Criteria, own_floors
from dlprof.compare.matching import key
from dlprof.compare.outcome import REGRESSION
from dlprof.compare.sequential import IN_TURNS
from dlprof.compare.times import Settings
from dlprof.compare.verdicts import SCALES
from dlprof.errors import BadInterpreter, Interrupted, Regression, Unmeasured, Unsure, UsageError
from dlprof.gate import noise
from dlprof.gate.gate import Task, check_baseline, gate
from dlprof.gate.kept import NAMES, Kept, kept_in, set_aside
from dlprof.gate.side import cases_of, has_large_arrays
from dlprof.plan import options
from dlprof.plan.floors import REPEATED, Floor, idle
from dlprof.plan.option import COMMAND_LINE, value_of
from dlprof.protocol.messages import DIAGNOSIS
from dlprof.reports.calibration_document import calibration_document
from dlprof.reports.comparison_document import Names
from dlprof.runner.progress import Bar
from dlprof.scenario import expectation
from dlprof.scenario.expectation import TIMED
from dlprof.scenario.model import Scenario
from dlprof.scenario.read import of_pair, read
from dlprof.scenario.request import Sweep, check_count, count, sweep
from dlprof.session import files
from dlprof.session import model as sessions
from dlprof.session.model import Session, is_session
from dlprof.text.clean import clean, listed

BUDGET_S = 300.0
HOW = (
    "name what to compare: a scenario and two interpreters (--base-python, --head-python), "
    "a scenario and a session (--baseline), or two session files"
)


@dataclass(frozen=True)
class Asked:
    """The gate's own part of the command line."""

    first: str
    second: str | None = None
    base_python: str | None = None
    head_python: str | None = None
    baseline: Path | None = None
    python: str | None = None
    budget: float | None = None
    noise: Path | None = None
    output: Path | None = None
    across_pythons: bool = False

    @property
    def measures(self) -> bool:
        return any((self.base_python, self.head_python, self.baseline))

    @property
    def head(self) -> str | None:
        """The interpreter of HEAD; None for this one."""
        return self.python if self.head_python is None else self.head_python

    @property
    def budget_s(self) -> float:
        return BUDGET_S if self.budget is None else self.budget

    def scenario(self) -> tuple[Scenario, Path]:
        """The scenario of a file, or that of a pair of frameworks."""
        if not self.first:
            raise UsageError("the scenario has an empty name")
        if self.second is None:
            path = Path(self.first)
            return read(path), path
        found = of_pair(self.first, self.second)
        return found, found.file


def check_files_only(asked: Asked, given: Given) -> None:
    """Raises :class:`UsageError` for what is no two session files, and for options of a
    measurement beside them.
    """
    named = [asked.first, *([] if asked.second is None else [asked.second])]
    scenarios = [name for name in named if Path(name).suffix == ".toml"]
    if len(named) > 1 and scenarios:
        raise UsageError(f"{scenarios[0]} is a scenario and no session: {HOW}")
    if len(named) == 1 or not any(map(_may_be_a_file, named)):
        raise UsageError(HOW)
    values = {
        **given.named(),
        "--noise": asked.noise,
        "--output": asked.output,
    }
    unfit = [name for name, value in values.items() if value is not None and value is not False]
    if unfit:
        raise UsageError(
            f"two session files are compared as they are: leave {', '.join(unfit)} out"
        )


def _may_be_a_file(name: str) -> bool:
    """Whether it is one, or is named like one; otherwise it is meant for a framework."""
    return not name or name == "-" or bool(Path(name).suffix) or Path(name).exists()


def measure(asked: Asked, given: Given, criteria: Criteria, unsure: int, output: Outputs) -> None:
    """Measure both sides, report, and raise what the exit code says."""
    _check_sides(asked)
    _check_files(asked, output)
    scenario, path = asked.scenario()
    known = None if asked.noise is None else noise.load(asked.noise)
    try:
        base, head = _sides(asked, given, scenario, path)
        if known is not None:
            noise.check(known, head)
    except (Unsure, Unmeasured, BadInterpreter) as error:
        # What cannot be compared is unsure, and --unsure says what becomes of that; never a pass.
        fails = unsure == REGRESSION and isinstance(error, Unsure)
        refused = Regression(str(error)) if fails else error
        refuse(output, refused, None if asked.second is not None else path)
        raise refused from None
    _check_criteria(criteria, scenario, head)
    settings = _settings(asked, head, criteria, known)
    kept = kept_in(asked.output)
    aside = set_aside(kept)
    if aside is not None:
        typer.echo(f"the sessions of an earlier gate are now in {aside}", err=True)
    with Bar() as bar:
        told = _texts(head, settings, known, asked.budget_s)
        task = Task(base, head, settings, criteria, kept, bar, asked.budget_s, told)
        try:
            found = gate(task)
        except KeyboardInterrupt:  # before the first round, or while a session is written
            raise _interrupted(asked, kept) from None
    try:
        names = Names(
            str(asked.baseline or asked.base_python),
            str(asked.head or sys.executable),
        )
        tell(
            found.comparison,
            criteria,
            unsure,
            names,
            output,
            stopped=found.interrupted,
            verb="gate",
        )
    finally:
        _say_kept(kept)
    if found.interrupted:
        raise _interrupted(asked, kept)


def calibrate(asked: Asked, given: Given, criteria: Criteria, output: Path | None) -> None:
    """Calibrate, and keep the file. Raises :class:`Unmeasured` if no case could be measured."""
    budget_s = asked.budget_s
    scenario, path = asked.scenario()
    target = _noise_file(asked, path, output)
    sweep = _sweep(scenario, path, given, asked.python)
    settings = _settings(asked, sweep, criteria, None)
    if not criteria.times:
        raise UsageError("--fail-on names no measure, and nothing else can be calibrated")
    _check_repeated(criteria.floors)
    if not any(settings.floors_of(key(case)) for case in cases_of(sweep)):
        raise UsageError("the scenario judges no times: there is nothing to calibrate")
    kept = kept_in(None)
    with Bar() as bar:
        found = noise.calibrate(Task(sweep, sweep, settings, criteria, kept, bar, budget_s))
    _say_kept(kept)
    if found is None:
        raise Interrupted(
            f"stopped before {noise.LEAST_ROUNDS} rounds, which tell nothing of the noise"
        )
    if not found.noise.cases:
        raise Unmeasured("no case could be measured, so there is nothing to calibrate")
    noise.write(target, found.noise)
    show(calibration_document(found))
    with contextlib.suppress(OSError):
        typer.echo(f"noise file: {target}", err=True)
    if found.interrupted:
        raise Interrupted("stopped; what was measured until then is in the noise file")


def _noise_file(asked: Asked, path: Path, output: Path | None) -> Path:
    if output is None and asked.second is not None:
        raise UsageError("name the noise file with -o: there is no scenario beside which it goes")
    target = output or path.with_suffix(".noise.json")
    files.check_writable(target)
    check_distinct({"the noise file": target, "the scenario": path})
    check_no_session(target)
    return target


def _say_kept(kept: Kept) -> None:
    with contextlib.suppress(OSError):  # a full or closed stderr is no result of the run
        typer.echo(f"sessions: {' '.join(map(str, kept.written()))}", err=True)


def _sides(
    asked: Asked, given: Given, scenario: Scenario, path: Path
) -> tuple[Sweep | Session, Sweep]:
    """What is to be compared; all that can be refused before anything is measured is."""
    if asked.baseline is None:
        base = _sweep(scenario, path, given, asked.base_python, "--base-python")
        head = _sweep(scenario, path, given, asked.head, "--head-python")
        for side in (base, head):
            cases_of(side)
        return base, head
    baseline = sessions.load(asked.baseline)
    head = _sweep(scenario, path, given, asked.head)
    check_baseline(baseline, head, asked.across_pythons)
    return baseline, head


def _sweep(
    scenario: Scenario, path: Path, given: Given, python: str | None, flag: str = "--python"
) -> Sweep:
    """What the scenario comes to in one interpreter. Raises :class:`UsageError`."""
    if scenario.problem.step:
        raise UsageError(
            f"{path} has steps, which take no turns: measure it twice with dlprof sweep, and "
            "compare the sessions"
        )
    values = {key: value for key, value in given.values.items() if key not in ("python", "budget")}
    if python is not None:
        values["python"] = value_of(replace(options.PYTHON, flag=flag), python, COMMAND_LINE)
    found = sweep(scenario, values, inspected)
    check_count(count(found), meant=False)
    command = typed(("gate", *found.request.command[1:]))
    return replace(found, request=replace(found.request, command=command))


def _check_sides(asked: Asked) -> None:
    """Raises :class:`UsageError` for options that do not go together."""
    _check_no_sessions(asked)
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


def _check_no_sessions(asked: Asked) -> None:
    """Raises :class:`UsageError` for session files beside what is to be measured."""
    files = [name for name in (asked.first, asked.second or "") if is_session(Path(name))]
    if not files:
        return
    if asked.second is None and asked.baseline is not None:
        raise UsageError(
            f"{files[0]} is a session and no scenario: two sessions are compared by "
            f"dlprof gate {asked.baseline} {files[0]}"
        )
    named = {
        "--baseline": asked.baseline,
        "--base-python": asked.base_python,
        "--head-python": asked.head_python,
    }
    which = ", ".join(name for name, value in named.items() if value)
    raise UsageError(
        f"{files[0]} is a session, and two sessions are compared as they are: leave {which} out, "
        "or name a scenario"
    )


def _check_files(asked: Asked, output: Outputs) -> None:
    """Raises :class:`UsageError` before anything is written or moved over what is read."""
    inputs = {
        "the scenario": Path(asked.first) if asked.second is None else None,
        "the baseline": asked.baseline,
        "--noise": asked.noise,
    }
    kept = [] if asked.output is None else [Kept(asked.output).path(name) for name in NAMES]
    for what, file in inputs.items():
        for path in kept:
            if file is not None and are_one(file, path):
                raise UsageError(
                    f"{what} is {path}, where -o {asked.output} keeps a session: "
                    "name another folder"
                )
    output.check(inputs, {f"the session {path.name}": path for path in kept})


def _check_criteria(criteria: Criteria, scenario: Scenario, head: Sweep) -> None:
    """Raises :class:`UsageError` for what nothing will look for or measure."""
    looked_at = set(SCALES) - (set() if head.request.settings.diagnose else set(DIAGNOSIS))
    blind = criteria.blind(looked_at)
    if blind:
        need = "needs" if len(blind) == 1 else "need"
        raise UsageError(
            f"--fail-on {', '.join(blind)} {need} the diagnosis, which the scenario leaves out: "
            "write diagnose = true"
        )
    expected = [(text, expectation.parse(text)) for text in scenario.problem.expect]
    timed = [text for text, one in expected if one.absent and one.what in TIMED]
    if timed and not criteria.times:
        raise UsageError(f"the expectation {timed[0]!r} needs timings: add ready to --fail-on")
    _check_repeated(criteria.floors)


def _check_repeated(floors: Sequence[Floor]) -> None:
    """Raises :class:`UsageError` for times of which rounds do not make more."""
    single = sorted({floor.measure for floor in floors} - set(REPEATED))
    if single:
        raise UsageError(
            f"a gate cannot judge {', '.join(single)}, of which a session keeps one value: "
            f"name {' or '.join(REPEATED)}"
        )


def _settings(asked: Asked, head: Sweep, criteria: Criteria, known: noise.Noise | None) -> Settings:
    rules = head.request.scenario.floors if head.request.scenario else ()
    own = own_floors(rules, cases_of(head), criteria.floors)
    if known is not None:
        own = noise.raised(known, cases_of(head), criteria.floors, own)
    in_turns = asked.baseline is None
    level = IN_TURNS.level * IN_TURNS.shares[-1] if in_turns else FAMILY_LEVEL
    return Settings(
        criteria.floors, own, in_turns, across_pythons=asked.across_pythons, level=level
    )


def _texts(
    head: Sweep, settings: Settings, known: noise.Noise | None, budget_s: float
) -> tuple[str, ...]:
    """What the report says of how this gate measures."""
    found = []
    if settings.in_turns and has_large_arrays(head):
        found.append(
            "Arrays of 1 GiB or more took no turns: one side was measured after the other."
        )
    if not head.request.settings.diagnose:
        left = sorted(set(SCALES) & set(DIAGNOSIS))
        found.append(f"Without a diagnosis nothing was compared of: {', '.join(left)}.")
    scenario = head.request.scenario
    unused = idle(scenario.floors, cases_of(head)) if scenario else []
    if unused:
        named = listed([clean(repr(glob)) for glob in unused])
        found.append(f"No conversion has the floor that the scenario sets for {named}.")
    if known is not None:
        found += noise.texts(
            known,
            cases_of(head),
            settings.own_floors,
            (budget_s, head.request.settings.sample_ns),
        )
    return tuple(found)


def _interrupted(asked: Asked, kept: Kept) -> Interrupted:
    files = (asked.baseline or kept.path("base"), kept.path("head"))
    names = " ".join(shlex.quote(str(path)) for path in files)
    return Interrupted(f"stopped; see what is there with: dlprof compare {names}")
