"""What the user asked for, and how a session file tells of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from pydantic import TypeAdapter

from dlprof.plan.axes import PLACEMENTS, parse_dtype, parse_layout, parse_shape, shape_text
from dlprof.plan.pairing import Axes
from dlprof.plan.scenario_record import ScenarioRecord
from dlprof.plan.settings import LONGEST_S, Settings

DEVICES = ("auto", "cpu", "cuda")


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


ONE_INTERPRETER = (
    "a session holds one; run dlprof once per interpreter (--python PATH) and compare the sessions"
)

UNKNOWN = "unknown"
"""Dtype or layout of a user's own array that says nothing of itself."""


def _parsed(parse: Callable[[str], str], name: str) -> str:
    return name if name == UNKNOWN else parse(name)


def request_from(content: dict[str, Any], command: tuple[str, ...]) -> Request:
    """The request that a session file tells of.

    Raises LookupError, TypeError, ValueError or :class:`UsageError` for another thing.
    """
    unknown = set(content["settings"]) - set(Settings().as_dict())
    if unknown:
        raise ValueError(f"unknown settings: {unknown}")
    asked = {key: value for key, value in content.items() if key != "environments"}
    request = TypeAdapter(Request).validate_python({**asked, "command": command})
    axes, settings = request.axes, request.settings
    read = replace(
        axes,
        shapes=tuple(parse_shape(shape_text(shape)) for shape in axes.shapes),
        dtypes=tuple(_parsed(parse_dtype, name) for name in axes.dtypes),
        layouts=tuple(_parsed(parse_layout, name) for name in axes.layouts),
    )
    if read != axes or not {axes.device, *axes.devices} <= set(DEVICES):
        raise ValueError(f"these axes cannot be measured: {axes}")
    if set(settings.placements) - set(PLACEMENTS):
        raise ValueError(f"there are no such placements: {settings.placements}")
    times = (settings.limit_s, settings.budget_s or 0.0, settings.sample_ns / 1e9)
    if settings.rounds < 1 or not all(0 <= time_s < LONGEST_S for time_s in times):
        raise ValueError(f"these settings cannot be measured with: {settings}")
    return request
