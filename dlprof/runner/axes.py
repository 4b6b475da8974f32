"""Read the axes of a sweep from text: shapes, dtypes, layouts, placements."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from dlprof.errors import UsageError
from dlprof.probes.base import DTYPES, FLAGS, LAYOUTS
from dlprof.text.clean import nearest

PLACEMENTS = {
    "convert": "the conversion alone",
    "in-loop": "convert and use in every iteration",
    "hoisted": "converted once, used in every iteration",
    "implicit": "the foreign array is handed to the operation, which converts by itself",
}
NO_TIMES = "times, and a simulated device has none"
"""What something needs, in words."""
MOST_BYTES = 2**63 - 1
MOST_AXES = 32
PREFIXES = {"": 1, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_LENGTH = re.compile(r"([0-9]+)(ki|mi|gi|ti)?", re.ASCII)
_RANGE = re.compile(r"(\S+?)\.\.(\S+?)(?: by ([0-9]+))?", re.ASCII)


def parse_shape(text: str) -> tuple[int, ...]:
    """``4096x4096``, ``1048576``, ``64Ki``, ``0`` or ``scalar``; lengths in elements.

    Raises :class:`UsageError`.
    """
    word = text.strip().lower()
    if word == "scalar":
        return ()
    lengths = [_LENGTH.fullmatch(length) for length in word.split("x")]
    if not all(lengths):
        raise UsageError('expected lengths joined by "x", for example 4096x4096, or scalar')
    if len(word) > 1000:  # noqa: PLR2004 - Python refuses to read much longer numbers
        raise UsageError("the shape is too long")
    shape = tuple(int(found[1]) * PREFIXES[found[2] or ""] for found in lengths if found)
    if len(shape) > MOST_AXES:
        raise UsageError(f"the shape has {len(shape)} axes; at most {MOST_AXES} can be measured")
    if math.prod(max(length, 1) for length in shape) > MOST_BYTES // 16:
        raise UsageError("the shape has more elements than memory has addresses")
    return shape


def parse_shapes(text: str) -> tuple[tuple[int, ...], ...]:
    """One shape as in :func:`parse_shape`, or a range of lengths as powers of two.

    ``1Ki..1Gi`` is 1024, 2048, … up to 2**30; ``1Ki..1Gi by 16`` is every fourth of them. Raises
    :class:`UsageError`.
    """
    if ".." not in text:
        return (parse_shape(text),)
    found = _RANGE.fullmatch(text.strip())
    bounds = [parse_shape(word) for word in found.groups()[:2]] if found else []
    step = int(found[3] or 2) if found else 0
    if [len(bound) for bound in bounds] != [1, 1] or not 1 < step <= MOST_BYTES:
        raise UsageError("expected a range of lengths, for example 1Ki..1Gi or 1Ki..1Gi by 16")
    first, last = bounds[0][0], bounds[1][0]
    if not all(n > 0 and n & (n - 1) == 0 for n in (first, last, step)):
        raise UsageError("both ends and the step of a range are powers of two")
    if first > last:
        raise UsageError("the range begins after its end")
    lengths = []
    while first <= last:
        lengths.append((first,))
        first *= step
    return tuple(lengths)


def shape_text(shape: Iterable[int]) -> str:
    """The inverse of :func:`parse_shape`."""
    return "x".join(str(length) for length in shape) or "scalar"


FEW = 4
"""A message lists so few names in full."""
DEVICES = ("auto", "cpu", "cuda", "simulated")
MOST_SIMULATED = 8
_SIMULATED = re.compile(r"simulated(?::([0-9]+))?", re.ASCII)
KNOWN: dict[str, Iterable[str]] = {
    "dtype": DTYPES,
    "layout": {**LAYOUTS, **FLAGS},
    "placement": PLACEMENTS,
    "device": DEVICES,
}


def one_of(text: str, what: str) -> str:
    """The name that ``text`` is in any case, of the dtypes, layouts, placements or devices.

    Raises :class:`UsageError` with the nearest name, or all.
    """
    by_lower = {name.lower(): name for name in KNOWN[what]}
    word = text.strip().lower()
    if word in by_lower or (what == "device" and simulated_in([word])):
        return by_lower.get(word, word)
    every = f"expected one of {', '.join(by_lower.values())}"
    near = nearest(word, by_lower.values(), every) if len(by_lower) > FEW else every
    raise UsageError(near if near == every else f"there is no such {what}; {near}")


def simulated_in(devices: Iterable[str]) -> int:
    """How many simulated CUDA devices are asked for: 1 by ``simulated``, 2 by ``simulated:2``.

    Raises :class:`UsageError` for a number that the driver cannot have.
    """
    for device in devices:
        if found := _SIMULATED.fullmatch(device):
            count = int(found[1] or 1)
            if not 1 <= count <= MOST_SIMULATED:
                raise UsageError(f"expected 1 to {MOST_SIMULATED} simulated devices")
            return count
    return 0
