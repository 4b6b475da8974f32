"""``dlprof trace``."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dlprof.cli.files import session_name
from dlprof.cli.options import Given, takes
from dlprof.plan import options as every
from dlprof.plan.option import Choice, Number, Option, Several, Text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dlprof.cli.outputs import Outputs
    from dlprof.session.trace_file import Trace

BY = Option(
    "by",
    Choice(("line", "function", "pair")),
    "One row for each line, function or pair of frameworks.",
    every.OUTPUT,
    default="line",
    metavar="WHAT",
)
INCLUDE = Option(
    "include",
    Several(commas=True),
    "Take lines of this installed package for the program's own.",
    every.MEASURING,
    metavar="PACKAGE",
)
DEVICE = Option(
    "device",
    Text(),
    "Run the program on a simulated CUDA device: simulated, or simulated:2 for two.",
    every.MEASURING,
    metavar="DEVICE",
)
MAX_OVERHEAD = Option(
    "max_overhead",
    Number(0.0, 100.0, "percent"),
    "Stop counting a function that only makes views if tracing takes more of the time.",
    every.MEASURING,
    metavar="PERCENT",
)
FAIL_ON = Option(
    "fail_on",
    Several(commas=True),
    "Exit code 1 if a line does this that is not allowed: copy, wait or device-crossing.",
    every.FINDINGS,
    metavar="WHAT",
)
JSON = Option(
    "json", Text(), "Write the trace as JSON; - prints it.", every.OUTPUT, metavar="FILE|-"
)
SPEEDSCOPE = Option(
    "speedscope",
    Text(),
    "Write a profile for speedscope.app; - prints it.",
    every.OUTPUT,
    metavar="FILE|-",
)
CHROME = Option(
    "chrome",
    Text(),
    "Write each conversion for chrome://tracing and Perfetto; - prints it.",
    every.OUTPUT,
    metavar="FILE|-",
)
TRACES = (SPEEDSCOPE, CHROME)
"""What is written of a trace and of nothing else."""
OUTPUT = Option("output", Text(), "Keep the trace here.", every.OUTPUT, short="-o", metavar="FILE")
ENDED_BY = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)
"""Signals by which dlprof ends itself if the program ended by them."""


@takes(
    BY,
    INCLUDE,
    DEVICE,
    MAX_OVERHEAD,
    FAIL_ON,
    every.FULL,
    OUTPUT,
    JSON,
    every.HTML,
    every.MARKDOWN,
    *TRACES,
)
def trace(
    program: Annotated[
        list[str], typer.Argument(metavar="SCRIPT [ARGUMENTS]", help="As after python.")
    ],
    *,
    as_module: Annotated[bool, typer.Option("-m", help="Run a module, as python -m does.")] = False,
    given: Given,
) -> None:
    """Run a program and show which of its lines convert arrays, and what that costs.

    The report goes to stderr: stdout is the program's. Example: dlprof trace train.py --epochs 1
    """
    from dlprof.cli.outputs import Outputs
    from dlprof.measuring import trace as tracing
    from dlprof.session import state, trace_file

    values, outputs = given.values, Outputs.of(given.raw)
    words = tracing.checked(values.get("fail_on", ()))
    with_events = any(given.raw[one.key] is not None for one in TRACES)
    asked = tracing.Program(
        tuple(program),
        as_module,
        values.get("include", ()),
        with_events,
        values.get("max_overhead"),
        simulated(values.get("device")),
    )
    path = given.output or state.default_trace()
    found = tracing.trace(asked)
    trace_file.write(path, found)
    state.remember_last(path, is_trace=True)
    show(found, values.get("by", "line"), outputs.full, path)
    write(found, values.get("by", "line"), outputs, path)
    end(found, words)


def simulated(device: str | None) -> int:
    """How many simulated devices. Raises :class:`UsageError` for another device."""
    from dlprof.errors import UsageError
    from dlprof.plan.axes import simulated_in

    count = simulated_in(() if device is None else (device,))
    if device is not None and not count:
        raise UsageError(f"--device {device}: expected simulated; a program chooses real devices")
    return count


def report_trace(path: Path, given: Given) -> None:
    """Print the report of a trace again, or write it in another form."""
    from dlprof.cli.outputs import Outputs
    from dlprof.errors import UsageError
    from dlprof.reports.trace_advice import advice
    from dlprof.reports.trace_document import trace_document
    from dlprof.session import trace_file

    unfit = [name for name in ("fail_on", "history", "csv", "parquet", "junit") if given.raw[name]]
    if unfit:
        raise UsageError(f"--{unfit[0].replace('_', '-')} does not apply to a trace: leave it out")
    outputs, by, found = (
        Outputs.of(given.raw),
        given.values.get("by", "line"),
        trace_file.load(path),
    )
    if not outputs.targets and not outputs.github:
        outputs.print_report(
            trace_document(found, by, outputs.full, session_name(path), advice(found))
        )
    write(found, by, outputs, path)


def write(found: Trace, by: str, outputs: Outputs, path: Path) -> None:
    """The forms that are wanted, with all lines. Raises :class:`UsageError`."""
    if not outputs.targets and not outputs.github:
        return
    from dlprof.cli.outputs import Annotations
    from dlprof.reports import trace_exports
    from dlprof.reports.trace_advice import advice
    from dlprof.reports.trace_document import trace_document
    from dlprof.session import trace_file

    document = trace_document(found, by, True, session_name(path), advice(found))
    texts = {
        "--json": lambda: [trace_file.text(found)],
        "--speedscope": lambda: [trace_exports.speedscope(found)],
        "--chrome": lambda: [trace_exports.chrome(found)],
    }
    outputs.write(document, texts, Annotations())


def show(found: Trace, by: str, full: bool, path: Path) -> None:
    """The report on stderr, in the width and colors that it has."""
    from dlprof.cli.show import complain, width
    from dlprof.reports.document import Level
    from dlprof.reports.terminal import render
    from dlprof.reports.trace_advice import advice
    from dlprof.reports.trace_document import trace_document

    document = trace_document(found, by, full, session_name(path), advice(found))
    level = Level.FULL if full else Level.FIRST
    color = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    complain("\n" + render(document, width(is_error=True), color, level), nl=False)


def end(found: Trace, words: Sequence[str]) -> None:
    """End as the program ended, or with 1 for what ``--fail-on`` names."""
    from dlprof.cli.show import complain
    from dlprof.errors import FindingsFailed
    from dlprof.measuring.trace import faults
    from dlprof.reports.trace_document import short_file

    for word in words:
        lines = [row for row in found.rows if word in faults(row)]
        if lines:
            first = f"{short_file(lines[0].file)}:{lines[0].line}"
            more = f" and {len(lines) - 1} more" if len(lines) > 1 else ""
            raise FindingsFailed(f"--fail-on {word}: {first}{more}")
    if words:
        complain(f"--fail-on {','.join(words)}: passed")
    code = found.exit_code
    if code < 0 and -code in ENDED_BY:
        signal.signal(-code, signal.SIG_DFL) if -code != signal.SIGKILL else None
        os.kill(os.getpid(), -code)
    raise typer.Exit(code if code >= 0 else 128 - code)


trace.context_settings = {"allow_interspersed_args": False}  # type: ignore[attr-defined]
