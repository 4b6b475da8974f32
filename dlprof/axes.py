"""Read the axes of a sweep from text: shapes, dtypes, layouts, placements."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Mapping

from dlprof.errors import UsageError
from dlprof.probes.base import DTYPES, LAYOUTS

PLACEMENTS = {
    "convert": "the conversion alone",
    "in-loop": "convert and use in every iteration",
    "hoisted": "converted once, used in every iteration",
    "implicit": "the foreign array is handed to the operation, which converts by itself",
}
MOST_BYTES = 2**63 - 1
MOST_AXES = 32


def parse_shape(text: str) -> tuple[int, ...]:
    """``4096x4096``, ``1048576``, ``0`` or ``scalar``; lengths in elements.

    Raises :class:`UsageError`.
    """
    word = text.strip().lower()
    if word == "scalar":
        return ()
    if not re.fullmatch(r"[0-9]+(x[0-9]+)*", word) or not word.isascii():
        raise UsageError(f"shape {text!r} is not like 4096x4096, 1048576, 0 or scalar")
    if len(word) > 1000:  # noqa: PLR2004 - Python refuses to read much longer numbers
        raise UsageError(f"shape of {len(word)} characters is too long")
    shape = tuple(int(length) for length in word.split("x"))
    if len(shape) > MOST_AXES:
        raise UsageError(
            f"shape {text!r} has {len(shape)} axes; at most {MOST_AXES} can be measured"
        )
    if math.prod(max(length, 1) for length in shape) > MOST_BYTES // 16:
        raise UsageError(f"shape {text!r} has more elements than memory has addresses")
    return shape


def shape_text(shape: Iterable[int]) -> str:
    """The inverse of :func:`parse_shape`."""
    return "x".join(str(length) for length in shape) or "scalar"


def parse_dtype(text: str) -> str:
    """The dtype of a name such as ``float32``. Raises :class:`UsageError` with the nearest one."""
    return _one_of(text, DTYPES, "dtype")


def parse_layout(text: str) -> str:
    """The layout of a name, in any case. Raises :class:`UsageError` with the nearest one."""
    return _one_of(text, LAYOUTS, "layout")


def parse_placement(text: str) -> str:
    """The placement of a name, in any case. Raises :class:`UsageError` with the nearest one."""
    return _one_of(text, PLACEMENTS, "placement")


def _one_of(text: str, known: Mapping[str, object], what: str) -> str:
    by_lower = {name.lower(): name for name in known}
    word = text.strip().lower()
    if word in by_lower:
        return by_lower[word]
    near = difflib.get_close_matches(word, by_lower, n=1)
    hint = f"did you mean {by_lower[near[0]]!r}?" if near else f"known are {', '.join(known)}"
    raise UsageError(f"there is no {what} {text!r}: {hint}")


def split(texts: Iterable[str]) -> list[str]:
    """Options may be repeated or comma-separated."""
    return [word for text in texts for word in text.split(",") if word.strip()]
