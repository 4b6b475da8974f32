"""Growth: what does a conversion leave behind once its result is dropped?

Runs of many conversions after a first one that warms allocators and caches. The smallest growth of
any run counts, since a leak grows in each. Where two runs leave it open whether that is nothing, as
the caches of a framework do that fill for a while, more are made.

The thresholds stand on 2,002 conversions of 64 KiB between NumPy, PyTorch, TensorFlow, JAX and ONNX
Runtime that leave nothing, of eight runs each, on two busy processors. For each conversion, the
smaller growth of two runs was at most 61 bytes of the resident set, 5 bytes of malloc, no reference
and 0.54 objects; the smallest of seven no byte and 0.18 objects, of which counting leaves 0.03.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

CONVERSIONS = 200
"""In each run."""
KEPT_BYTES = 256 << 20
"""A run ends as soon as so much stays behind."""
LEAST_RUNS = 2
MOST_RUNS = 12
"""Where something grows that may be nothing."""
MOST_BYTES = 256 << 20
"""No more runs are made of what leaves more than this in one."""
LEAST_BYTES = 64
"""Smaller arrays than twice this are not told from an allocator's own growth."""


class Limit(NamedTuple):
    """Per conversion: below ``nothing`` nothing is retained, from ``retained`` on something is.

    From ``plain`` on it is at every conversion or two, and needs no further run.
    """

    nothing: float
    retained: float
    plain: float


REFERENCES = Limit(0.01, 0.05, 0.9)
"""To the source. No framework was seen to add one that it did not keep."""
OBJECTS = Limit(0.1, 0.2, 0.9)
"""Blocks of Python's memory: caches of frameworks fill slowly."""


def piece_of(size_bytes: int) -> int:
    """How many conversions of arrays of this size to make before looking at what stays behind."""
    return min(CONVERSIONS, max(1, KEPT_BYTES // max(size_bytes, 1)))


def most_kept(size_bytes: int) -> int:
    """Bytes that a warm-up and two runs keep if every result stays behind."""
    return 3 * min(CONVERSIONS * size_bytes, KEPT_BYTES + piece_of(size_bytes) * size_bytes)


def bytes_limit(size_bytes: int) -> Limit:
    """Of arrays of ``size_bytes``: one in a whole run, one in twenty conversions, one in two."""
    shares = (size_bytes / 200, size_bytes / 20, size_bytes / 2)
    return Limit(*(max(share, LEAST_BYTES) for share in shares))


def measure(
    convert: Callable[[], Any],
    source: Any,
    meters: Sequence[Callable[[], int]],
    size_bytes: int,
) -> dict[str, float]:
    """Bytes, references to the source and objects that one conversion leaves: evidence.

    Of several ``meters`` of bytes in use, the one that grew most counts: none of them sees every
    allocation. ``size_bytes`` are those of the source.
    """
    counters = [*meters, lambda: sys.getrefcount(source), sys.getallocatedblocks]

    def grown() -> tuple[list[float], int]:
        return _grow(convert, counters, piece_of(size_bytes))

    grown()
    least, _ = grown()
    for run in range(2, MOST_RUNS + 1):
        now, conversions = grown()
        least = [min(pair) for pair in zip(least, now, strict=True)]
        found = _evidence(least, size_bytes, run, conversions)
        if not _is_open(found) or found["bytes_per_conversion"] * conversions > MOST_BYTES:
            break
    return found


def _evidence(
    least: Sequence[float], size_bytes: int, runs: int, conversions: int
) -> dict[str, float]:
    *sizes, references, objects = least
    return {
        "bytes_per_conversion": max(sizes, default=0.0),
        "references_per_conversion": references,
        "objects_per_conversion": objects,
        "conversions": conversions,
        "runs": runs,
        "size_bytes": size_bytes,
    }


def _grow(
    convert: Callable[[], Any], counters: Sequence[Callable[[], int]], piece: int
) -> tuple[list[float], int]:
    """What each counter grew by for each conversion, and of how many. All but the last two count
    bytes.
    """
    gc.collect()
    before = [count() for count in counters]
    bytes_in_use = list(zip(counters[:-2], before[:-2], strict=True))
    done = 0
    while done < CONVERSIONS:
        number = min(piece, CONVERSIONS - done)
        for _ in range(number):
            convert()
        done += number
        if done < CONVERSIONS and _is_much(bytes_in_use):
            gc.collect()  # what is garbage only does not stay behind
            if _is_much(bytes_in_use):
                break
    gc.collect()
    after = [count() for count in counters]
    return [(b - a) / done for a, b in zip(before, after, strict=True)], done


def _is_much(bytes_in_use: Sequence[tuple[Callable[[], int], int]]) -> bool:
    return any(count() - before > KEPT_BYTES for count, before in bytes_in_use)


def judge(evidence: dict[str, Any]) -> str:
    """``nothing``, ``retained`` or ``something``, which is more than nothing and proves no more."""
    limited = list(_limited(evidence))
    if any(value >= limit.retained for value, limit in limited):
        return "retained"
    return "something" if any(value >= limit.nothing for value, limit in limited) else "nothing"


def told(evidence: dict[str, Any]) -> str:
    """What grew, where that is neither nothing nor a leak for certain."""
    grown = (
        f"{evidence['bytes_per_conversion']:.0f} bytes",
        f"{evidence['references_per_conversion']:.2g} references to the source",
        f"{evidence['objects_per_conversion']:.2g} blocks of Python's memory",
    )
    which = [
        text
        for text, (value, limit) in zip(grown, _limited(evidence), strict=True)
        if value >= limit.nothing
    ]
    return (
        f"{' and '.join(which)} for each conversion stayed behind in each of {evidence['runs']}"
        f" runs of {evidence['conversions']}: more than frameworks leave that keep nothing, less"
        " than proves a leak"
    )


def _is_open(found: dict[str, float]) -> bool:
    """Whether further runs may tell nothing from something."""
    if judge(found) == "nothing":
        return False
    return not any(value >= limit.plain for value, limit in _limited(found))


def _limited(evidence: dict[str, Any]) -> Iterator[tuple[float, Limit]]:
    """What grew, with the limits of its kind."""
    yield evidence["bytes_per_conversion"], bytes_limit(evidence["size_bytes"])
    yield evidence["references_per_conversion"], REFERENCES
    yield evidence["objects_per_conversion"], OBJECTS
