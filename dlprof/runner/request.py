"""The request of a user: pairs, and how to measure them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dlprof.errors import UsageError
from dlprof.probes.base import PINNED
from dlprof.runner import options
from dlprof.runner.axes import simulated_in


@dataclass(frozen=True)
class Axes:
    """The arrays that each path converts. ``devices`` may hold ``auto``."""

    shapes: tuple[tuple[int, ...], ...] = ((1024, 1024),)
    dtypes: tuple[str, ...] = ("float32",)
    layouts: tuple[str, ...] = ("C",)
    devices: tuple[str, ...] = ("auto",)


@dataclass(frozen=True)
class Settings:
    """Settings of a measurement.

    ``sample_ns`` is the time of one timer for one case in one process, and ``limit_s`` the time
    limit of a case there. ``together`` serves all pairs from one worker. With ``in_turns``, another
    side takes its samples in turns with these, on the same processor. The diagnosis makes arrays of
    up to ``largest_bytes``; without it, ``alignment`` is still measured. ``setup`` is source text
    that runs in each worker. ``times`` is False on a simulated device.
    """

    rounds: int = options.ROUNDS.default
    sample_ns: int = round(options.SAMPLE_MS.default * 1e6)
    limit_s: float = options.TIMEOUT.default
    together: bool = False
    in_turns: bool = False
    diagnose: bool = options.DIAGNOSE.default
    alignment: bool = True
    largest_bytes: int = 256 << 20
    placements: tuple[str, ...] = (options.PLACEMENTS.default,)
    setup: str = ""
    times: bool = True
    survey: bool = False
    survey_alone: bool = False


WITHOUT_TIMES: dict[str, Any] = {"times": False, "largest_bytes": 16 << 20}
"""Settings of a simulated device: only times need arrays of hundreds of MB."""


@dataclass(frozen=True)
class ScenarioRecord:
    """A scenario as its session keeps it; ``pairs`` and ``expect`` use the catalog's names."""

    file: str
    title: str
    question: str = ""
    sources: tuple[str, ...] = ()
    expect: tuple[str, ...] = ()
    pairs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Request:
    """A request of a user, which the session file holds.

    ``pairs`` are (producer, consumer) in names of the catalog. ``simulated`` is the number of
    simulated CUDA devices, which frameworks call ``cuda``; 0 for the machine's own driver.
    """

    pairs: tuple[tuple[str, str], ...] = ()
    axes: Axes = field(default_factory=Axes)
    globs: tuple[str, ...] = ()
    settings: Settings = field(default_factory=Settings)
    python: str = ""
    probe_files: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    scenario: ScenarioRecord | None = None
    simulated: int = 0


def _devices(values: Mapping[str, Any]) -> tuple[str, ...]:
    """Return where the source arrays are. Page-locked memory belongs to the host."""
    if PINNED in values["layouts"]:
        if "cuda" in values["devices"]:
            raise UsageError("--layout pinned is memory of the host: leave out --device cuda")
        return ("cpu",)
    return ("cuda",) if simulated_in(values["devices"]) else values["devices"]


def make_request(
    values: Mapping[str, Any], pairs: tuple[tuple[str, str], ...], command: tuple[str, ...]
) -> Request:
    """Return the request that the options make of these pairs."""
    simulated = simulated_in(values["devices"])
    settings = Settings(
        rounds=values["rounds"],
        sample_ns=round(values["sample_ms"] * 1e6),
        limit_s=values["timeout"],
        together=values["together"],
        diagnose=values["diagnose"],
        placements=values["placements"],
        setup=values["setup"] or "",
        survey=values["survey"],
        **(WITHOUT_TIMES if simulated else {}),
    )
    return Request(
        pairs=pairs,
        axes=Axes(
            shapes=values["shapes"],
            dtypes=values["dtypes"],
            layouts=values["layouts"],
            devices=_devices(values),
        ),
        globs=values["paths"],
        settings=settings,
        python=values["python"],
        probe_files=values["probes"],
        command=command,
        simulated=simulated,
    )
