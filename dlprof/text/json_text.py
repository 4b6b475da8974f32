"""Standard JSON: without NaN, infinity, and text that steers a terminal."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from dlprof.text.clean import sanitised

ESCAPED = re.compile(r"\\[bfru]")
"""Escapes of JSON for characters that :func:`sanitised` escapes."""


def loads(text: str) -> Any:
    """Return one value, :func:`sanitised`. Words that JSON lacks (``NaN``) become None.

    Raises ValueError for a text that is not JSON, and RecursionError for one nested too deeply.
    """
    value = json.loads(text, parse_constant=lambda _: None)
    may_hide = not text.isascii() or "\x7f" in text or ESCAPED.search(text)
    return sanitised(value) if may_hide else value


def dump(content: Any) -> str:
    """Return ``content`` as one line of JSON, with ``null`` for NaN and infinity."""
    try:
        return json.dumps(content, allow_nan=False)
    except ValueError:
        return json.dumps(finite(content), allow_nan=False)


def finite(value: Any, levels: int = 1000) -> Any:
    """Return ``value`` with None for every number that JSON cannot hold.

    Raises ValueError if it is nested deeper than ``levels``.
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
