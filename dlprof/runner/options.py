"""Options of several verbs, declared once: name, accepted values, default and help.

The command line, scenario files and Python read each value the same way here. Text may stand for a
number, and one value for a list of one. A list may be written in the singular: ``--shape`` and
``--shapes``, ``shape=`` and ``shapes=``.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from dlprof.errors import UsageError
from dlprof.runner import files
from dlprof.runner.axes import axis_value, check_shape_list, parse_shapes, simulated_in
from dlprof.text.clean import nearest

LONGEST_S = 1e6
"""The largest limit or budget in seconds."""
WHOLE = "a whole number"
LONGEST_SHOWN = 200
"""Characters of a wrong value in a message."""


@dataclass(frozen=True)
class Number:
    """A number within its bounds."""

    least: float
    most: float = LONGEST_S
    unit: str = "seconds"
    kind: type[int | float] = float

    def read(self, value: Any) -> Any:
        is_other = isinstance(value, bool) or (isinstance(value, float) and self.kind is int)
        try:
            number = math.nan if is_other else self.kind(value)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if not self.least <= number <= self.most:  # NaN is neither
            bounds = f"from {self.least:,.10g} to {self.most:,.10g}"
            raise UsageError(f"{shown(value)}: expected {self.unit} {bounds}")
        return number


@dataclass(frozen=True)
class Switch:
    """True or false."""

    def read(self, value: Any) -> bool:
        if not isinstance(value, bool):
            raise UsageError(f"{shown(value)}: expected true or false")
        return value


@dataclass(frozen=True)
class Choice:
    """One of a few words."""

    words: tuple[str, ...]

    def read(self, value: Any) -> str:
        if value not in self.words:
            *first, last = self.words
            raise UsageError(f"{shown(value)}: expected {', '.join(first)} or {last}")
        return str(value)


@dataclass(frozen=True)
class Text:
    """One text that ``parse`` or a verb reads."""

    parse: Callable[[str], Any] = str

    def read(self, value: Any) -> Any:
        try:
            return self.parse(str(value))
        except UsageError as error:
            raise UsageError(f"{shown(value)}: {error}") from None


@dataclass(frozen=True)
class Export:
    """A format and a file, two words of the command line."""

    def read(self, value: Any) -> tuple[str, str]:
        form, file = value
        return form, file


def distinct(values: Iterable[Any]) -> tuple[Any, ...]:
    """Return each value once, in their order."""
    return tuple(dict.fromkeys(values))


@dataclass(frozen=True)
class Several:
    """A list of words: ``parse`` makes values of each, and ``join`` the value of all.

    ``commas`` may separate words in one text, which ``check`` may refuse.
    """

    parse: Callable[[str], Iterable[Any]] = lambda word: [word]
    commas: bool = False
    join: Callable[[Iterable[Any]], Any] = distinct
    check: Callable[[str], None] = lambda _: None

    def read(self, value: Any) -> Any:
        # A tuple of numbers is one word, such as 4x4.
        lengths = isinstance(value, tuple) and all(map(_is_whole, value))
        is_single = (
            lengths or isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable)
        )
        texts = [_text(word) for word in ([value] if is_single else value)]
        for text in texts:
            self.check(text)
        words = split(texts) if self.commas else texts
        if not words or not all(word.strip() for word in words):
            raise UsageError("names nothing: leave it out for the default")
        found: list[Any] = []
        for word in words:
            try:
                found += self.parse(word)
            except UsageError as error:
                raise UsageError(f"{shown(word)}: {error}") from None
        return self.join(found)


Kind = Number | Switch | Choice | Text | Export | Several


@dataclass(frozen=True)
class Option:
    """One option. ``key`` is its name in a scenario and in Python; the flag follows from it.

    ``default`` is written as by a user. ``meaning`` describes a default of None.
    """

    key: str
    kind: Kind
    help: str
    panel: str
    default: Any = None
    meaning: str = ""
    flag: str = ""
    """The name on the command line, if it differs from the key."""
    short: str = ""
    metavar: str = ""

    @property
    def flags(self) -> tuple[str, ...]:
        """Return the names on the command line: ``--shape``, ``--shapes``."""
        plural = ["--" + self.key.replace("_", "-")] * isinstance(self.kind, Several)
        found = dict.fromkeys((self.short, self.name, *plural))
        return tuple(flag for flag in found if flag)

    @property
    def name(self) -> str:
        """Return the name on the command line that messages use."""
        return self.flag or "--" + self.singular.replace("_", "-")

    @property
    def singular(self) -> str:
        return self.key.removesuffix("s") if isinstance(self.kind, Several) else self.key

    @property
    def initial(self) -> Any:
        """Return its value if it is not given."""
        if self.default is not None:
            return self.kind.read(self.default)
        return () if isinstance(self.kind, Several) else None

    @property
    def default_text(self) -> str:
        """Return the default as a user would write it; empty for none."""
        if self.meaning or self.default is None:
            return self.meaning
        if isinstance(self.default, bool):
            return "yes" if self.default else "no"
        return f"{self.default:g}" if isinstance(self.default, float) else str(self.default)


def read_value(option: Option, raw: Any, name: str) -> Any:
    """Read one value. Raises :class:`UsageError` with ``name``, the value and the expectation."""
    try:
        return option.kind.read(raw)
    except UsageError as error:
        raise UsageError(f"{name} {error}") from None


def shown(value: Any) -> str:
    """Format a wrong value for a message."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return (text or repr(value))[:LONGEST_SHOWN]


