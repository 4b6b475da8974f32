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
from dlprof.errors import UsageError
from dlprof.plan import Axes
from dlprof.runner import Settings

Shapes = Annotated[
    list[str] | None,
    typer.Option(
        "--shape",
        "--shapes",
        metavar="AxB",
        help="4096x4096, 1048576, scalar, or 1Ki..1Gi for powers of two; may be repeated.",
    ),
]
Dtypes = Annotated[
    list[str] | None,
    typer.Option(
        "--dtype", "--dtypes", metavar="NAME", help="float32, bfloat16, …; may be repeated."
    ),
]
Layouts = Annotated[
    list[str] | None,
    typer.Option(
        "--layout",
        "--layouts",
        metavar="NAME",
        help="C, aligned, F, strided, sliced, reversed, broadcast or readonly; may be repeated.",
    ),
]
Device = Annotated[
    str | None,
    typer.Option(
        "--device",
        metavar="cpu|cuda",
        help="Where the source array is. Default: cuda if both can use it.",
    ),
]
Paths = Annotated[
    list[str] | None,
    typer.Option(
        "--path", metavar="GLOB", help="Only paths whose name or code matches; see 'dlprof paths'."
    ),
]
Placements = Annotated[
    list[str] | None,
    typer.Option(
        "--placement",
        metavar="NAME",
        help="convert (default), in-loop, hoisted or implicit: where a loop that uses the result"
        " has the conversion; may be repeated.",
    ),
]
Rounds = Annotated[
    int | None,
    typer.Option("--rounds", min=1, max=1000, help="Fresh processes per path. Default: 3."),
]
Budget = Annotated[
    float | None,
    typer.Option(
        "--budget", min=0, metavar="SECONDS", help="Start no further round after this time."
    ),
]
Limit = Annotated[
    float | None,
    typer.Option(
        "--timeout",
        min=0.1,
        metavar="SECONDS",
        help="Time limit of one case in one process. Default: 60.",
    ),
]
Seed = Annotated[
    int | None, typer.Option("--seed", help="Seed of the order of the cases. Default: 0.")
]
Quick = Annotated[
    bool,
    typer.Option("--quick", help="One process per path and short samples: no intervals, no modes."),
]
Diagnose = Annotated[
    bool | None,
    typer.Option(
        "--diagnose/--no-diagnose",
        help="Waiting, peak memory, lifetime and early writes too. Default: unless --quick.",
    ),
]
FailOn = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-on",
        metavar="RULE|SEVERITY",
        help="Exit code 1 for such a finding, or one as severe; may be repeated.",
    ),
]
Regressions = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-on",
        metavar="WHAT",
        help="What is a regression: ready:5%,200ns, host:10%, error, warning, copy, dangling, …; "
        "may be repeated.",
    ),
]
ComparisonJson = Annotated[
    str | None,
    typer.Option(
        "--json",
        metavar="FILE|-",
        help="Write the comparison as JSON; - prints it instead of the table.",
    ),
]
Python = Annotated[
    str | None,
    typer.Option(
        "--python",
        metavar="PATH",
        help="Measure this interpreter; dlprof need not be installed there.",
    ),
]
ProbeFiles = Annotated[
    list[str] | None,
    typer.Option("--probe", metavar="FILE", help="A probe of your own; may be repeated."),
]
Output = Annotated[
    Path | None, typer.Option("-o", "--output", metavar="FILE", help="Keep the session here.")
]
Json = Annotated[
    str | None,
    typer.Option(
        "--json",
        metavar="FILE|-",
        help="Write the session as JSON; - prints it instead of the table.",
    ),
]
Csv = Annotated[
    str | None,
    typer.Option(
        "--csv", metavar="FILE|-", help="Write a table, one row for each case and measure."
    ),
]
Parquet = Annotated[
    str | None, typer.Option("--parquet", metavar="FILE", help="Write the same table as Parquet.")
]
Markdown = Annotated[
    str | None,
    typer.Option("--markdown", metavar="FILE|-", help="Write a summary for GitHub; - prints it."),
]
Junit = Annotated[
    str | None,
    typer.Option("--junit", metavar="FILE|-", help="Write JUnit XML: one test for each case."),
]
Sarif = Annotated[
    str | None,
    typer.Option("--sarif", metavar="FILE|-", help="Write SARIF 2.1.0, for code scanning."),
]
Gitlab = Annotated[
    str | None,
    typer.Option("--gitlab", metavar="FILE|-", help="Write a code quality report of GitLab."),
]
Github = Annotated[
    bool,
    typer.Option(
        "--github", help="Print annotations of GitHub, and add to the summary of the step."
    ),
]
Html = Annotated[
    str | None,
    typer.Option(
        "--html",
        metavar="FILE|-",
        help="Write the report as one HTML file; - prints it instead of the table.",
    ),
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
        diagnose=default.diagnose if diagnose is None else diagnose,
    )


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
    path = Path(python).expanduser()
    if not path.is_file():
        raise UsageError(f"there is no interpreter {python}")
    return str(path.absolute())


def probe_files(files: list[str] | None) -> tuple[str, ...]:
    """The probe files, absolute. Raises :class:`UsageError` for one that is not there."""
    for file in files or ():
        if not Path(file).is_file():
            raise UsageError(f"there is no probe file {file}")
    return _unique(str(Path(file).absolute()) for file in files or ())


def _unique(values: Iterable[Value]) -> tuple[Value, ...]:
    return tuple(dict.fromkeys(values))
