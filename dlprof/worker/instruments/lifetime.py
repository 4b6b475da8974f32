"""Lifetime: does the result outlive its source, and does everything go when it is dropped?

At a size of its own, whatever the case's: the source and every intermediate are dropped while the
result lives, the memory is used again for other values, and the result is read once more. Proof of
a dangling result: its values changed (or the process died of reading them, which is why this runs
when all times are taken, and says where it is). Then the conversion is repeated with its results
dropped: memory, Python objects or references to the source that go on growing are retained. It
cannot tell where no values can be read.

Growth is measured in runs of many conversions after a first one that warms allocators and caches.
The smallest growth of any run counts, since a leak grows in each. Where two runs leave it open
whether that is nothing, as the caches of a framework do that fill for a while, more are made.

The thresholds stand on 2,002 conversions of 64 KiB between NumPy, PyTorch, TensorFlow, JAX and ONNX
Runtime that leave nothing, of eight runs each, on two busy processors. For each conversion, the
smaller growth of two runs was at most 61 bytes of the resident set, 5 bytes of malloc, no reference
and 0.54 objects; the smallest of seven no byte and 0.18 objects, of which counting leaves 0.03.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from dlprof.probes.base import DTYPES, WHOLE_LAYOUTS, Probe, Unsupported
from dlprof.protocol.messages import AFTER_DROP
from dlprof.worker import memory
from dlprof.worker.memory import malloc_meter, resident_bytes
from dlprof.worker.subject import Subject, compile_call

if TYPE_CHECKING:
    from dlprof.device.cuda import Gpu


CHURN = 4
"""Arrays and blocks of the source's size that are made after it was dropped."""
SIZE_BYTES = 64 << 10
"""Small enough that the allocator hands freed memory out again instead of returning it."""
LARGEST_BYTES = 64 << 20
"""An array of a user's own may be larger; many of them would not fit into memory."""
UNCOUNTED = "neither framework says how much of the device's memory it uses"


class Listener(Protocol):
    """Is told how far it got, and what was found by then; see ``dlprof.worker.case``."""

    def stage(self, name: str) -> None: ...
    def part(self, name: str, value: Any) -> None: ...


class Nobody:
    """A listener that is not there."""

    def stage(self, name: str) -> None: ...
    def part(self, name: str, value: Any) -> None: ...


