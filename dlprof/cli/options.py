"""Options that several verbs share, and what becomes of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dlprof.cli import names
from dlprof.cli.chosen import MATRIX_SAMPLE_NS as MATRIX_SAMPLE_NS  # noqa: PLC0414
from dlprof.cli.chosen import QUICK_SAMPLE_NS as QUICK_SAMPLE_NS  # noqa: PLC0414
from dlprof.cli.chosen import axes_from as axes_from  # noqa: PLC0414 - callers find these here
from dlprof.cli.chosen import interpreter as interpreter  # noqa: PLC0414
from dlprof.cli.chosen import pairs as pairs  # noqa: PLC0414
from dlprof.cli.chosen import probe_files as probe_files  # noqa: PLC0414
from dlprof.cli.chosen import refuse_with_resume as refuse_with_resume  # noqa: PLC0414
from dlprof.cli.chosen import settings_from as settings_from  # noqa: PLC0414

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
AcrossPythons = Annotated[
    bool,
    typer.Option(
        "--any-python",
        help="Compare also sessions of two versions of Python.",
        rich_help_panel=MEASURING,
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