def split(texts: Iterable[str]) -> list[str]:
    """Split texts at commas."""
    return [word for text in texts for word in text.split(",") if word.strip()]


def _is_whole(value: Any) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, bool)


def _text(word: Any) -> str:
    """Return a word as text; a number or lengths such as ``(4, 4)`` are a shape."""
    if isinstance(word, str):
        return word
    if isinstance(word, os.PathLike):
        return str(os.fspath(word))
    lengths = [word] if _is_whole(word) else word
    if (
        isinstance(lengths, Sequence)
        and not isinstance(lengths, bytes)
        and all(map(_is_whole, lengths))
    ):
        return "x".join(str(int(length)) for length in lengths) or "scalar"
    raise UsageError(f"{shown(word)}: expected text, or lengths such as (4096, 4096)")


def _devices(names: Iterable[str]) -> tuple[str, ...]:
    found = distinct(names)
    if simulated_in(found) and len(found) > 1:
        raise UsageError("has simulated next to others: measure each in a session of its own")
    return found


def _file(text: str) -> str:
    """Return the absolute path of an existing file."""
    path = files.expand_home(Path(text))
    if path.is_file():
        return str(path.absolute())
    raise UsageError("it is not a regular file" if path.exists() else "there is no such file")


def _setup(lines: Iterable[str]) -> str:
    from dlprof.protocol.statement import FaultyStatement, check_setup

    text = "\n".join(lines)
    try:
        check_setup(text, "")
    except FaultyStatement as fault:
        raise UsageError(str(fault)) from None
    return text


ARRAYS, MEASURING, FINDINGS, OUTPUT = "Arrays and paths", "Measuring", "Findings", "Output"
ADVANCED = "Advanced"
PANELS = (ARRAYS, MEASURING, FINDINGS, OUTPUT, ADVANCED)
"""Groups of the help."""

SHAPES = Option(
    "shapes",
    Several(parse_shapes, commas=True, check=check_shape_list),
    "Lengths in elements: 4096x4096, 1048576, scalar, or 1Ki..1Gi for powers of two.",
    ARRAYS,
    default="1024x1024",
    metavar="AxB",
)


