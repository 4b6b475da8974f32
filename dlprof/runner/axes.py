"""Read the axes of a sweep from text: shapes, dtypes, layouts, placements."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from dlprof.errors import UsageError
from dlprof.probes.base import DTYPES, FLAGS, LAYOUTS
from dlprof.text.clean import nearest

PLACEMENTS = ("convert", "in-loop", "hoisted", "implicit")
NO_TIMES = "times, and a simulated device has none"
"""A requirement, in words."""
MOST_BYTES = 2**63 - 1
PREFIXES = {"": 1, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_LENGTH = re.compile(r"([0-9]{1,19})(ki|mi|gi|ti)?", re.ASCII)
_RANGE = re.compile(r"(\S+?)\.\.(\S+?)(?: by ([0-9]+))?", re.ASCII)


def parse_shape(text: str) -> tuple[int, ...]:
    """Read ``4096x4096``, ``1048576``, ``64Ki`` or ``scalar``. Raises :class:`UsageError`."""
    word = text.strip().lower()
    if word == "scalar":
        return ()
    lengths = [_LENGTH.fullmatch(length) for length in word.split("x")]
    if not all(lengths):
        raise UsageError('expected lengths joined by "x", for example 4096x4096, or scalar')
    shape = tuple(int(found[1]) * PREFIXES[found[2] or ""] for found in lengths if found)
    if math.prod(max(length, 1) for length in shape) > MOST_BYTES // 16:
        raise UsageError("the shape has more elements than memory has addresses")
    return shape


def parse_shapes(text: str) -> tuple[tuple[int, ...], ...]:
    """Read one shape as :func:`parse_shape` does, or a range of lengths as powers of two.

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


def check_shape_list(text: str) -> None:
    """Raise :class:`UsageError` for lengths with commas: NumPy writes one shape like that."""
    words = [word.strip() for word in text.split(",")]
    if len(words) > 1 and all(word.isdecimal() for word in words):
        one = f"{'x'.join(words)} for one array of {len(words)} dimensions"
        several = f", or --shape {words[0]} --shape {words[-1]}" if len({*words}) > 1 else ""
        raise UsageError(f"{text.strip()}: write {one}{several}")


def shape_text(shape: Iterable[int]) -> str:
    """Write a shape as :func:`parse_shape` reads it."""
    return "x".join(str(length) for length in shape) or "scalar"


DEVICES = ("auto", "cpu", "cuda", "simulated")
MOST_SIMULATED = 8
_SIMULATED = re.compile(r"simulated(?::([0-9]+))?", re.ASCII)
KNOWN: dict[str, Iterable[str]] = {
    "dtype": DTYPES,
    "layout": {**LAYOUTS, **FLAGS},
    "placement": PLACEMENTS,
    "device": DEVICES,
}


MEANT = {
    "gpu": "cuda",
    "cuda:0": "cuda",
    "half": "float16",
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp32": "float32",
    "fp64": "float64",
    "double": "float64",
}
"""Common words for a device or a dtype."""


def axis_value(axis: str, text: str) -> tuple[str]:
    """Return the dtype, layout, placement or device (``axis``) that ``text`` names in any case.

    Raises :class:`UsageError` with the nearest name, or all of a few.
    """
    by_lower = {name.lower(): name for name in KNOWN[axis]}
    word = text.strip().lower()
    if word in by_lower or (axis == "device" and simulated_in([word])):
        return (by_lower.get(word, word),)
    if meant := by_lower.get(MEANT.get(word, "")):
        raise UsageError(f"there is no such {axis}; did you mean {meant!r}?")
    hint = f"expected one of {', '.join(by_lower.values())}"
    if axis == "dtype":  # of the other axes all names fit, and 'gpu' is no 'cpu'
        hint = nearest(word, by_lower.values(), hint)
    raise UsageError(f"there is no such {axis}; {hint}")


def simulated_in(devices: Iterable[str]) -> int:
    """Return how many simulated CUDA devices are wanted: 2 for ``simulated:2``.

    Raises :class:`UsageError` for a number that the driver cannot have.
    """
    for device in devices:
        if found := _SIMULATED.fullmatch(device):
            count = int(found[1] or 1)
            if not 1 <= count <= MOST_SIMULATED:
                raise UsageError(f"expected 1 to {MOST_SIMULATED} simulated devices")
            return count
    return 0
