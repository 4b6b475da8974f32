"""Measures of a session file in which a number is missing: ``NaN``, infinity, or ``null`` for one.

A session is worth reading without them. So each is read as a measure that was not made, with the
reason in the notes of its result; all else stays as it is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

TIMES = frozenset(("host_time", "ready_time", "in_loop", "hoisted", "implicit", "step", "fresh",
                   "reading", "fresh_reading", "idle"))  # fmt: skip
NULLABLE = TIMES | {"share", "saved", "saved_reading", "versus", "shape_change", "loaded"}
"""Keys of measures that may be null, in results and in round trips."""
NO_TIME, NO_NUMBER = "its time is no number", "it is no number"
NOT_NUMBERS = ("float_type", "finite_number")
"""What pydantic calls a value that should be a number and is none."""

Kind = TypeVar("Kind", bound=BaseModel)
Place = tuple[int | str, ...]


def validated(model: type[Kind], content: Any) -> Kind:
    """``content``, as read from JSON, as a ``model``, without the measures that lack a number.

    Changes ``content``. Raises pydantic's ``ValidationError`` for faults of any other kind.
    """
    try:
        return model.model_validate(content)
    except ValidationError as error:
        if not _set_aside(content, error.errors(include_url=False)):
            raise
    return model.model_validate(content)


def _set_aside(content: Any, faults: Iterable[Mapping[str, Any]]) -> bool:
    """Take each measure out of ``content`` that lacks a number; whether there was any."""
    lost = dict.fromkeys(_measure(fault["loc"]) for fault in faults if _lacks_number(fault))
    places = [place for place in lost if place]
    for place in places:
        _take_out(content, place)
    return bool(places)


def _lacks_number(fault: Mapping[str, Any]) -> bool:
    given = fault["input"]
    is_none = given is None or (isinstance(given, float) and not math.isfinite(given))
    return is_none and fault["type"] in NOT_NUMBERS


def _measure(place: Place) -> Place:
    """The smallest measure around the number at ``place`` that may be missing; empty if none."""
    match place:
        case ("round_trips", int(), "parts", _):
            return place
        case ("results" | "round_trips", int(), *_):
            inner = (end for end in range(len(place) - 1, 2, -1) if place[end - 1] in NULLABLE)
            return place[: next(inner, 0)]
    return ()


def _take_out(content: Any, place: Place) -> None:
    *above, last = place
    whole = content
    for step in above:
        whole = whole[step]
    if last not in NULLABLE:
        del whole[last]
        return
    whole[last] = None
    _note(content[place[0]][place[1]], place)


def _note(owner: dict[str, Any], place: Place) -> None:
    name = ": ".join(map(str, place[2:]))
    why = NO_TIME if place[-1] in TIMES else NO_NUMBER
    if place[0] == "round_trips":
        owner["reason"] = owner.get("reason") or f"{name}: {why}"
    elif isinstance(owner.setdefault("notes", []), list):
        owner["notes"].append(f"{name}: {why}")