def _axis(
    name: str,
    help_text: str,
    default: str,
    panel: str = ARRAYS,
    join: Callable[[Iterable[str]], Any] = distinct,
) -> Option:
    kind = Several(partial(axis_value, name), commas=True, join=join)
    return Option(f"{name}s", kind, help_text, panel, default, metavar="NAME")


DTYPES = _axis("dtype", "float32, bfloat16, …", "float32")
LAYOUTS = _axis(
    "layout", "C, aligned, F, strided, sliced, reversed, broadcast, readonly or pinned.", "C"
)
DEVICES = _axis(
    "device",
    "Where the source array is: cpu, cuda, simulated; auto is cuda if both can use it.",
    "auto",
    join=_devices,
)
PLACEMENTS = _axis(
    "placement",
    "Where a loop that uses the result has the conversion: convert, in-loop, hoisted or implicit.",
    "convert",
    ADVANCED,
)
PATHS = Option(
    "paths",
    Several(),
    "Only paths whose name or code matches this glob; see 'dlprof list paths'.",
    ARRAYS,
    meaning="all",
    metavar="GLOB",
)
SETUP = Option(
    "setup",
    Several(join=_setup),
    "Python that runs after the imports: jax.config.update('jax_enable_x64', True).",
    ADVANCED,
    metavar="TEXT",
)
ROUNDS = Option(
    "rounds",
    Number(1, 1000, WHOLE, int),
    "Fresh processes per path.",
    MEASURING,
    default=3,
    metavar="N",
)
TIMEOUT = Option(
    "timeout",
    Number(0.1),
    "Time limit of one case in one process.",
    MEASURING,
    default=60.0,
    metavar="SECONDS",
)
SAMPLE_MS = Option(
    "sample_ms",
    Number(1, unit="milliseconds"),
    "How long one timer samples one case in one process.",
    ADVANCED,
    default=60.0,
    metavar="MS",
)


def _switch(
    key: str, help_text: str, panel: str, default: bool = False, meaning: str = ""
) -> Option:
    return Option(key, Switch(), help_text, panel, default, meaning)


QUICK = _switch("quick", "One process per path and short samples: no intervals.", MEASURING)
DIAGNOSE = _switch(
    "diagnose",
    "Measure waiting, peak memory, lifetime and early writes too.",
    FINDINGS,
    True,
    "unless --quick",
)
TOGETHER = _switch("together", "Serve all pairs of a round from one process.", ADVANCED)
SURVEY = _switch(
    "survey",
    "Look at each path with many small arrays: every dtype, layout and kind of shape.",
    FINDINGS,
)
PYTHON = Option(
    "python",
    Text(_file),
    "Measure this interpreter; dlprof need not be installed there.",
    MEASURING,
    meaning="this one",
    metavar="PATH",
)
PROBES = Option(
    "probes",
    Several(lambda word: [_file(word)]),
    "A probe of your own.",
    ADVANCED,
    metavar="FILE",
)
PROGRAM = Option(
    "program",
    Text(),
    "A program of your own that converts, in any language; see docs/harness.md.",
    MEASURING,
    metavar="COMMAND",
)
FAIL_ON = Option(
    "fail_on",
    Several(),
    "Exit code 1 for a finding of this rule, or of this severity and worse.",
    FINDINGS,
    metavar="RULE",
)
SESSION = Option("output", Text(), "Keep the session here.", OUTPUT, short="-o", metavar="FILE")


def _report(key: str, help_text: str) -> Option:
    return Option(key, Text(), help_text, OUTPUT, metavar="FILE|-")


