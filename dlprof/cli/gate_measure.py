"""What ``dlprof gate`` measures, and how: two interpreters in turns, or one and a baseline."""

from __future__ import annotations

import contextlib
import shlex
import sys
from dataclasses import replace
from pathlib import Path

from dlprof.cli.comparison import refuse, tell
from dlprof.cli.files import session as session_named
from dlprof.cli.measure import typed
from dlprof.cli.options import ANY_PYTHON, STRICT, Given
from dlprof.cli.outputs import Outputs
from dlprof.cli.run import inspected
from dlprof.cli.streams import complain
from dlprof.compare import noise
from dlprof.compare.comparison import REGRESSION
from dlprof.compare.criteria import Criteria, own_floors
from dlprof.compare.gate import (
    Kept,
    Task,
    cases_of,
    check_baseline,
    gate,
    has_large_arrays,
    kept_in,
    limits_text,
)
from dlprof.compare.matching import Key
from dlprof.compare.times import Settings
from dlprof.compare.verdicts import SCALES
from dlprof.errors import BadInterpreter, Interrupted, Regression, Unmeasured, Unsure, UsageError
from dlprof.measuring.scenario import Scenario, of_pair, read
from dlprof.measuring.sweep import Sweep, sweep
from dlprof.protocol.messages import DIAGNOSIS
from dlprof.runner import options
from dlprof.runner import session as sessions
from dlprof.runner.axes import NO_TIMES, simulated_in
from dlprof.runner.catalog import in_one_place
from dlprof.runner.floors import Floor, idle
from dlprof.runner.option import value_of
from dlprof.runner.progress import Bar
from dlprof.runner.session import Session
from dlprof.text.clean import clean, listed

CASE_S, LEAST_BUDGET_S = 10.0, 60.0
"""The time for each conversion, and for all of few."""
OF_SCENARIO = [
    one.key
    for one in (*options.AXES, options.TIMEOUT, options.SEED, options.PROBES, options.ALLOCATOR)
]
"""What the command line may say instead of the scenario."""


def measure(
    first: str, second: str | None, given: Given, criteria: Criteria, unsure: int, outputs: Outputs
) -> None:
    """Measure both sides, report, and raise what the exit code says.

    ``unsure`` is the exit code of a doubt.
    """
    raw = given.raw
    known = None if raw["noise"] is None else noise.load(Path(raw["noise"]))
    baseline = None if raw["baseline"] is None else session_named(raw["baseline"])
    head_python = raw["head_python"] or given.values.get("python")
    try:
        scenario = scenario_named(first, second)
        base, head = _sides(scenario, given, baseline, head_python)
        if known is not None:
            noise.check(known, head)
    except (Unsure, Unmeasured, BadInterpreter) as error:
        # What cannot be compared is unsure, and --unsure says what becomes of that; never a pass.
        fails = unsure == REGRESSION and isinstance(error, Unsure)
        refused = Regression(str(error)) if fails else error
        refuse(outputs, refused, Path(first))
        raise refused from None
    _check_looked_for(criteria, head)
    own = floors_of(head, criteria)
    if known is not None:
        own = noise.raised(known, cases_of(head), criteria.floors, own)
    in_turns = baseline is None
    settings = Settings(
        criteria,
        own,
        in_turns,
        across_pythons=given[ANY_PYTHON],
        wide_limit=given[options.WIDE_LIMIT] / 100,
        strict=given[STRICT],
        drifts=None if known is None else noise.drifts(known),
    )
    budget_s = given.values.get("budget", max(LEAST_BUDGET_S, CASE_S * len(cases_of(head))))
    kept = kept_in(given.output)
    told = _texts(head, settings.in_turns)
    if known is not None:
        told += tuple(noise.texts(known, own))
    left = (baseline or kept.path("base"), kept.path("head"))
    stopped = f"stopped; see what is there with: dlprof compare {shlex.join(map(str, left))}"
    bar = Bar()
    task = Task(
        *(base, head, settings, kept, bar, budget_s, told),
        patient="budget" not in given.values,
        in_one_place=_in_one_place(base, head),
    )
    if limits := limits_text(task):
        complain(f"dlprof: {limits}")
    with bar:
        try:
            found = gate(task)
        except KeyboardInterrupt:  # before the first round, or while a session is written
            raise Interrupted(stopped) from None
    names = (str(baseline or raw["base_python"]), str(head_python or sys.executable))
    try:
        tell(found.comparison, unsure, names, outputs, stopped=found.interrupted)
    finally:
        say_kept(kept)
    if found.interrupted:
        raise Interrupted(stopped)


