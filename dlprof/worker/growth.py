"""Growth: what does each of many calls leave behind?

A first run of calls fills caches and does not count. The smallest growth of all later runs counts,
because a leak grows in each. If something stays, a last run is counted :data:`RELEASED_S` after its
end: a late release is no leak.

The thresholds rest on 2,002 conversions of 64 KiB between NumPy, PyTorch, TensorFlow, JAX and ONNX
Runtime that retain nothing, eight runs each, on two busy processors. The smallest growth of seven
runs, per conversion, was no byte, no reference and 0.18 objects; counting itself leaves 0.03.
``tf.experimental.numpy.copy`` of 4 MB left up to 0.45 objects in the smallest of twelve, and none
after 2,600 calls.
"""

from __future__ import annotations

import gc
import math
import os
import sys
import time
import timeit
from array import array
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dlprof.probes.base import Unsupported
from dlprof.worker.memory import malloc_meter, resident_bytes, trim
from dlprof.worker.source_text import compile_call, statements
from dlprof.worker.subject import Subject

CALLS = 200
"""In each run."""
FEW = 30
"""In a trial, which only tells whether something stays at every call or two."""
RUN_S, LEAST_CALLS = 0.5, 15
"""A run of slow calls has fewer of them, and takes about ``RUN_S``."""
SLOWEST_S = 0.1
"""A call that takes longer is not repeated."""
MOST_RUNS = 12
"""While the growth is neither plain nor nothing."""
STEADY = 0.9
"""A leak grows alike in each run. A cache fills: its runs grow less and less. Of polars 1.40.1,
``to_pandas`` left 1.1 objects per call after 200 calls, and 0.05 after 2,000."""
KEPT_BYTES = 256 << 20
"""A run ends early once this much stays behind."""
RELEASED_S = 2.0
NEW_SOURCE_BYTES = 16 << 10
"""The size of each new source. PyTorch uses several threads for 32,768 elements. They cost 7 ms for
each array on a busy machine."""
LEAST_BYTES = 64
"""An allocator's own growth; arrays of less than twice this cannot be told from it."""


class Limit(NamedTuple):
    """Per call: below ``nothing`` nothing is retained, from ``retained`` on something is.

    From ``plain`` on it is at every call or two, and needs no further run.
    """

    nothing: float
    retained: float
    plain: float


REFERENCES = Limit(0.01, 0.05, 0.9)
"""References to the source. Frameworks that keep nothing add none."""
OBJECTS = Limit(0.1, 0.9, 0.9)
"""Blocks of Python's memory. Caches fill slowly: less than one per call is no leak."""
HANDLES = Limit(0.1, 0.5, 0.9)
"""File descriptors, threads and memory maps."""


def bytes_limit(size_bytes: float) -> Limit:
    """Return the limit for ``size_bytes``: one array in 200 calls, one in twenty, one in two."""
    shares = (size_bytes / 200, size_bytes / 20, size_bytes / 2)
    return Limit(*(max(share, LEAST_BYTES) for share in shares))


HANDLE_COUNTS: dict[str, Callable[[], int]] = {
    "descriptors": lambda: len(os.listdir("/proc/self/fd")),  # noqa: PTH208 - names alone
    "threads": lambda: len(os.listdir("/proc/self/task")),  # noqa: PTH208
    "maps": lambda: Path("/proc/self/maps").read_bytes().count(b"\n"),
}


def choose_meters(subject: Subject) -> tuple[list[Callable[[], int]], bool]:
    """Return meters of the bytes in use by source and result, and whether a device has none.

    On a device these are counters of the frameworks, on the host of the system and of malloc.
    """
    sides = (
        (subject.spec.device, subject.producer),
        (subject.result_device, subject.consumer),
    )
    places = {place for place, _ in sides}
    on_device = {probe.name: probe for place, probe in sides if place == "cuda"}
    texts = (probe.idioms("cuda", subject.spec.dtype) for probe in on_device.values())
    counting = [idioms["memory"] for idioms in texts if "memory" in idioms]
    meters: list[Callable[[], int]] = []
    if counting:
        meters.append(compile_call(" + ".join(counting), subject.namespace))
    if "cpu" in places:
        malloc_bytes = malloc_meter()
        meters += [resident_bytes] if malloc_bytes is None else [resident_bytes, malloc_bytes]
    return meters, "cuda" in places and not counting


