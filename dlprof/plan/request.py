"""What the user asked for: from the options, and as a session file tells of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from pydantic import TypeAdapter

from dlprof.plan.axes import DEVICES, PLACEMENTS, one_of, parse_shape, shape_text
from dlprof.plan.floors import FloorRule
from dlprof.plan.option import LONGEST_S
from dlprof.plan.pairing import Axes
from dlprof.plan.settings import Settings


@dataclass(frozen=True)
class ScenarioRecord:
    """What a session tells of the scenario that it comes from.

    ``origins`` says of each value that was measured with where it came from. ``pairs``, ``expect``
    and ``thresholds`` are as in the file, with the catalog's names; ``left_out`` says in words
    which pairs of the file were not measured, and why.
    """

    file: str
    title: str
    question: str = ""
    sources: tuple[str, ...] = ()
    report: str = "paths"
    expect: tuple[str, ...] = ()
    thresholds: Mapping[str, float] = field(default_factory=dict)
    origins: tuple[tuple[str, str, str], ...] = ()
    """Key, value as text, and ``default``, ``file`` or ``command line``."""
    left_out: tuple[str, ...] = ()
    floors: tuple[FloorRule, ...] = ()
    pairs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Request:
    """What the user asked for. ``pairs`` are (producer, consumer) in names of the catalog."""

    pairs: tuple[tuple[str, str], ...]
    axes: Axes = field(default_factory=Axes)
    globs: tuple[str, ...] = ()
    settings: Settings = field(default_factory=Settings)
    python: str = ""
    probe_files: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    scenario: ScenarioRecord | None = None

    def as_dict(self) -> dict[str, Any]:
        """For the session file; :func:`request_from` is the inverse."""
        return {
            "pairs": self.pairs,
            "axes": self.axes.as_dict(),
            "globs": self.globs,
            "settings": self.settings.as_dict(),
            "python": self.python,
            "probe_files": self.probe_files,
            "scenario": None if self.scenario is None else asdict(self.scenario),
        }


def request_of(
    values: Mapping[str, Any], pairs: tuple[tuple[str, str], ...], command: tuple[str, ...]
) -> Request:
    """The request that the options make of these pairs."""
    return Request(
        pairs=pairs,
        axes=axes_of(values),
        globs=values["paths"],
        settings=settings_of(values),
        python=values["python"],
        probe_files=values["probes"],
        command=command,
    )


def axes_of(values: Mapping[str, Any]) -> Axes:
    devices = values["devices"]
    return Axes(
        shapes=values["shapes"],
        dtypes=values["dtypes"],
        layouts=values["layouts"],
        device=devices[0] if len(devices) == 1 else "auto",
        devices=devices if len(devices) > 1 else (),
    )


def settings_of(values: Mapping[str, Any]) -> Settings:
    return Settings(
        rounds=values["rounds"],
        seed=values["seed"],
        sample_ns=round(values["sample_ms"] * 1e6),
        limit_s=values["timeout"],
        budget_s=values["budget"],
        together=values["together"],
        diagnose=values["diagnose"],
        placements=values["placements"],
        round_trips=values["round_trips"] or 0,
        setup=values["setup"] or "",
    )


REMOVED_SETTINGS = {"first_calls"}
"""Of an earlier dlprof."""
UNKNOWN = "unknown"
"""Dtype or layout of a user's own array that says nothing of itself."""


def request_from(content: dict[str, Any], command: tuple[str, ...]) -> Request:
    """The request that a session file tells of.

    Raises LookupError, TypeError, ValueError or :class:`UsageError` for another thing.
    """
    unknown = set(content["settings"]) - set(Settings().as_dict()) - REMOVED_SETTINGS
    if unknown:
        raise ValueError(f"unknown settings: {unknown}")
    asked = {key: value for key, value in content.items() if key != "environments"}
    request = TypeAdapter(Request).validate_python({**asked, "command": command})
    axes, settings = request.axes, request.settings
    read = replace(
        axes,
        shapes=tuple(parse_shape(shape_text(shape)) for shape in axes.shapes),
        dtypes=tuple(map(_known("dtype"), axes.dtypes)),
        layouts=tuple(map(_known("layout"), axes.layouts)),
    )
    if read != axes or not {axes.device, *axes.devices} <= set(DEVICES):
        raise ValueError(f"these axes cannot be measured: {axes}")
    if set(settings.placements) - set(PLACEMENTS):
        raise ValueError(f"there are no such placements: {settings.placements}")
    times = (settings.limit_s, settings.budget_s or 0.0, settings.sample_ns / 1e9)
    if settings.rounds < 1 or not all(0 <= time_s < LONGEST_S for time_s in times):
        raise ValueError(f"these settings cannot be measured with: {settings}")
    return request


def _known(what: str) -> Callable[[str], str]:
    return lambda name: name if name == UNKNOWN else one_of(name, what)