def scenario_named(first: str, second: str | None) -> Scenario:
    """The scenario of a file, or that of a pair of frameworks."""
    return read(Path(first)) if second is None else of_pair(first, second)


def sweep_of(
    scenario: Scenario,
    given: Given,
    python: str | None,
    flag: str = "--python",
    allocator: str | None = None,
) -> Sweep:
    """What the scenario comes to in one interpreter. Raises :class:`UsageError`.

    ``allocator`` is that of the host if neither the command line nor the scenario names one.
    """
    if scenario.problem.step:
        raise UsageError(
            f"{scenario.file} has steps, which take no turns: measure it twice with dlprof run, "
            "and compare the sessions"
        )
    values = {key: given.values[key] for key in OF_SCENARIO if key in given.values}
    key = options.ALLOCATOR.key
    values.setdefault(key, scenario.options.get(key, allocator or given[options.ALLOCATOR]))
    if python is not None:
        values["python"] = value_of(options.PYTHON, python, flag)
    if simulated_in({**scenario.options, **values}.get("devices", ())):
        raise UsageError(f"a gate compares {NO_TIMES}: use dlprof run")
    found = sweep(scenario, values, inspected)
    command = typed(("gate", *found.request.command[1:]))
    settings = replace(found.request.settings, survey=False)  # it takes no times
    return replace(found, request=replace(found.request, command=command, settings=settings))


def floors_of(side: Sweep, criteria: Criteria) -> dict[Key, tuple[Floor, ...]]:
    """The floors of single cases."""
    rules = side.request.scenario.floors if side.request.scenario else ()
    return own_floors(rules, cases_of(side), criteria.floors)


def say_kept(kept: Kept) -> None:
    with contextlib.suppress(OSError):  # a full or closed stderr is no result of the run
        complain(f"sessions: {' '.join(map(str, kept.written()))}")


def _sides(
    scenario: Scenario, given: Given, baseline: Path | None, head_python: str | None
) -> tuple[Sweep | Session, Sweep]:
    """What is to be compared; all that can be refused before anything is measured is."""
    if baseline is not None:
        session = sessions.load(baseline)
        allocator = session.request.settings.allocator or options.SYSTEM
        head = sweep_of(scenario, given, head_python, "--head-python", allocator)
        calibrated = given.raw["noise"] is not None
        check_baseline(session, head, given[ANY_PYTHON], calibrated)
        return session, head
    base = sweep_of(scenario, given, given.raw["base_python"], "--base-python")
    head = sweep_of(scenario, given, head_python, "--head-python")
    for side in (base, head):
        cases_of(side)
    return base, head


def _in_one_place(base: Sweep | Session, head: Sweep) -> tuple[str, ...]:
    """The frameworks that are measured, and that both sides load from the same file."""
    if isinstance(base, Session):
        return ()
    measured = {name for case in cases_of(head) for name in case.pair}
    return tuple(one for one in in_one_place(base.catalog, head.catalog) if one in measured)


def _check_looked_for(criteria: Criteria, head: Sweep) -> None:
    """Raise :class:`UsageError` for verdicts that nothing will look for."""
    looked_at = set(SCALES) - (set() if head.request.settings.diagnose else set(DIAGNOSIS))
    missing = criteria.unlooked(looked_at)
    if missing:
        raise UsageError(
            f"--fail-on {', '.join(missing)} needs the diagnosis, which the scenario leaves out: "
            "write diagnose = true"
        )


def _texts(head: Sweep, in_turns: bool) -> tuple[str, ...]:
    """What the report says of how this gate measures."""
    found = []
    if in_turns and has_large_arrays(head):
        found.append(
            "Arrays of 1 GiB or more took no turns: one side was measured after the other."
        )
    if not head.request.settings.diagnose:
        left = sorted(what.replace("_", " ") for what in set(SCALES) & set(DIAGNOSIS))
        found.append(f"Not compared, for lack of a diagnosis: {', '.join(left)}.")
    scenario = head.request.scenario
    unused = idle(scenario.floors, cases_of(head)) if scenario else []
    if unused:
        named = listed([clean(repr(glob)) for glob in unused])
        found.append(f"No conversion has the floor that the scenario sets for {named}.")
    return tuple(found)
