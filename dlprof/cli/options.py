"""Options that several verbs share, and what becomes of them."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from dlprof.axes import parse_dtype, parse_layout, parse_placement, parse_shapes, split
from dlprof.catalog import Catalog
from dlprof.cli import names
from dlprof.errors import UsageError
from dlprof.plan import Axes
from dlprof.runner import Settings
from dlprof.worker.statement import FaultyStatement, check_setup

ARRAYS, MEASURING, FINDINGS, OUTPUT = "Arrays and paths", "Measuring", "Findings", "Output"
"""Panels of the help."""
FLAG = ""
"""The metavar of what takes no value."""

Shapes = Annotated[
    list[str] | None,
    typer.Option(
        "--shape",
        "--shapes",
        metavar="AxB",
        help="4096x4096, 1048576, scalar, or 1Ki..1Gi for powers of two; may be repeated.",
        rich_help_panel=ARRAYS,
    ),
]
Dtypes = Annotated[
    list[str] | None,
    typer.Option(
        "--dtype",
        "--dtypes",
        metavar="NAME",
        help="float32, bfloat16, …; may be repeated.",
        rich_help_panel=ARRAYS,
    ),
]
Layouts = Annotated[
    list[str] | None,
    typer.Option(
        "--layout",
        "--layouts",
        metavar="NAME",
        help="C, aligned, F, strided, sliced, reversed, broadcast or readonly; may be repeated.",
        rich_help_panel=ARRAYS,
    ),
]
Device = Annotated[
    str | None,
    typer.Option(
        "--device",
        metavar="cpu|cuda",
        help="Where the source array is. Default: cuda if both can use it.",
        rich_help_panel=ARRAYS,
    ),
]
Paths = Annotated[
    list[str] | None,
    typer.Option(
        "--path",
        metavar="GLOB",
        help="Only paths whose name or code matches; see 'dlprof paths'.",
        rich_help_panel=ARRAYS,
    ),
]
Placements = Annotated[
    list[str] | None,
    typer.Option(
        "--placement",
        metavar="NAME",
        help="convert (default), in-loop, hoisted or implicit: where a loop that uses the result"
        " has the conversion; may be repeated.",
        rich_help_panel=ARRAYS,
    ),
]
Rounds = Annotated[
    int | None,
    typer.Option(
        "--rounds",
        metavar="N",
        min=1,
        max=1000,
        help="Fresh processes per path. Default: 3.",
        rich_help_panel=MEASURING,
    ),
]
Budget = Annotated[
    float | None,
    typer.Option(
        "--budget",
        min=0,
        metavar="SECONDS",
        help="Start no further round after this time.",
        rich_help_panel=MEASURING,
    ),
]
Limit = Annotated[
    float | None,
    typer.Option(
        "--timeout",
        min=0.1,
        metavar="SECONDS",
        help="Time limit of one case in one process. Default: 60.",
        rich_help_panel=MEASURING,
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        "--seed",
        metavar="N",
        help="Seed of the order of the cases. Default: 0.",
        rich_help_panel=MEASURING,
    ),
]
Quick = Annotated[
    bool,
    typer.Option(
        "--quick",
        metavar=FLAG,
        help="One process per path and short samples: no intervals, no modes.",
        rich_help_panel=MEASURING,
    ),
]
Diagnose = Annotated[
    bool | None,
    typer.Option(
        "--diagnose/--no-diagnose",
        metavar=FLAG,
        help="Waiting, peak memory, lifetime and early writes too. Default: unless --quick.",
        rich_help_panel=FINDINGS,
    ),
]
Setup = Annotated[
    list[str] | None,
    typer.Option(
        "--setup",
        metavar="TEXT",
        help="Python that runs after the imports: jax.config.update('jax_enable_x64', True); may be"
        " repeated, a line each.",
        rich_help_panel=MEASURING,
    ),
]
FirstCalls = Annotated[
    bool,
    typer.Option(
        "--first-calls",
        help="One more process for the first call of each path that was first in none.",
        rich_help_panel=MEASURING,
    ),
]
FailOn = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-on",
        metavar="RULE",
        help="Exit code 1 for a finding of this rule, or of this severity and worse; may be"
        " repeated.",
        rich_help_panel=FINDINGS,
    ),
]
Regressions = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-on",
        metavar="WHAT",
        help="What is a regression: ready:5%,200ns, host:10%, error, warning, copy, dangling, …; "
        "may be repeated.",
        rich_help_panel=FINDINGS,
    ),
]
ComparisonJson = Annotated[
    str | None,
    typer.Option(
        "--json",
        metavar="FILE|-",
        help="Write the comparison as JSON; - prints it instead of the table.",
        rich_help_panel=OUTPUT,
    ),
]
Python = Annotated[
    str | None,
    typer.Option(
        "--python",
        metavar="PATH",
        help="Measure this interpreter; dlprof need not be installed there.",
        rich_help_panel=MEASURING,
    ),
]
ProbeFiles = Annotated[
    list[str] | None,
    typer.Option(
        "--probe",
        metavar="FILE",
        help="A probe of your own; may be repeated.",
        rich_help_panel=MEASURING,
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--output",
        metavar="FILE",
        parser=names.file("-o", "--json - prints the session"),
        help="Keep the session here.",
        rich_help_panel=OUTPUT,
    ),
]
Text = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--output",
        metavar="FILE|-",
        parser=names.file("-o"),
        help="Write it here; - prints it, as without.",
        rich_help_panel=OUTPUT,
    ),
]
Resume = Annotated[
    Path | None,
    typer.Option(
        "--resume",
        metavar="FILE",
        parser=names.file("--resume", "a session that is finished is written again"),
        help="Finish a session that was stopped.",
        rich_help_panel=OUTPUT,
    ),
]
SessionFile = Annotated[
    Path,
    typer.Argument(parser=names.session, metavar="SESSION", help="A session file; - is stdin."),
]
Json = Annotated[
    str | None,
    typer.Option(
        "--json",
        metavar="FILE|-",
        help="Write the session as JSON; - prints it instead of the table.",
        rich_help_panel=OUTPUT,
    ),
]
Csv = Annotated[
    str | None,
    typer.Option(
        "--csv",
        metavar="FILE|-",
        help="Write a table, one row for each case and measure.",
        rich_help_panel=OUTPUT,
    ),
]
Parquet = Annotated[
    str | None,
    typer.Option(
        "--parquet",
        metavar="FILE",
        help="Write the same table as Parquet.",
        rich_help_panel=OUTPUT,
    ),
]
Markdown = Annotated[
    str | None,
    typer.Option(
        "--markdown",
        metavar="FILE|-",
        help="Write a summary for GitHub; - prints it.",
        rich_help_panel=OUTPUT,
    ),
]
Junit = Annotated[
    str | None,
    typer.Option(
        "--junit",
        metavar="FILE|-",
        help="Write JUnit XML: one test for each case.",
        rich_help_panel=OUTPUT,
    ),
]
Sarif = Annotated[
    str | None,
    typer.Option(
        "--sarif",
        metavar="FILE|-",
        help="Write SARIF 2.1.0, for code scanning.",
        rich_help_panel=OUTPUT,
    ),
]
Gitlab = Annotated[
    str | None,
    typer.Option(
        "--gitlab",
        metavar="FILE|-",
        help="Write a code quality report of GitLab.",
        rich_help_panel=OUTPUT,
    ),
]
Github = Annotated[
    bool,
    typer.Option(
        "--github",
        help="Print annotations of GitHub, and add to the summary of the step.",
        rich_help_panel=OUTPUT,
    ),
]
Html = Annotated[
    str | None,
    typer.Option(
        "--html",
        metavar="FILE|-",
        help="Write the report as one HTML file; - prints it instead of the table.",
        rich_help_panel=OUTPUT,
    ),
]

Base = Annotated[
    Path, typer.Argument(parser=names.session, metavar="BASE", help="A session file: before.")
]
Head = Annotated[
    Path, typer.Argument(parser=names.session, metavar="HEAD", help="A session file: after.")
]

Value = TypeVar("Value")

QUICK_SAMPLE_NS = 20_000_000
MATRIX_SAMPLE_NS = 20_000_000
"""A matrix has hundreds of cases; its question is which way, not the last percent."""


def axes_from(
    shapes: list[str] | None,
    dtypes: list[str] | None,
    layouts: list[str] | None,
    device: str | None,
    default: Axes,
) -> Axes:
    """The axes that were asked for. Raises :class:`UsageError`."""
    if device not in (None, "cpu", "cuda", "auto"):
        raise UsageError(f"there is no device {device!r}: known are cpu and cuda")
    axes = default
    if shapes:
        found = (shape for text in split(shapes) for shape in parse_shapes(text))
        axes = replace(axes, shapes=_unique(found))
    if dtypes:
        axes = replace(axes, dtypes=_unique(parse_dtype(text) for text in split(dtypes)))
    if layouts:
        axes = replace(axes, layouts=_unique(parse_layout(text) for text in split(layouts)))
    if not (axes.shapes and axes.dtypes and axes.layouts):
        raise UsageError("an option names nothing to measure")
    return replace(axes, device=device or axes.device)


def settings_from(
    rounds: int | None,
    seed: int | None,
    limit: float | None,
    budget: float | None,
    quick: bool,
    diagnose: bool | None = None,
    together: bool = False,
    placements: list[str] | None = None,
    first_calls: bool = False,
    setup: str | None = None,
) -> Settings:
    """The settings that were asked for. Raises :class:`UsageError`."""
    for name, seconds in (("--timeout", limit), ("--budget", budget)):
        if seconds is not None and not math.isfinite(seconds):
            raise UsageError(f"{name} must be a number of seconds, not {seconds}")
    default = Settings()
    if together:
        default = replace(default, sample_ns=MATRIX_SAMPLE_NS, diagnose=False)
    if quick:
        default = replace(default, rounds=1, sample_ns=QUICK_SAMPLE_NS, diagnose=False)
    return replace(
        default,
        rounds=rounds or default.rounds,
        seed=default.seed if seed is None else seed,
        limit_s=default.limit_s if limit is None else limit,
        budget_s=budget,
        together=together,
        placements=_placements(placements) or default.placements,
        first_calls=first_calls,
        setup=_checked_setup(setup),
        diagnose=default.diagnose if diagnose is None else diagnose,
    )


def _checked_setup(setup: str | None) -> str:
    try:
        check_setup(setup or "")
    except FaultyStatement as fault:
        raise UsageError(str(fault)) from None
    return setup or ""


def _placements(names: list[str] | None) -> tuple[str, ...]:
    found = _unique(parse_placement(name) for name in split(names or ()))
    if names and not found:
        raise UsageError("--placement names nothing to measure")
    return found


def refuse_with_resume(given: Mapping[str, object]) -> None:
    """Raises :class:`UsageError` for options of a new run; ``given`` are values by name."""
    names = [name for name, value in given.items() if value not in (None, False)]
    if names:
        raise UsageError(
            f"--resume takes what to measure from the file: leave {', '.join(names)} out"
        )


def pairs(catalog: Catalog, producers: str, consumers: str) -> tuple[tuple[str, str], ...]:
    """Every named producer with every named consumer. Raises :class:`UsageError`."""
    left = [catalog.installed(word).name for word in _words(producers)]
    right = [catalog.installed(word).name for word in _words(consumers)]
    return _unique(product(left, right))


def _words(text: str) -> list[str]:
    words = [word.strip() for word in split([text])]
    return words or [text]


def interpreter(python: str | None) -> str:
    """The interpreter to measure. Raises :class:`UsageError` for a path that is none."""
    if python is None:
        return sys.executable
    return str(names.regular("the interpreter", python).absolute())


def probe_files(files: list[str] | None) -> tuple[str, ...]:
    """The probe files, absolute. Raises :class:`UsageError` for one that is not there."""
    found = (names.regular("the probe file", file) for file in files or ())
    return _unique(str(file.absolute()) for file in found)


def _unique(values: Iterable[Value]) -> tuple[Value, ...]:
    return tuple(dict.fromkeys(values))
