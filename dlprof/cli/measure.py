"""Measure with a progress bar, then show: shared by the verbs that measure."""

from __future__ import annotations

import contextlib
import json
import shlex
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import typer

from dlprof import inference
from dlprof.cli.github import no_commands
from dlprof.cli.scenario_report import check_missed, check_unchecked, shown_as
from dlprof.cli.typed import typed
from dlprof.cli.wanted import Wanted
from dlprof.errors import Interrupted, Unsaved
from dlprof.measuring.measure import hand_over, run, session_path
from dlprof.plan.catalog import Catalog
from dlprof.plan.request import Request
from dlprof.reports.result_row import rows_of
from dlprof.reports.row import Row, check_measured
from dlprof.rules.fail_on import FailOn
from dlprof.runner import resume
from dlprof.runner.inspection import inspect_interpreter
from dlprof.runner.journal import Journal
from dlprof.runner.measurement import Measurement
from dlprof.runner.progress import Bar

OWN_CODE = "code:"
"""How the source of probes begins that are made of a user's own text."""


def measure(
    request: Request,
    catalog: Catalog,
    output: Path | None,
    wanted: Wanted,
    resumed: Journal | None = None,
    fail_on: FailOn | None = None,
) -> None:
    """Measure, keep the session, print the report.

    Raises :class:`Unmeasured` after the report where no case could be measured,
    :class:`FindingsFailed` where there is a finding that ``fail_on`` does not allow,
    :class:`FindingsUnknown` where nothing looked for what it names (:class:`UsageError` before
    anything is measured, if that is known then),
    :class:`Interrupted` where the user stopped it, and :class:`Unsaved` where the session could
    not be written in the end. Expectations of a scenario are checked last.
    """
    wanted.check(**{"the session": output}, **inputs_of(request))
    request = replace(request, command=typed(request.command))
    if fail_on is not None and not request.settings.diagnose:
        _check_asked(fail_on, request, resumed)
    path = session_path(output, request.command[0])
    bar = Bar()
    with closing(Measurement(request, catalog, path, bar, resumed)) as measurement:
        stopped, unsaved = False, None
        try:
            with bar:
                run(measurement)
            hand_over(measurement, output)
        except KeyboardInterrupt as stop:
            if stop.args:  # before there was a session
                raise
            stopped = True
        except Unsaved as error:
            unsaved = error
        _tell(measurement, wanted, fail_on, stopped, unsaved)


def _tell(
    measurement: Measurement,
    wanted: Wanted,
    fail_on: FailOn | None,
    stopped: bool,
    unsaved: Unsaved | None,
) -> None:
    """Print what was measured, and raise what the exit code says."""
    rows = rows_of(measurement.results())
    _print(measurement, rows, wanted, fail_on)
    if measurement.saved:
        with contextlib.suppress(OSError):  # a full or closed stderr is no result of the run
            typer.echo(f"session: {measurement.path}", err=True)
    if unsaved is not None:
        raise unsaved
    if stopped:
        raise Interrupted(_how_to_finish(measurement))
    check_measured(rows)
    header = measurement.header()
    if fail_on is not None:
        fail_on.check(header.findings)
    check_missed(header)  # what is known to be wrong comes before what nobody looked for
    if fail_on is not None:
        fail_on.check_looked_for(measurement.results())
    check_unchecked(header)


def inputs_of(request: Request) -> dict[str, Path | None]:
    """The files that are measured from, by what they are."""
    scenario = request.scenario.file if request.scenario is not None else ""
    found: dict[str, Path | None] = {"the scenario": Path(scenario) if scenario else None}
    for number, source in enumerate(request.probe_files, start=1):
        if source.startswith(inference.PREFIX):
            model = json.loads(source.removeprefix(inference.PREFIX))["model"]
            found[f"the model of step {number}"] = Path(model) if model else None
        elif not source.startswith(OWN_CODE):
            found[f"the probe file {number}"] = Path(source)
    return found


def _check_asked(fail_on: FailOn, request: Request, resumed: Journal | None) -> None:
    """That what ``--fail-on`` names can be found without a diagnosis; of severities what cannot."""
    words = request.command
    if resumed is not None:
        fail_on.check_asked("the run that is finished here", "measure anew with --diagnose")
    elif "--no-diagnose" in words:
        fail_on.check_asked("--no-diagnose", "take it away, or write --diagnose")
    elif "--quick" in words:
        fail_on.check_asked("--quick")
    else:
        fail_on.check_asked("the scenario" if words[:1] == ("sweep",) else f"dlprof {words[0]}")
    if fail_on.unlooked():
        with contextlib.suppress(OSError):
            typer.echo(f"dlprof: {fail_on.unlooked()}", err=True)


def _how_to_finish(measurement: Measurement) -> str:
    if not measurement.saved:
        return f"stopped before anything was measured; {measurement.path} is as it was"
    file = shlex.quote(str(measurement.path))
    return f"stopped; finish it with: dlprof run --resume {file}"


def finish(path: Path, output: Path | None, wanted: Wanted, fail_on: FailOn | None) -> None:
    """Finish a session that was stopped."""
    with closing(resume.reopen(path, output)) as journal:
        request = resume.request_of(journal, ("run", "--resume", str(path)))
        catalog = inspect_interpreter(request.python, request.probe_files)
        measure(request, catalog, output or path, wanted, journal, fail_on)


def _print(
    measurement: Measurement,
    rows: list[Row],
    wanted: Wanted,
    fail_on: FailOn | None,
) -> None:
    header = measurement.header()
    if not wanted.printed:
        with no_commands(wanted.github):
            shown_as(header)(header, rows)
    wanted.give(header, measurement.results, fail_on)
