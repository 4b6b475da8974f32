"""``dlprof trace``."""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dlprof.cli.options import Given, takes
from dlprof.cli.streams import color, complain, session_name, width
from dlprof.errors import DlprofError, FindingsFailed, Unsure, UsageError
from dlprof.runner import files, options
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
    options.MEASURING,
    default=False,
    flag="-m",
)
INCLUDE = Option(
    "include",
    Several(commas=True),
    "Count lines of this installed package as the program's own.",
    options.MEASURING,
    metavar="PACKAGE",
)
ADVISE = Option(
    "advise",
    Switch(),
    "Measure the costliest conversions afterwards, in processes of their own.",
    options.MEASURING,
    default=False,
)
DEVICE = replace(
    options.DEVICES,
    flag="--device",
    kind=Text(_simulated),
    help="Run the program on a simulated CUDA device: simulated, or simulated:2 for two.",
    panel=options.MEASURING,
    default=None,
)
FAIL_ON = replace(
    options.FAIL_ON,
    kind=Several(commas=True, join=_faults),
    help="Exit code 1 if a line does this that is not allowed: copy, wait or device-crossing.",
    metavar="WHAT",
)
JSON = replace(options.JSON, help="Write the trace as JSON; - prints it.")
CHROME = Option(
    "chrome",
    Text(),
    "Write each conversion for Perfetto, speedscope or chrome://tracing; - prints it.",
    options.OUTPUT,
    metavar="FILE|-",
)
EXPORT = replace(
    options.EXPORT, help="Write findings for code scanning: sarif.", metavar="sarif FILE|-"
)
OUTPUT = replace(options.SESSION, help="Keep the trace here.")
PYTHON = replace(
    options.PYTHON, help="Run the program in this interpreter; dlprof need not be installed there."
)
FEW = 3
"""Rows that ``--advise`` measures."""


@takes(
    *(AS_MODULE, INCLUDE, ADVISE, DEVICE, PYTHON, FAIL_ON),
    *(options.FULL, OUTPUT, JSON, options.HTML, options.MARKDOWN, CHROME, EXPORT),
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
    from dlprof.cli.outputs import TRACE_EXPORTS, Outputs
    from dlprof.report.terminal import render
    from dlprof.runner import trace as tracing

    outputs, words = Outputs.parse(given.raw, TRACE_EXPORTS), given[FAIL_ON]
    python = given[PYTHON] or sys.executable
    own = [option.name for option in (FAIL_ON, INCLUDE, CHROME, EXPORT, options.FULL, options.HTML)]
    if late := [word for word in program[1:] if word.partition("=")[0] in own]:
        first = f"to use it, write it before {program[0]}"
        complain(f"dlprof: {late[0]} goes to the program; {first}")
    path = given.output or files.default_path(files.TRACE)
    result = tracing.trace(
        program,
        as_module=given[AS_MODULE],
        include=given[INCLUDE],
        events=given[CHROME] is not None,
        simulated=given[DEVICE] or 0,
        python=python,
    )
    with uninterrupted():
        tracing.write(path, result)
        files.remember_last(path, files.LAST_TRACE)
    document = _document(result, outputs.full, path)
    text = render(document, width(is_error=True), color(is_error=True), outputs.full)
    complain(f"\n{text}", nl=False)
    _write(result, outputs, path)
    if given[ADVISE]:
        _advise(result, python)
    end(result, words)


def _advise(trace: Trace, python: str) -> None:
    """Measure the rows to change first, and print what is faster."""
    from dlprof import api
    from dlprof.report.session_document import excerpt
    from dlprof.report.terminal import render
    from dlprof.report.trace_advice import row_place
    from dlprof.report.trace_document import array_options, measurable

    rows = [] if trace.simulated else measurable(trace)[:FEW]
    if not rows:
        complain("dlprof: --advise: no line copies or waits in a way that a run can measure")
    for row in rows:
        array: dict[str, Any] = {f"{name}s": (text,) for name, text in array_options(row).items()}
        complain(f"\n{row_place(row)}, {row.conversion}, measured by itself:\n")
        try:
            session = api.run(row.producer, row.consumer, quick=True, python=python, **array)
        except DlprofError as error:
            complain(f"dlprof: not measured: {error}")
            continue
        document = excerpt(session, row.conversion.removesuffix(")"))
        complain(render(document, width(is_error=True), color(is_error=True)), nl=False)


def report_trace(path: Path, given: Given) -> None:
    """Print the report of a trace again, or write it in another form."""
    from dlprof.cli.outputs import TRACE_EXPORTS, Outputs
    from dlprof.runner import trace as tracing

    unfit = [name for name in ("fail_on", "csv", "junit") if given.raw[name]]
    if unfit:
        raise UsageError(f"--{unfit[0].replace('_', '-')} does not apply to a trace: leave it out")
    outputs, trace = Outputs.parse(given.raw, TRACE_EXPORTS), tracing.load(path)
    if not outputs.targets and not outputs.github:
        outputs.print_report(_document(trace, outputs.full, path))
    _write(trace, outputs, path)


def _document(trace: Trace, full: bool, path: Path) -> Document:
    from dlprof.report.trace_document import trace_document

    return trace_document(trace, full, session_name(path))


def _write(trace: Trace, outputs: Outputs, path: Path) -> None:
    """Write the forms that are wanted, with all lines. Raises :class:`UsageError`."""
    if not outputs.targets and not outputs.github:
        return
    from dlprof.report.exports import sarif
    from dlprof.report.trace_document import chrome
    from dlprof.runner import trace as tracing

    texts = {
        "--json": lambda: tracing.text(trace),
        "--chrome": lambda: chrome(trace),
        "--export sarif": lambda: sarif(trace),
    }
    outputs.write(_document(trace, True, path), texts)


def end(trace: Trace, words: Sequence[str]) -> None:
    """End as the program ended, or with exit code 1 for a fault that ``--fail-on`` names.

    With ``--fail-on``, the success of a program with lost counts becomes exit code 3.
    """
    from dlprof.report.trace_advice import first_places, row_place
    from dlprof.report.trace_document import gaps, unknown_places
    from dlprof.runner.trace import faults

    places = {
        word: [*dict.fromkeys(row_place(row) for row in trace.rows if word in faults(row))]
        for word in words
    }
    if failed := [word for word in words if places[word]]:
        text = "; ".join(f"{word}: {first_places(places[word])}" for word in failed)
        comment = f"# dlprof: allow {', '.join(failed)}"
        raise FindingsFailed(f"--fail-on {text}; a comment '{comment}' accepts a line")
    if words:
        unknown, missing = unknown_places(trace, words), next(gaps(trace), "")
        result = "passed" + (f", but unknown for {first_places(unknown)}" if unknown else "")
        if trace.unseen:
            result += "; forms that dlprof does not see are not checked"
        if missing:
            result = f"unknown, as {missing}"
        if missing and not trace.exit_code:
            raise Unsure(f"--fail-on {','.join(words)}: {result}")
        complain(f"dlprof: --fail-on {','.join(words)}: {result}")
    code = trace.exit_code
    if code < 0:
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    raise typer.Exit(code if code >= 0 else 128 - code)
