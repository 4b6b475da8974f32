"""What becomes of the options that several verbs share: axes, settings, frameworks, files."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import product
from typing import TypeVar

from dlprof.cli import names
from dlprof.errors import UsageError
from dlprof.plan.axes import parse_dtype, parse_layout, parse_placement, parse_shapes, split
from dlprof.plan.catalog import Catalog
from dlprof.plan.pairing import Axes
from dlprof.plan.settings import LONGEST_S, Settings
from dlprof.protocol.statement import FaultyStatement, check_setup

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
    if any(given is not None and not given for given in (shapes, dtypes, layouts)):
        raise UsageError(
            "a list of shapes, dtypes or layouts is empty: leave it out for the default"
        )
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
        if seconds is not None and seconds >= LONGEST_S:
            raise UsageError(f"{name} must be less than {LONGEST_S:,.0f} seconds")
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
    unset = (None, False)
    names = [
        name
        for name, value in given.items()
        if value not in unset or (name == "--diagnose" and value is False)
    ]
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