PRINTS = "- prints it instead of the table."
JSON = _report("json", f"Write the session as JSON; {PRINTS}")
HTML = _report("html", f"Write the report as one HTML file; {PRINTS}")
CSV = _report("csv", "Write a table, one row for each case.")
MARKDOWN = _report("markdown", "Write a summary for GitHub; - prints it.")
JUNIT = _report("junit", "Write JUnit XML: one test for each case.")
EXPORT = Option(
    "export",
    Export(),
    "Write times for a tool that keeps a trend: bmf (Bencher) or github-benchmark.",
    OUTPUT,
    metavar="FORMAT FILE|-",
)
GITHUB = _switch(
    "github", "Print annotations of GitHub, and add to the summary of the step.", OUTPUT
)
FULL = _switch("full", "Print the whole report.", OUTPUT)
WIDE_LIMIT = Option(
    "wide_limit",
    Number(0, unit="percent"),
    "A WIDE time passes if its bound is at most this.",
    FINDINGS,
    default=25.0,
    metavar="PERCENT",
)

AXES = (SHAPES, DTYPES, LAYOUTS, DEVICES, PATHS)
HOW = (ROUNDS, TIMEOUT, QUICK)
INTERPRETER = (PYTHON, PROBES)
TIMED = (*HOW, SAMPLE_MS, DIAGNOSE, *INTERPRETER)
"""Options of every verb that times conversions."""
RUN = (
    *AXES,
    PLACEMENTS,
    SETUP,
    *TIMED,
    replace(SURVEY, default=True, meaning="yes, except with --quick and on a simulated device"),
)
"""Options of ``run`` that decide what is measured."""
REPORTS = (JSON, HTML, CSV, MARKDOWN, JUNIT, EXPORT, GITHUB)

MEASURED = (
    *(*AXES, PLACEMENTS, SETUP),
    *(*HOW, SAMPLE_MS, DIAGNOSE, SURVEY, TOGETHER),
    *INTERPRETER,
)
"""Options that decide what is measured; the others decide what is done with it."""
IN_FILE = tuple(option for option in MEASURED if option not in (QUICK, PYTHON))
"""Options that a scenario may hold."""
OPTIONS = {option.key: option for option in (*MEASURED, FAIL_ON, SESSION, FULL, *REPORTS)}
OF_PROGRAMS = (
    replace(SHAPES, default="1Mi", help="Lengths of a program's array: 4096x4096, 1Mi."),
    replace(DTYPES, default="float64", help="Dtype of a program's array."),
    replace(PATHS, help="Only conversions of a program whose code matches this glob."),
)
"""Options of the arrays and paths of a program: a setup makes its array itself."""
QUICKLY = {"rounds": 1, "sample_ms": 20.0, "diagnose": False, "survey": False}
"""Values that ``quick`` stands for."""
SIMULATED = {"rounds": 1, "survey": False}
"""Defaults on a simulated device, which times nothing and runs no kernel."""


def read(
    given: Mapping[str, Any], typed: bool = False, known: Mapping[str, Option] = OPTIONS
) -> dict[str, Any]:
    """Read the given options, by their keys; None is not given.

    An error names ``typed`` options as the command line does. Raises :class:`UsageError`.
    """
    return {
        key: read_value(known[key], raw, known[key].name if typed else key)
        for key, raw in given.items()
        if raw is not None
    }


def settle(*layers: Mapping[str, Any], known: Iterable[Option] = ()) -> dict[str, Any]:
    """Return the value of every option, from the last layer that gives it, or its default.

    ``known`` are options with defaults of a verb. ``quick`` in a layer overrides the layers before
    it. A simulated device has the defaults of :data:`SIMULATED`.
    """
    declared = {option.key: option for option in MEASURED}
    declared |= {option.key: option for option in known if option.key in declared}
    initial = {key: option.initial for key, option in declared.items()}
    stated: dict[str, Any] = {}
    for layer in layers:
        stated |= {**(QUICKLY if layer.get(QUICK.key) else {}), **layer}
    found = initial | {PYTHON.key: sys.executable} | stated
    return found | SIMULATED | stated if simulated_in(found[DEVICES.key]) else found


def option_key(name: str, known: Iterable[Option]) -> str:
    """Return the key of an option by its plural or singular name; raises LookupError."""
    names = {word: option.key for option in known for word in (option.singular, option.key)}
    if name in names:
        return names[name]
    raise LookupError(nearest(name, names))
