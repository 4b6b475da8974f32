"""A scenario and the command line together, and where each value comes from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dlprof.scenario.model import Scenario
from dlprof.scenario.read import validated

TOLD = frozenset(("title", "question", "source", "expect", "report", "thresholds", "floor"))
"""What says nothing of how it is measured; thresholds are told by their names."""
ORIGINS = ("file", "command line", "default")

Origins = tuple[tuple[str, str, str], ...]


def settle(scenario: Scenario, given: Mapping[str, Any], name: str) -> tuple[Scenario, Origins]:
    """The scenario with what was ``given`` on the command line, and the origin of every value.

    An origin is the key, the value as text, and one of :data:`ORIGINS`. Raises
    :class:`~dlprof.errors.ScenarioError` where both together make no sense.
    """
    written = scenario.model_dump(exclude_unset=True)
    whole = validated({**written, **given}, name)
    found = [
        (key, value_text(getattr(whole, key)), _origin(key, written, given))
        for key in Scenario.model_fields
        if key not in TOLD
    ]
    found += [
        (f"threshold {key}", value_text(value), _origin("thresholds", written, given))
        for key, value in whole.thresholds.items()
    ]
    return whole, tuple(origin for origin in found if origin[1])


def value_text(value: Any) -> str:
    """A value as a person would write it; empty for none."""
    if value is None or value == []:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, list):
        return ", ".join(str(getattr(item, "name", item)) for item in value)
    return str(value)


def _origin(key: str, written: Mapping[str, Any], given: Mapping[str, Any]) -> str:
    return "command line" if key in given else "file" if key in written else "default"
