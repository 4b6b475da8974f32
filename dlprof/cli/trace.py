"""``dlprof trace``."""

from __future__ import annotations

import os
import resource
import signal
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dlprof.cli.options import Given, takes
from dlprof.cli.streams import color, complain, session_name, width
from dlprof.errors import FindingsFailed, UsageError
from dlprof.runner import options as every
from dlprof.runner import state
from dlprof.runner.axes import simulated_in
from dlprof.runner.interrupts import uninterrupted
from dlprof.runner.options import Option, Several, Switch, Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dlprof.cli.outputs import Outputs
    from dlprof.report.document import Document
    from dlprof.runner.trace import Trace


def _simulated(word: str) -> int:
    if count := simulated_in((word,)):
        return count
    raise UsageError("expected simulated; a program chooses real devices")


def _faults(words: Iterable[str]) -> tuple[str, ...]:
    from dlprof.runner.trace import checked

    return checked(words)


AS_MODULE = Option(
    "as_module",
    Switch(),
    "Run a module, as python -m does.",
    every.MEASURING,
    default=False,
    flag="-m",
)
INCLUDE = Option(
    "include",
    Several(commas=True),
    "Count lines of this installed package as the program's own.",
    every.MEASURING,
    metavar="PACKAGE",
)
DEVICE = replace(
    every.DEVICES,
    flag="--device",
    kind=Text(_simulated),
    help="Run the program on a simulated CUDA device: simulated, or simulated:2 for two.",
    panel=every.MEASURING,
    default=None,
)
FAIL_ON = replace(
    every.FAIL_ON,
    kind=Several(commas=True, join=_faults),
    help="Exit code 1 if a line does this that is not allowed: copy, wait or device-crossing.",
    metavar="WHAT",
)
JSON = replace(every.JSON, help="Write the trace as JSON; - prints it.")
CHROME = Option(
    "chrome",
    Text(),
    "Write each conversion for Perfetto, speedscope or chrome://tracing; - prints it.",
    every.OUTPUT,
    metavar="FILE|-",
)
OUTPUT = replace(every.SESSION, help="Keep the trace here.")
FEW = 3
"""Lines that the last message names; the table has all."""


@takes(
    *(AS_MODULE, INCLUDE, DEVICE, FAIL_ON),
    *(every.FULL, OUTPUT, JSON, every.HTML, every.MARKDOWN, CHROME),
)
def trace(
    program: Annotated[
        list[str], typer.Argument(metavar="SCRIPT [ARGUMENTS]", help="As after python.")
    ],
    *,
    given: Given,
) -> None:
    """Run a program and show which of its lines convert arrays, and what that costs.

    The report goes to stderr: stdout is the program's. Example: dlprof trace train.py --epochs 1
    """
    from dlprof.cli.outputs import Outputs
    from dlprof.report.terminal import render
    from dlprof.runner import trace as tracing

    outputs, words = Outputs.parse(given.raw), given[FAIL_ON]
    command = tracing.Program(
        tuple(program),
        as_module=given[AS_MODULE],
        include=given[INCLUDE],
        events=given[CHROME] is not None,
        simulated=given[DEVICE] or 0,
    )
    path = given.output or state.default_path(state.TRACE)
    found = tracing.trace(command)
    with uninterrupted():
        tracing.write(path, found)
        state.remember_last(path)
    document = _document(found, outputs.full, path)
    text = render(document, width(is_error=True), color(is_error=True), outputs.full)
    complain(f"\n{text}", nl=False)
    _write(found, outputs, path)
    end(found, words)


def report_trace(path: Path, given: Given) -> None:
    """Print the report of a trace again, or write it in another form."""
    from dlprof.cli.outputs import Outputs
    from dlprof.runner import trace as tracing

    unfit = [name for name in ("fail_on", "csv", "parquet", "junit") if given.raw[name]]
    if unfit:
        raise UsageError(f"--{unfit[0].replace('_', '-')} does not apply to a trace: leave it out")
    outputs, found = Outputs.parse(given.raw), tracing.load(path)
    if not outputs.targets and not outputs.github:
        outputs.print_report(_document(found, outputs.full, path))
    _write(found, outputs, path)


def _document(found: Trace, full: bool, path: Path) -> Document:
    from dlprof.report.trace_document import trace_document

    return trace_document(found, full, session_name(path))


def _write(found: Trace, outputs: Outputs, path: Path) -> None:
    """Write the forms that are wanted, with all lines. Raises :class:`UsageError`."""
    if not outputs.targets and not outputs.github:
        return
    from dlprof.report.trace_document import chrome
    from dlprof.runner import trace as tracing

    texts = {
        "--json": lambda: [tracing.text(found)],
        "--chrome": lambda: [chrome(found)],
    }
    outputs.write(_document(found, True, path), texts)


def end(found: Trace, words: Sequence[str]) -> None:
    """End as the program ended, or with exit code 1 for a fault that ``--fail-on`` names."""
    from dlprof.report.trace_document import cut_short, place_of
    from dlprof.runner.trace import doubts, faults

    places = {word: [place_of(row) for row in found.rows if word in faults(row)] for word in words}
    if failed := [word for word in words if places[word]]:
        text = "; ".join(f"{word}: {_few(places[word])}" for word in failed)
        comment = f"# dlprof: allow {', '.join(failed)}"
        raise FindingsFailed(f"--fail-on {text}; a comment '{comment}' accepts a line")
    if words:
        gaps = [*cut_short(found), *(f"not all is traced of {one}" for one in found.troubles)]
        unknown = [place_of(row) for row in found.rows if {*words} & {*doubts(row)}]
        result = "passed" + (f", but unknown for {_few(unknown)}" if unknown else "")
        if gaps or not found.processes:
            result = f"unknown, as {gaps[0] if gaps else 'no process wrote its conversions'}"
        complain(f"dlprof: --fail-on {','.join(words)}: {result}")
    code = found.exit_code
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the program has written one
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    raise typer.Exit(code if code >= 0 else 128 - code)


def _few(places: Sequence[str]) -> str:
    places = list(dict.fromkeys(places))
    more = f" and {len(places) - FEW} more" if len(places) > FEW else ""
    return f"{', '.join(places[:FEW])}{more}"