def measure_growth(
    call: Callable[[], Any],
    source: Any,
    meters: Sequence[Callable[[], int]],
    size_bytes: int,
    calls: int = CALLS,
    *,
    trial: bool = False,
) -> dict[str, float]:
    """Return evidence of what one call leaves behind; a ``trial`` ends after one run.

    The one of ``meters`` that grew most counts, since none of them sees every allocation.
    """
    counters = [*HANDLE_COUNTS.values(), lambda: sys.getrefcount(source), sys.getallocatedblocks]
    names = [*HANDLE_COUNTS, "references", "objects"]
    call_s = min(timeit.repeat(call, timer=time.monotonic, number=1, repeat=2))
    if call_s > SLOWEST_S:
        raise Unsupported(f"a call takes {call_s:.2g} s: too slow to repeat")
    calls = min(calls, max(LEAST_CALLS, int(RUN_S / max(call_s, 1e-9))))
    _grown(call, [*counters, *meters], meters, calls)
    least = [math.inf] * (len(counters) + len(meters))
    found: dict[str, float] = {"size_bytes": size_bytes}
    most_objects, is_steady = math.inf, False
    for run in range(1, MOST_RUNS + 1):
        is_last = run == MOST_RUNS or (reaches(found, "plain") and is_steady)
        wait_s = RELEASED_S if is_last else 0.0
        grown = _grown(call, [*counters, *meters], meters, calls, wait_s)
        objects = grown[len(counters) - 1]
        is_steady = objects < OBJECTS.plain or objects >= STEADY * most_objects
        most_objects = objects if run == 1 else max(objects, most_objects)
        least = [min(pair) for pair in zip(least, grown, strict=True)]
        found = {
            **{f"{name}_per_conversion": rise for name, rise in zip(names, least, strict=False)},
            "bytes_per_conversion": max(least[len(counters) :], default=0.0),
            "conversions": calls,
            "size_bytes": size_bytes,
        }
        # A later run could only lower the least.
        if trial or is_last or not reaches(found, "nothing"):
            break
    return found


def _grown(
    call: Callable[[], Any],
    counters: Sequence[Callable[[], int]],
    meters: Sequence[Callable[[], int]],
    calls: int,
    wait_s: float = 0.0,
) -> list[float]:
    """Return how much each counter rose per call, ``wait_s`` after the last one."""
    most = [count() + KEPT_BYTES for count in meters]
    gc.collect()  # also of what a meter leaves: torch.cuda.memory_stats makes a cycle
    if wait_s:
        trim()  # freed memory that stays resident looks like a leak
    # What counting makes would count as objects of the calls.
    before, after = array("q", [0] * len(counters)), array("q", [0] * len(counters))
    _count(counters, before)
    done = 0
    while done < calls:
        if done % 8 == 0 and any(count() > end for count, end in zip(meters, most, strict=True)):
            break
        call()
        done += 1
    gc.collect()
    if wait_s:
        time.sleep(wait_s)
        gc.collect()
        trim()
    _count(counters, after)
    return [(b - a) / max(done, 1) for a, b in zip(before, after, strict=True)]


def _count(counters: Sequence[Callable[[], int]], numbers: array[int]) -> None:
    for place, count in enumerate(counters):
        numbers[place] = count()


def measure_new_sources(
    subject: Subject,
    meters: Sequence[Callable[[], int]],
    use: Callable[[Callable[[], Any]], None],
) -> dict[str, Any]:
    """Return what every call plainly leaves behind if each has a new source; empty for nothing.

    The growth by making the sources is subtracted. ``use`` gets the call. Two trials of
    :data:`FEW` calls come first.
    """
    namespace, size = dict(subject.namespace), subject.spec.size_bytes
    create = statements(subject.producer.create(subject.spec), namespace, "create")
    convert = compile_call(subject.code, namespace)

    def once() -> None:
        create()
        use(convert)

    for _ in range(2):  # the first may only warm up
        trial = measure_growth(once, object(), meters, size, FEW, trial=True)
        if not reaches(trial, "plain"):
            return {}
    found = measure_growth(once, object(), meters, size)
    if not reaches(found, "plain"):
        return {}
    alone = measure_growth(create, object(), meters, size, trial=True)
    found |= {name: found[name] - alone[name] for name in found if name.endswith("_per_conversion")}
    return found if reaches(found, "plain") else {}


def reaches(evidence: dict[str, Any], degree: str) -> bool:
    """Whether any growth reaches the limit of its kind: ``nothing``, ``retained`` or ``plain``."""
    limits = {
        "bytes": bytes_limit(evidence["size_bytes"]),
        "references": REFERENCES,
        "objects": OBJECTS,
        **dict.fromkeys(HANDLE_COUNTS, HANDLES),
    }
    return any(
        evidence.get(f"{name}_per_conversion", 0.0) >= getattr(limit, degree)
        for name, limit in limits.items()
    )
