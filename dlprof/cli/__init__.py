"""The command line: an explicit list of verbs, and the only place where errors are caught."""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
from typing import NoReturn

import typer

from dlprof.errors import DlprofError
from dlprof.interrupts import stop_in_order

LONGEST_LINE = 2000

app = typer.Typer(
    name="dlprof",
    help="Measure conversions of tensors between frameworks: what they cost, view or copy.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def _options(
    version: bool = typer.Option(False, "--version", help="Print the version and exit."),
) -> None:
    if version:
        from dlprof import __version__

        typer.echo(f"dlprof {__version__}")
        raise typer.Exit


def _register() -> None:
    from dlprof.cli import (
        compare,
        explain,
        gate,
        matrix,
        paths,
        probes,
        report,
        repro,
        run,
        selftest,
        steps,
        sweep,
        ticket,
        time,
    )

    verbs = (
        run.run,
        time.time,
        sweep.sweep,
        steps.steps,
        matrix.matrix,
        paths.paths,
        probes.probes,
        report.report,
        ticket.ticket,
        repro.repro,
        compare.compare,
        gate.gate,
        explain.explain,
        selftest.selftest,
    )
    for verb in verbs:
        app.command()(verb)


def main() -> NoReturn:
    """Run the command line; exit codes as in :mod:`dlprof.errors`."""
    _settle_in()
    stop_in_order()
    _register()
    try:
        app()
    except DlprofError as error:
        with contextlib.suppress(OSError):  # the terminal may be gone
            print(f"dlprof: {_shown(error)}", file=sys.stderr)  # noqa: T201 - the message to the user
        sys.exit(error.exit_code)
    sys.exit(0)


def _shown(error: DlprofError) -> str:
    """The message, in which names of files and words of frameworks may stand."""
    from dlprof.clean import clean

    return "\n".join(clean(line, LONGEST_LINE) for line in str(error).split("\n"))


def _settle_in() -> None:
    """Make the surroundings usable.

    A standard stream that the caller closed is opened: else the next pipe would get its number.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115, PTH123 - as long as the process
    for name in ("COLUMNS", "LINES"):  # rich reads them with int()
        if not re.fullmatch(r"[0-9]{1,4}", os.environ.get(name, "0")):
            del os.environ[name]
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # not every encoding has an arrow
