"""JSON as its standard has it: no NaN, no infinity, and no deeper than a program can follow."""

from __future__ import annotations

import json
import math
import re
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


def finite(value: Any, levels: int = 1000) -> Any:
    """``value`` with None for every number that JSON cannot hold.

    Raises ValueError where it is nested deeper than so many ``levels``.
    """
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if not isinstance(value, dict | list | tuple):
        return value
    if levels == 0:
        raise ValueError("nested too deeply")
    if isinstance(value, dict):
        return {key: finite(part, levels - 1) for key, part in value.items()}
    return [finite(part, levels - 1) for part in value]


def _plain(value: Any) -> Any:
    return finite(value, DEEPEST)


Free = Annotated[Any, BeforeValidator(_plain)]
"""A value of no fixed form: what a model holds of it is JSON."""
