"""Measure with a progress bar, then show: shared by the verbs that measure."""

from __future__ import annotations

import shlex
from pathlib import Path

import typer

from dlprof import measuring
from dlprof import session as sessions
from dlprof.catalog import Catalog
from dlprof.cli.fail_on import FailOn
from dlprof.cli.matrix_table import show_matrix
from dlprof.cli.progress import Bar
from dlprof.cli.show import Show, show_table
from dlprof.cli.wanted import Wanted
from dlprof.errors import Interrupted, Unsaved
from dlprof.measuring import Measurement, Request
from dlprof.reports.row import Row, check_measured, row_of


def measure(
    request: Request,
    catalog: Catalog,
    output: Path | None,
    wanted: Wanted,
    show: Show = show_table,
    resumed: sessions.Session | None = None,
    fail_on: FailOn | None = None,
) -> None:
    """Measure, keep the session, print the report.

    Raises :class:`Unmeasured` after the report where no case could be measured,
    :class:`FindingsFailed` where there is a finding that ``fail_on`` does not allow,
    :class:`Interrupted` where the user stopped it, and :class:`Unsaved` where the session could
    not be written in the end.
    """
    wanted.check()
    path = output or measuring.default_path(request.command[0])
    with Bar() as bar:
        measurement = Measurement(request, catalog, path, bar, resumed)
        stopped, unsaved = False, None
        try:
            measurement.run()
        except KeyboardInterrupt:
            stopped = True
        except Unsaved as error:
            unsaved = error
    rows = [row_of(result) for result in measurement.results()]
    _print(measurement, rows, wanted, show)
    if unsaved is not None:
        raise unsaved
    typer.echo(f"session: {path}", err=True)
    if stopped:
        file = shlex.quote(str(path))
        raise Interrupted(f"stopped; finish it with: dlprof run --resume {file}")
    check_measured(rows)
    if fail_on is not None:
        fail_on.check(measurement.header().findings)


def finish(path: Path, output: Path | None, wanted: Wanted, fail_on: FailOn | None) -> None:
    """Finish a session that was stopped."""
    request, session = measuring.resume(path, ("run", "--resume", str(path)))
    catalog = measuring.inspect_interpreter(request.python, request.probe_files)
    show = show_matrix if session.command[:1] == ["matrix"] else show_table
    measure(request, catalog, output or path, wanted, show, session, fail_on)


def _print(measurement: Measurement, rows: list[Row], wanted: Wanted, show: Show) -> None:
    header = measurement.header()
    if not wanted.printed:
        show(header, rows)
    wanted.give(header, measurement.results)
