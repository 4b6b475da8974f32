"""Options of several verbs: a name, what it accepts, its default and its words, declared once.

The command line, scenario files and Python read their options here. So a name, a default and the
sentence about a wrong value are the same in all of them. A verb declares its own options. A list
may be written in the singular: ``--shape`` and ``--shapes``, ``shape=`` and ``shapes=``. Nothing
heavy is imported before a value is read: every ``--help`` imports this module.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dlprof.errors import UsageError
from dlprof.runner.option import (
    Number,
    Option,
    Several,
    Switch,
    Text,
    Whole,
    distinct,
    value_of,
)
from dlprof.text.clean import nearest


def _shapes(word: str) -> Iterable[tuple[int, ...]]:
    from dlprof.runner.axes import parse_shapes

    return parse_shapes(word)


def _one_of(what: str) -> Callable[[str], Iterable[str]]:
    def parse(word: str) -> Iterable[str]:
        from dlprof.runner import axes

        return [axes.one_of(word, what)]

    return parse


def _devices(names: Iterable[str]) -> tuple[str, ...]:
    found = distinct(names)
    if "auto" in found and len(found) > 1:
        raise UsageError("has auto beside others: auto chooses one device")
    from dlprof.runner.axes import simulated_in

    if simulated_in(found) and len(found) > 1:
        raise UsageError("has simulated beside others: measure them in a session of their own")
    return found


def _file(text: str) -> Iterable[str]:
    """The absolute path of a file that is there."""
    from dlprof.runner import files

    path = files.at_home(Path(text))
    if path.is_file():
        return [str(path.absolute())]
    raise UsageError("it is not a regular file" if path.exists() else "there is no such file")


def _interpreter(paths: Iterable[str]) -> str:
    first, *others = distinct(paths)
    if others:
        raise UsageError(f"names {1 + len(others)} interpreters: {ONE_INTERPRETER}")
    return str(first)


def _setup(lines: Iterable[str]) -> str:
    from dlprof.protocol.statement import FaultyStatement, check_setup

    text = "\n".join(lines)
    try:
        check_setup(text, "")
    except FaultyStatement as fault:
        raise UsageError(str(fault)) from None
    return text


ARRAYS, MEASURING, FINDINGS, OUTPUT = "Arrays and paths", "Measuring", "Findings", "Output"
PANELS = (ARRAYS, MEASURING, FINDINGS, OUTPUT)
"""Of the help."""

ONE_INTERPRETER = (
    "a session holds one; run dlprof once per interpreter (--python PATH) and compare the sessions"
)

SHAPES = Option(
    "shapes",
    Several(_shapes, True),
    "Lengths in elements: 4096x4096, 1048576, scalar, or 1Ki..1Gi for powers of two.",
    ARRAYS,
    default="1024x1024",
    flag="--shape",
    metavar="AxB",
)
DTYPES = Option(
    "dtypes",
    Several(_one_of("dtype"), commas=True),
    "float32, bfloat16, …",
    ARRAYS,
    default="float32",
    flag="--dtype",
    metavar="NAME",
)
LAYOUTS = Option(
    "layouts",
    Several(_one_of("layout"), commas=True),
    "C, aligned, F, strided, sliced, reversed, broadcast or readonly.",
    ARRAYS,
    default="C",
    flag="--layout",
    metavar="NAME",
)
DEVICES = Option(
    "devices",
    Several(_one_of("device"), commas=True, join=_devices),
    "Where the source array is: cpu, cuda, simulated; auto is cuda if both can use it.",
    ARRAYS,
    default="auto",
    flag="--device",
    metavar="NAME",
)
PATHS = Option(
    "paths",
    Several(),
    "Only paths whose name or code matches this glob; see 'dlprof list paths'.",
    ARRAYS,
    meaning="all",
    flag="--path",
    metavar="GLOB",
)
PLACEMENTS = Option(
    "placements",
    Several(_one_of("placement"), commas=True),
    "Where a loop that uses the result has the conversion: convert, in-loop, hoisted or implicit.",
    ARRAYS,
    default="convert",
    flag="--placement",
    metavar="NAME",
)
SETUP = Option(
    "setup",
    Several(join=_setup),
    "Python that runs after the imports: jax.config.update('jax_enable_x64', True).",
    MEASURING,
    metavar="TEXT",
)
ROUNDS = Option(
    "rounds",
    Whole(1, 1000),
    "Fresh processes per path.",
    MEASURING,
    default=3,
    metavar="N",
)
BUDGET = Option(
    "budget",
    Number(0),
    "Start no further round after this time.",
    MEASURING,
    meaning="none",
    metavar="SECONDS",
)
TIMEOUT = Option(
    "timeout",
    Number(0.1),
    "Time limit of one case in one process.",
    MEASURING,
    default=60.0,
    metavar="SECONDS",
)
SEED = Option("seed", Whole(), "Seed of the order of the cases.", MEASURING, default=0, metavar="N")
SAMPLE_MS = Option(
    "sample_ms",
    Number(1, unit="milliseconds"),
    "How long one timer samples one case in one process.",
    MEASURING,
    default=60.0,
    metavar="MS",
)
TUNABLES = "GLIBC_TUNABLES"
STEADY_TUNABLES = "glibc.malloc.mmap_threshold=1073741824:glibc.malloc.trim_threshold=1073741824"
"""No block below 1 GiB is mapped anew for each allocation, and freed memory is kept: fresh pages
cost a fault each (glibc manual, Memory Allocation Tunables)."""
QUICK = Option(
    "quick",
    Switch(),
    "One process per path and short samples: no intervals, no modes.",
    MEASURING,
    default=False,
)
DIAGNOSE = Option(
    "diagnose",
    Switch(),
    "Measure waiting, peak memory, lifetime and early writes too.",
    FINDINGS,
    default=True,
    meaning="unless --quick",
)
TOGETHER = Option(
    "together",
    Switch(),
    "Serve all pairs of a round from one process.",
    MEASURING,
    default=False,
)
SURVEY = Option(
    "survey",
    Switch(),
    "Look at each path with many small arrays: every dtype, layout and kind of shape.",
    FINDINGS,
    default=False,
)
PYTHON = Option(
    "python",
    Several(_file, join=_interpreter),
    "Measure this interpreter; dlprof need not be installed there.",
    MEASURING,
    meaning="this one",
    metavar="PATH",
)
PROBES = Option(
    "probes",
    Several(_file),
    "A probe of your own.",
    MEASURING,
    flag="--probe",
    metavar="FILE",
)
FAIL_ON = Option(
    "fail_on",
    Several(),
    "Exit code 1 for a finding of this rule, or of this severity and worse.",
    FINDINGS,
    metavar="RULE",
)
SESSION = Option("output", Text(), "Keep the session here.", OUTPUT, short="-o", metavar="FILE")
YES = Option(
    "yes",
    Switch(),
    "Go on with a run of more than 10,000 cases.",
    OUTPUT,
    default=False,
)
PRINTS = "- prints it instead of the table."
JSON = Option(
    "json",
    Text(),
    f"Write the session as JSON; {PRINTS}",
    OUTPUT,
    metavar="FILE|-",
)
HTML = Option(
    "html",
    Text(),
    f"Write the report as one HTML file; {PRINTS}",
    OUTPUT,
    metavar="FILE|-",
)
CSV = Option("csv", Text(), "Write a table, one row for each case.", OUTPUT, metavar="FILE|-")
PARQUET = Option(
    "parquet",
    Text(),
    "Write the same table as Parquet.",
    OUTPUT,
    metavar="FILE",
)
MARKDOWN = Option(
    "markdown", Text(), "Write a summary for GitHub; - prints it.", OUTPUT, metavar="FILE|-"
)
JUNIT = Option(
    "junit",
    Text(),
    "Write JUnit XML: one test for each case.",
    OUTPUT,
    metavar="FILE|-",
)
GITHUB = Option(
    "github",
    Switch(),
    "Print annotations of GitHub, and add to the summary of the step.",
    OUTPUT,
    default=False,
)

FULL = Option("full", Switch(), "Print the whole report.", OUTPUT, default=False)

REPEATED = ("ready", "host")
"""What every process of a session has a time of."""
WIDE_LIMIT = Option(
    "wide_limit",
    Number(0, below=1e6, unit="percent"),
    "A WIDE time passes if its bound is at most this.",
    FINDINGS,
    default=25.0,
    metavar="PERCENT",
)

AXES = (SHAPES, DTYPES, LAYOUTS, DEVICES, PATHS)
HOW = (ROUNDS, BUDGET, TIMEOUT, SEED, QUICK)
INTERPRETER = (PYTHON, PROBES)
TIMED = (*HOW, SAMPLE_MS, DIAGNOSE, *INTERPRETER)
"""How conversions are measured that are known."""
RUN = (
    *AXES,
    PLACEMENTS,
    SETUP,
    *TIMED,
    replace(SURVEY, default=True, meaning="yes, except on a simulated device"),
)
"""What ``run`` measures, and how."""
REPORTS = (JSON, HTML, CSV, PARQUET, MARKDOWN, JUNIT, GITHUB)

MEASURED = (
    *(*AXES, PLACEMENTS, SETUP),
    *(*HOW, SAMPLE_MS, DIAGNOSE, SURVEY, TOGETHER),
    *INTERPRETER,
)
"""What is measured, and how; the rest says what becomes of it."""
IN_FILE = tuple(option for option in MEASURED if option not in (QUICK, PYTHON))
"""What a scenario may say."""
OPTIONS = {option.key: option for option in (*MEASURED, FAIL_ON, SESSION, YES, FULL, *REPORTS)}
QUICKLY = {"rounds": 1, "sample_ms": 20.0, "diagnose": False, "survey": False}
"""What ``quick`` stands for."""
SIMULATED = {"rounds": 1, "survey": False}
"""Defaults on a simulated device, which times nothing and runs no kernel."""


def read(
    given: Mapping[str, Any], typed: bool = False, known: Mapping[str, Option] = OPTIONS
) -> dict[str, Any]:
    """The options that were given, by their keys; None is not given.

    If they were ``typed``, an error calls them as the command line does. ``known`` are the options
    as a verb declares them. Raises :class:`UsageError` with the option, the value and what was
    expected.
    """
    return {
        key: value_of(known[key], raw, known[key].name if typed else key)
        for key, raw in given.items()
        if raw is not None
    }


def settle(*layers: Mapping[str, Any], known: Iterable[Option] = ()) -> dict[str, Any]:
    """The value of every option: of the last layer that gives it, else its default.

    ``known`` are options with defaults of a verb. ``quick`` in a layer overrides the layers before
    it. A simulated device has the defaults of :data:`SIMULATED`.
    """
    declared = {option.key: option for option in MEASURED}
    declared |= {option.key: option for option in known if option.key in declared}
    nothing = {key: option.nothing for key, option in declared.items()}
    defaults = {key: option.default for key, option in declared.items()}
    stated: dict[str, Any] = {}
    for layer in layers:
        stated |= {**(QUICKLY if layer.get(QUICK.key) else {}), **layer}
    found = nothing | {PYTHON.key: sys.executable} | read(defaults, known=declared) | stated
    from dlprof.runner.axes import simulated_in

    return found | SIMULATED | stated if simulated_in(found[DEVICES.key]) else found


def key_of(name: str, known: Iterable[Option]) -> str:
    """The key of an option by its name, plural or singular.

    Raises LookupError with the nearest name.
    """
    names = {word: option.key for option in known for word in (option.singular, option.key)}
    if name in names:
        return names[name]
    raise LookupError(nearest(name, names))