def measure(
    subject: Subject, gpu: Gpu | None = None, listener: Listener | None = None
) -> dict[str, Any]:
    """Verdict ``safe``, ``dangling``, ``retained`` or ``unknown`` with evidence."""
    listener = listener or Nobody()
    subject.check_own()
    other = subject.of_elements(SIZE_BYTES // max(DTYPES.get(subject.spec.dtype, 1), 1))
    if subject.is_one_array and not other.spec.size_bytes:
        raise Unsupported("nothing tells how many bytes the source has")
    if other.spec.size_bytes > LARGEST_BYTES:
        raise Unsupported(f"the array is larger than {LARGEST_BYTES:,} bytes: too large to repeat")
    evidence: dict[str, Any] = {"changed_after_drop": _changed_after_drop(other, gpu, listener)}
    listener.part("after_drop", evidence)
    listener.stage("lifetime repetition")
    source = other.make_another()
    convert = other.converting(source)

    def convert_and_wait() -> None:
        subject.wait_for(convert())  # what is still being made is not retained

    if other.spec.device == "cpu" and not evidence["changed_after_drop"]:
        memory.check_more(most_kept(other.spec.size_bytes))
    evidence |= measure_growth(convert_and_wait, source, _meters(subject), other.spec.size_bytes)
    if "cuda" in _places(subject) and not _counting(subject):
        evidence["device_counted"] = False
    verdict, reason = judge(evidence)
    if verdict in ("dangling", "retained"):
        evidence |= other.made()
    return {"verdict": verdict, "evidence": {**evidence, **({"reason": reason} if reason else {})}}


def judge(evidence: dict[str, Any]) -> tuple[str, str | None]:
    """The verdict that the evidence allows, and why if something grew that proves nothing."""
    if evidence["changed_after_drop"]:
        return "dangling", None
    left = judge_growth(evidence)
    if left == "retained":
        return "retained", None
    if left == "nothing" and evidence.get("device_counted") is False:
        return "unknown", UNCOUNTED
    if left == "nothing":
        return ("unknown" if evidence["changed_after_drop"] is None else "safe"), None
    return "unknown", told(evidence)


def _changed_after_drop(subject: Subject, gpu: Gpu | None, listener: Listener) -> bool | None:
    if not subject.import_.returns_array or subject.spec.elements == 0:
        return None
    namespace = {**subject.namespace, "x": subject.make_another()}
    result = compile_call(subject.code, namespace)()
    subject.wait_for(result)
    before = subject.consumer.to_numpy(result).tobytes()
    listener.stage(AFTER_DROP)
    del namespace["x"]
    gc.collect()
    subject.producer.give_back(subject.spec.device)
    kept = _churn(subject, gpu)
    after = subject.consumer.to_numpy(result).tobytes()
    listener.stage("lifetime release")
    del kept, result
    return bool(before != after)


def _churn(subject: Subject, gpu: Gpu | None) -> list[Any]:
    """Arrays and plain memory of the source's size, with values of their own."""
    size = subject.spec.size_bytes
    kept: list[Any] = []
    for _ in range(CHURN):
        array = subject.make_another()
        _overwrite(subject, array, size, gpu)
        block = ctypes.create_string_buffer(size)
        ctypes.memset(block, 0xA5, size)
        kept += [array, block]
    return kept


def _overwrite(subject: Subject, array: Any, size: int, gpu: Gpu | None) -> None:
    if subject.producer.write(array, 1) is not NotImplemented:
        return
    address = subject.producer.pointer(array)
    if address is None or subject.spec.layout not in WHOLE_LAYOUTS:
        return
    if subject.spec.device == "cpu":
        if not memory.is_read_only(address):
            ctypes.memset(address, 0xA5, size)
    elif gpu is not None:
        gpu.write(address, b"\xa5" * size)


def _meters(subject: Subject) -> list[Callable[[], int]]:
    """Bytes in use, where source and result are: the frameworks' counters on a device; malloc's
    and the system's on the host.
    """
    meters = []
    counting = _counting(subject)
    if counting:
        meters.append(lambda: sum(probe.memory_in_use("cuda") or 0 for probe in counting))
    if "cpu" in _places(subject):
        malloc_bytes = malloc_meter()
        meters += [resident_bytes] if malloc_bytes is None else [resident_bytes, malloc_bytes]
    return meters


def _places(subject: Subject) -> set[str]:
    return {subject.spec.device, subject.result_device}


def _counting(subject: Subject) -> list[Probe]:
    """The frameworks that say how much of the device's memory they use."""
    if "cuda" not in _places(subject):
        return []
    probes = {probe.name: probe for probe in (subject.producer, subject.consumer)}
    return [probe for probe in probes.values() if probe.memory_in_use("cuda") is not None]


CONVERSIONS = 200
"""In each run."""
KEPT_BYTES = 256 << 20
"""A run ends as soon as so much stays behind."""
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


def measure_growth(
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


def judge_growth(evidence: dict[str, Any]) -> str:
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
    if judge_growth(found) == "nothing":
        return False
    return not any(value >= limit.plain for value, limit in _limited(found))


def _limited(evidence: dict[str, Any]) -> Iterator[tuple[float, Limit]]:
    """What grew, with the limits of its kind."""
    yield evidence["bytes_per_conversion"], bytes_limit(evidence["size_bytes"])
    yield evidence["references_per_conversion"], REFERENCES
    yield evidence["objects_per_conversion"], OBJECTS
