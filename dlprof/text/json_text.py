"""JSON as its standard has it: no NaN, no infinity, and no deeper than a program can follow."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import BeforeValidator

DEEPEST = 64
"""Levels of what has no fixed form. Evidence has four."""
HUGE = re.compile(r"[eE]\+?\d{3}|\d{300}")
"""What every number has that no float can hold."""


class NotJson(ValueError):
    """A text that is no JSON; the message says why, in our words."""


def read(text: str) -> Any:
    """What ``text`` says. Words that JSON does not know (``NaN``) are None, as are numbers too
    large for a float. Raises :class:`NotJson`.
    """
    try:
        content = json.loads(text, parse_constant=lambda _: None)
        return finite(content) if HUGE.search(text) else content
    except json.JSONDecodeError as error:
        raise NotJson(str(error)) from None
    except RecursionError:
        raise NotJson("it is nested too deeply") from None
    except ValueError:  # sys.get_int_max_str_digits
        raise NotJson("a whole number in it has more digits than anything measured has") from None


def dump(content: Any) -> str:
    """``content`` as one line of JSON; what is not finite is ``null``."""
    try:
        return json.dumps(content, allow_nan=False)
    except ValueError:
        return json.dumps(finite(content), allow_nan=False)


def finite(value: Any) -> Any:
    """``value`` with None for every number that JSON cannot hold."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [finite(part) for part in value]
    return value


def _plain(value: Any) -> Any:
    """``value`` as JSON can hold it. Raises ValueError where it is nested too deeply."""
    level = [value]
    for _ in range(DEEPEST):
        level = [part for whole in level if _holds(whole) for part in _parts(whole)]
        if not level:
            return finite(value)
    raise ValueError("nested too deeply")


def _holds(value: Any) -> bool:
    return isinstance(value, dict | list | tuple)


def _parts(whole: Any) -> Iterable[Any]:
    return whole.values() if isinstance(whole, dict) else whole


Free = Annotated[Any, BeforeValidator(_plain)]
"""A value of no fixed form: what a model holds of it is JSON."""
