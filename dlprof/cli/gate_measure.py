"""What ``dlprof gate`` measures, and how: two interpreters in turns."""

from __future__ import annotations

import contextlib
import shlex
from dataclasses import replace
from pathlib import Path

from dlprof.cli.comparison import refuse, tell
from dlprof.cli.measure import typed
from dlprof.cli.options import Given
from dlprof.cli.outputs import Outputs
from dlprof.cli.run import inspected
from dlprof.cli.streams import complain
from dlprof.compare.comparison import REGRESSION
from dlprof.compare.gate import Kept, Task, cases_of, gate, has_large_arrays, kept_in
from dlprof.compare.times import Settings
from dlprof.compare.verdicts import SCALES
from dlprof.errors import BadInterpreter, Interrupted, Regression, Unmeasured, Unsure, UsageError
from dlprof.measuring.scenario import Scenario, of_pair, read
from dlprof.measuring.sweep import Sweep, sweep
from dlprof.protocol.messages import DIAGNOSIS
from dlprof.runner import options
from dlprof.runner.axes import NO_TIMES, simulated_in
from dlprof.runner.catalog import in_one_place
from dlprof.runner.option import value_of
from dlprof.runner.progress import Bar
from dlprof.runner.quantity import duration_text

CASE_S, LEAST_BUDGET_S = 20.0, 120.0
"""The time for each conversion, and for all of few."""
OF_SCENARIO = [one.key for one in (*options.AXES, options.TIMEOUT, options.SEED, options.PROBES)]
"""What the command line may say instead of the scenario."""


def measure(
    first: str, second: str | None, given: Given, settings: Settings, unsure: int, outputs: Outputs
) -> None:
    """Measure both sides, report, and raise what the exit code says.

    ``unsure`` is the exit code of a doubt.
    """
    base_python, head_python = given.raw["base_python"], given.raw["head_python"]
    try:
        scenario = read(Path(first)) if second is None else of_pair(first, second)
        base = sweep_of(scenario, given, base_python, "--base-python")
        head = sweep_of(scenario, given, head_python, "--head-python")
        cases = [case for side in (base, head) for case in cases_of(side)]
    except (Unsure, Unmeasured, BadInterpreter) as error:
        # What cannot be compared is unsure, and --unsure says what becomes of that; never a pass.
        fails = unsure == REGRESSION and isinstance(error, Unsure)
        refused = Regression(str(error)) if fails else error
        refuse(outputs, refused)
        raise refused from None
    _check_looked_for(settings, head)
    budget_s = given.values.get("budget", max(LEAST_BUDGET_S, CASE_S * len(cases_of(head))))
    kept = kept_in(given.output)
    left = shlex.join(str(kept.path(name)) for name in ("base", "head"))
    stopped = f"stopped; see what is there with: dlprof compare {left}"
    measured = {name for case in cases for name in case.pair}
    bar = Bar()
    task = Task(
        *(base, head, settings, kept, bar, budget_s, _texts(head)),
        patient="budget" not in given.values,
        in_one_place=tuple(
            one for one in in_one_place(base.catalog, head.catalog) if one in measured
        ),
    )
    if budget_s is not None:
        also = ", and the diagnosis as long" if head.request.settings.diagnose else ""
        complain(f"dlprof: the rounds take up to {duration_text(budget_s)}{also}.")
    with bar:
        try:
            found = gate(task)
        except KeyboardInterrupt:  # before the first round, or while a session is written
            raise Interrupted(stopped) from None
    names = (str(base_python), str(head_python))
    try:
        tell(found.comparison, unsure, names, outputs, stopped=found.interrupted)
    finally:
        _say_kept(kept)
    if found.interrupted:
        raise Interrupted(stopped)


def sweep_of(scenario: Scenario, given: Given, python: str, flag: str) -> Sweep:
    """Return what the scenario comes to in one interpreter. Raises :class:`UsageError`."""
    if scenario.problem.step:
        raise UsageError(
            f"{scenario.file} has steps, which take no turns: measure it twice with dlprof run, "
            "and compare the sessions"
        )
    values = {key: given.values[key] for key in OF_SCENARIO if key in given.values}
    values["python"] = value_of(options.PYTHON, python, flag)
    if simulated_in({**scenario.options, **values}.get("devices", ())):
        raise UsageError(f"a gate compares {NO_TIMES}: use dlprof run")
    found = sweep(scenario, values, inspected)
    command = typed(("gate", *found.request.command[1:]))
    settings = replace(found.request.settings, survey=False)  # it takes no times
    return replace(found, request=replace(found.request, command=command, settings=settings))


def _say_kept(kept: Kept) -> None:
    with contextlib.suppress(OSError):  # a full or closed stderr is no result of the run
        complain(f"sessions: {' '.join(map(str, kept.written()))}")


def _check_looked_for(settings: Settings, head: Sweep) -> None:
    """Raise :class:`UsageError` for verdicts that nothing will look for."""
    looked_at = set(SCALES) - (set() if head.request.settings.diagnose else set(DIAGNOSIS))
    known = {word for what in looked_at for word in SCALES[what]}
    if missing := sorted(settings.criteria.words - known):
        raise UsageError(
            f"--fail-on {', '.join(missing)} needs the diagnosis, which the scenario leaves out: "
            "write diagnose = true"
        )


def _texts(head: Sweep) -> tuple[str, ...]:
    """Return what the report says of how this gate measures."""
    found = []
    if has_large_arrays(head):
        found.append(
            "Arrays of 1 GiB or more took no turns: one side was measured after the other."
        )
    if not head.request.settings.diagnose:
        left = sorted(what.replace("_", " ") for what in set(SCALES) & set(DIAGNOSIS))
        found.append(f"Not compared, for lack of a diagnosis: {', '.join(left)}.")
    return tuple(found)
