"""Lifetime: does the result outlive its source, and does everything go when it is dropped?

The source and every intermediate are dropped while the result lives, their memory is used again
for other values, and the result is read once more. Proof of a dangling result: its values changed,
or the process died of reading them, or that raised an exception where it did not with the source.
On the host that is done at three sizes: dropped at once, by the garbage collector, and in another
thread. A user's own array has one size, and its setup makes the others. The other way round, a
result is dropped while its source lives, which must keep its values. All the while an array is held
that is not converted. If its values change as well, a change proves nothing: x may be a buffer that
a thread or a device writes.

Then the conversion is repeated and its results dropped: memory, Python objects, references to the
source, file descriptors, memory maps or threads that go on growing are retained. Meanwhile one
result is held whose source is gone, and read last: a framework may release the source later.

Growth is measured in runs of many conversions after a first one that fills caches. The smallest
growth of all runs counts, since a leak grows in each. Further runs follow if two leave it open. If
something stays behind, a last run follows after :data:`RELEASED_S`, and must leave something, too.
If what stayed fell meanwhile, the last run is counted as long: what is released late is no leak. If
nothing stays, each call gets a new source: a framework may keep something of each array that it
sees for the first time.

Verdicts: ``safe``, ``dangling``, ``retained``, ``unknown``.

The thresholds rest on 2,002 conversions of 64 KiB between NumPy, PyTorch, TensorFlow, JAX and ONNX
Runtime that retain nothing, eight runs each, on two busy processors. The smaller growth of two
runs, per conversion, was at most 61 bytes of the resident set, 5 bytes of malloc, no reference and
0.54 objects. The smallest of seven was no byte and 0.18 objects, of which counting leaves 0.03.
"""

from __future__ import annotations

import ctypes
import gc
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from dlprof.device.cuda import Gpu
from dlprof.probes.base import Unsupported
from dlprof.protocol.messages import (
    AFTER_DROP,
    NO_ARRAY,
    NO_SIZE,
    SAME,
    SOURCE_AFTER_DROP,
    UNSTEADY,
    verdict,
    words,
)
from dlprof.worker.channel import Answer
from dlprof.worker.memory import malloc_meter, resident_bytes
from dlprof.worker.refusal import Refusal, attempt
from dlprof.worker.source_text import compile_call, statements
from dlprof.worker.subject import Subject

CHURN = 4
"""At least so many arrays and blocks of the source's size are made after it was dropped."""
MOST_CHURN = 64
"""At most so many, if none of them comes to lie where the source was: a pool may have other free
blocks, which it hands out first."""
MOST_CHURN_BYTES = 16 << 20
SIZE_BYTES = 64 << 10
"""Small enough that the allocator hands freed memory out again instead of returning it."""
NEW_SOURCE_BYTES = 16 << 10
"""Of each of many new sources. PyTorch takes several threads for 32,768 elements, which cost 7 ms
for each array on a busy machine."""
FEW = 30
"""Calls of each run that only asks whether something stays at every call or two."""
SMALL_BYTES = 512
"""Some frameworks keep small arrays in the object itself, or copy them."""
LARGE_BYTES = 2 << 20
"""The system gives such memory out by pages, and has it back at once."""
LARGEST_BYTES = 64 << 20
"""Many copies of a larger array of a user's own would not fit into memory."""
SLOW_SETUP_S = 0.05
"""A user's setup that takes longer is not run hundreds of times."""
LATER_S = 0.3
"""How long a result is held without its source."""
RELEASED_S, LOOK_S = 2.0, 0.1
"""What is released late is released by then, and how often that is looked at."""
RELEASED = 0.1
"""A growth stays if it falls by no more than this: some objects of Python come and go."""
CHANGED = "changed"
SLOW_SETUP = (
    f"x is dropped in one way, and not in others: its setup takes over {1000 * SLOW_SETUP_S:.0f} ms"
)
SAME_VALUES = "memory of x that is used again has the same values, so that a loss would not show"
UNCOUNTED = "neither framework says how much of the device's memory it uses"


class Control(NamedTuple):
    """An array that is not converted, and the values that it had."""

    array: Any
    values: bytes | Refusal


class WithoutSource(NamedTuple):
    """A result, its values before its source was dropped, where that was, and since when."""

    subject: Subject
    result: Any
    values: bytes
    address: int | None
    since: float
    control: Control


def hold(subject: Subject, answer: Answer) -> list[WithoutSource]:
    """Results to be read later, at the size of the instrument and a small one. None where that is
    not looked at: on a device, without values, and for a user's own array that takes long or is
    large.
    """
    on_host = subject.spec.device == "cpu"
    if not on_host or not subject.import_.returns_array or subject.spec.elements == 0:
        return []
    other = subject.of_bytes(SIZE_BYTES)
    is_slow = attempt(lambda: _is_slow_to_make(subject))
    if other.spec.size_bytes > LARGEST_BYTES or is_slow is not False:
        return []
    held = []
    for one in (other,) if subject.is_one_array else (other, subject.of_bytes(SMALL_BYTES)):
        answer.stage("lifetime")  # a death while this one is made proves nothing of the last one
        answer.part("after_drop", one.made())  # if the process dies of it, this tells of which
        held.append(_without_source(one, answer, _drop))
    answer.stage("lifetime")  # no result is read now: a death would prove nothing of it
    return held


def measure(
    subject: Subject, gpu: Gpu | None, answer: Answer, held: Sequence[WithoutSource] = ()
) -> dict[str, Any]:
    """The verdict, at a size of its own. What was ``held`` before is read without a wait."""
    subject.check_own()
    other = subject.of_bytes(SIZE_BYTES)
    size = other.spec.size_bytes
    if subject.is_one_array and not size:
        raise Unsupported(NO_SIZE)
    if size > LARGEST_BYTES:
        raise Unsupported(f"the array is larger than {LARGEST_BYTES:,} bytes: too large to repeat")
    try:
        return _look(subject, other, gpu, answer, held)
    except Unreadable as lost:
        evidence = {"changed_after_drop": None, "error_after_drop": words(lost.error)}
        return verdict("dangling", evidence | lost.subject.made())


class Unreadable(Exception):
    """The result could be read before its source was dropped, and cannot be read any more."""

    def __init__(self, subject: Subject, error: Exception) -> None:
        super().__init__()
        self.subject, self.error = subject, error


def _look(
    subject: Subject,
    other: Subject,
    gpu: Gpu | None,
    answer: Answer,
    held: Sequence[WithoutSource],
) -> dict[str, Any]:
    evidence = _after_drops(other, gpu, answer, _drop)
    answer.part("after_drop", evidence)
    if judge_drops(evidence) == "dangling":  # a conversion more may end the process
        return verdict("dangling", evidence | other.made())
    waiting: Sequence[WithoutSource] = ()
    is_slow = _is_slow_to_make(subject)
    has_values = evidence["changed_after_drop"] is not None
    if has_values and subject.spec.device == "cpu" and not is_slow:
        waiting = held or hold(subject, answer)
        for resized, drop in _other_sizes(subject):
            # If the process dies of it, this tells of which array.
            answer.part("after_drop", resized.made())
            found = _after_drops(resized, gpu, answer, drop)
            if judge_drops(found) == "dangling":
                return verdict("dangling", found | resized.made())
            if judge_drops(found) == "unknown":
                evidence |= found
            answer.part("after_drop", evidence)
    answer.stage("lifetime repetition")
    meters, uncounted = meters_of(subject)
    growth, repeated = _growth(subject, other, meters, is_slow)
    looks = [evidence, growth, {"left_out": SLOW_SETUP} if is_slow else {}]
    evidence = evidence | growth
    looks.append(_read_late(gpu, answer, waiting, evidence))
    evidence |= looks[-1]
    answer.part("after_drop", evidence)
    left_out = dict.fromkeys(one["left_out"] for one in looks if "left_out" in one)
    if left_out:
        evidence["left_out"] = "; ".join(left_out)
    if uncounted:
        evidence["device_counted"] = False
    word, reason = judge(evidence)
    made = {"dangling": other.made() | evidence, "retained": evidence | repeated.made()}
    evidence = made.get(word, evidence)
    return verdict(word, evidence, reason)


def _after_drops(
    subject: Subject, gpu: Gpu | None, answer: Answer, drop: Callable[[list[Any]], None]
) -> dict[str, Any]:
    """Evidence of a result without its source, and of a source without its result; None of both
    without values. ``drop`` empties a list.
    """
    if not subject.import_.returns_array or subject.spec.elements == 0:
        return {"changed_after_drop": None, "source_after_drop": None}
    # It is made first: made later, it might take the memory of the other source and keep it.
    source = subject.make_another()
    results = [subject.converting(source)()]
    subject.wait_for(results[0])
    values = attempt(lambda: subject.producer.to_numpy(source).tobytes())
    found = _without_source(subject, answer, drop)
    answer.stage("lifetime release")
    drop(results)
    gc.collect()
    subject.producer.give_back(subject.spec.device)
    answer.stage(AFTER_DROP)
    kept = _churn(subject, gpu, found.address)
    evidence = _judged(_is_changed(subject, found), subject, found.control)
    if not kept.is_seen:
        evidence["left_out"] = SAME_VALUES
    answer.part("after_drop", evidence | subject.made())
    if evidence["changed_after_drop"] is False:
        answer.stage(SOURCE_AFTER_DROP)
        seen: str | None = _of_source(subject, source, values)
        answer.stage("lifetime release")
        if seen != SAME:
            # Its memory may be free already, and must not be freed once more.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(source))
            if not _is_kept(subject, found.control):
                seen, evidence["left_out"] = None, UNSTEADY
        evidence["source_after_drop"] = seen
        answer.part("after_drop", evidence | subject.made())
        del source
    answer.stage("lifetime release")
    held = [found.result]
    del found, kept
    drop(held)
    return evidence


def _read_late(
    gpu: Gpu | None,
    answer: Answer,
    waiting: Sequence[WithoutSource],
    evidence: dict[str, Any],
) -> dict[str, Any]:
    """Evidence of a result that has changed, or would not show it; empty if none of them has."""
    if not waiting:
        return {}
    time.sleep(max(0.0, waiting[-1].since + LATER_S - time.monotonic()))
    for one in waiting:
        later = {"later_s": round(time.monotonic() - one.since, 1), **one.subject.made()}
        answer.part("after_drop", evidence | later)
        answer.stage(AFTER_DROP)
        kept = _churn(one.subject, gpu, one.address)
        found = _judged(_is_changed(one.subject, one), one.subject, one.control)
        del kept
        if found["changed_after_drop"] is not False:
            return found | later
    return {}


def _of_source(subject: Subject, source: Any, values: bytes | Refusal) -> str:
    """:data:`SAME`, :data:`CHANGED`, or the error of reading it in words."""
    now = attempt(lambda: subject.producer.to_numpy(source).tobytes())
    if isinstance(now, Refusal):
        return words(now.error)
    return SAME if now == values else CHANGED


def _is_kept(subject: Subject, control: Control) -> bool:
    """Whether the array that is not converted has the values that it had."""
    return _of_source(subject, control.array, control.values) == SAME


def _judged(is_changed: bool, subject: Subject, control: Control) -> dict[str, Any]:
    """Evidence of a result that was read without its source."""
    if is_changed and not _is_kept(subject, control):
        return {"changed_after_drop": None, "left_out": UNSTEADY}
    return {"changed_after_drop": is_changed}


def _growth(
    subject: Subject, other: Subject, meters: Sequence[Callable[[], int]], is_slow: bool
) -> tuple[dict[str, Any], Subject]:
    """What conversions of one source leave behind, or else those of a new source each; of which
    array.
    """
    source = other.make_another()
    convert = other.converting(source)
    size = other.spec.size_bytes
    # An unfinished result is not retained.
    found = measure_growth(lambda: subject.wait_for(convert()), source, meters, size)
    if judge_growth(found) != "nothing" or is_slow:
        return found, other
    anew = subject.of_bytes(NEW_SOURCE_BYTES)
    per_source = attempt(
        lambda: growth_of_calls(anew, meters, lambda call: subject.wait_for(call())), Unsupported
    )
    if isinstance(per_source, Refusal):
        return found | {"left_out": f"new arrays: {per_source.reason}"}, other
    if per_source:
        return per_source | {"per_source": True}, anew
    return found, other


def growth_of_calls(
    subject: Subject,
    meters: Sequence[Callable[[], int]],
    use: Callable[[Callable[[], Any]], None],
    few: int = FEW,
) -> dict[str, Any]:
    """What stays behind of calls with a new source each, besides what the making of the sources
    leaves; empty unless something plainly does in ``few`` calls. Fewer are for slow ones.

    ``use`` gets the call. Raises :class:`Unsupported` if only the making plainly leaves something.
    """
    namespace, size = dict(subject.namespace), subject.spec.size_bytes
    create = statements(subject.producer.create(subject.spec), namespace, "create")
    convert = compile_call(subject.code, namespace)

    def once() -> None:
        create()
        use(convert)

    def is_plain_in_few(call: Callable[[], Any]) -> bool:
        return is_plain(measure_growth(call, object(), meters, size, few, TRIAL))

    if not is_plain_in_few(once):
        return {}
    number = CONVERSIONS * few // FEW
    found = measure_growth(once, object(), meters, size, number, PROOF)
    if not is_plain(found):
        return {}
    if not is_plain_in_few(create):
        return found
    alone = measure_growth(create, object(), meters, size, number)
    found |= {name: found[name] - alone[name] for name in found if name.endswith("_per_conversion")}
    if not is_plain(found):
        raise Unsupported("making the array alone leaves about as much behind")
    return found


def _other_sizes(subject: Subject) -> Iterator[tuple[Subject, Callable[[list[Any]], None]]]:
    """The conversion of a small and a large array and that of the case, and how to drop each."""
    if subject.is_one_array:
        yield subject, _drop_by_collector
        yield subject, _drop_in_thread
        return
    yield subject.of_bytes(SMALL_BYTES), _drop_by_collector
    is_large = LARGE_BYTES <= subject.spec.size_bytes <= MOST_CHURN_BYTES
    yield subject if is_large else subject.of_bytes(LARGE_BYTES), _drop_in_thread
    if 0 < subject.spec.size_bytes < LARGE_BYTES:
        yield subject, _drop


def _is_slow_to_make(subject: Subject) -> bool:
    """Whether a user's own array takes too long to be made hundreds of times."""
    if not subject.is_one_array:
        return False
    return subject.setup_s > SLOW_SETUP_S


def judge_drops(evidence: dict[str, Any]) -> str:
    """``dangling``, ``safe`` or ``unknown``: what became of either array without the other."""
    result, source = (evidence.get(f"{name}_after_drop") for name in ("changed", "source"))
    if result or source not in (None, SAME):
        return "dangling"
    if (result, source) != (False, SAME) or _why_unseen(evidence):
        return "unknown"
    return "safe"


def judge(evidence: dict[str, Any]) -> tuple[str, str | None]:
    """The verdict that the evidence allows, and the reason if it is ``unknown``."""
    drops = judge_drops(evidence)
    if drops == "dangling":
        return "dangling", None
    left = judge_growth(evidence)
    if left == "retained":
        return "retained", None
    if left == "something":
        return "unknown", _growth_in_words(evidence)
    if evidence.get("device_counted") is False:
        return "unknown", UNCOUNTED
    return drops, (_why_unseen(evidence) or NO_ARRAY) if drops == "unknown" else None


def _why_unseen(evidence: dict[str, Any]) -> str | None:
    """Why a loss would not show, if that was left out; other parts may have been beside it."""
    left_out = evidence.get("left_out", "")
    return next((why for why in (UNSTEADY, SAME_VALUES) if why in left_out), None)


def _drop(held: list[Any]) -> None:
    held.clear()


def _drop_by_collector(held: list[Any]) -> None:
    """Leave what is held to the garbage collector, in a cycle."""
    cycle = [*held]
    cycle.append(cycle)
    held.clear()
    del cycle
    gc.collect()


def _drop_in_thread(held: list[Any]) -> None:
    thread = threading.Thread(target=held.clear)
    thread.start()
    thread.join()


def _without_source(
    subject: Subject, answer: Answer, drop: Callable[[list[Any]], None]
) -> WithoutSource:
    alone = subject.make_another()
    control = Control(alone, attempt(lambda: subject.producer.to_numpy(alone).tobytes()))
    source = subject.make_another()
    address = subject.producer.pointer(source)
    held = [subject.converting(source)]
    del source  # what is to be called alone holds it now
    result = held[0]()
    subject.wait_for(result)
    values = subject.consumer.to_numpy(result).tobytes()
    answer.stage(AFTER_DROP)
    drop(held)
    gc.collect()
    subject.producer.give_back(subject.spec.device)
    return WithoutSource(subject, result, values, address, time.monotonic(), control)


def _is_changed(subject: Subject, found: WithoutSource) -> bool:
    try:
        return bool(subject.consumer.to_numpy(found.result).tobytes() != found.values)
    except Exception as error:  # a driver knows that the memory is not there any more
        source = subject.make_another()
        subject.consumer.to_numpy(subject.converting(source)())  # this can still be read
        raise Unreadable(subject, error) from error


class Churn(NamedTuple):
    """What lies in memory that is used again, as long as it is held."""

    held: list[Any]
    is_seen: bool
    """Whether it has other values, or begins at a known address, where plain memory may lie."""


def _churn(subject: Subject, gpu: Gpu | None, address: int | None) -> Churn:
    """Arrays and plain memory of the source's size, with values of their own.

    So many that one of them lies at ``address``, where the source was, if that is free.
    """
    size = subject.spec.size_bytes
    # What is made on the way to an array may come to lie where the source was, and go again: with
    # the same values nobody would see that.
    subject = replace(subject, spec=replace(subject.spec, shifted=True))
    kept: list[Any] = []
    is_used_again = is_seen = False
    most = min(MOST_CHURN, MOST_CHURN_BYTES // size)
    for made in range(max(CHURN, most)):
        array = subject.make_another()
        is_seen |= subject.overwrite(array, gpu) or address is not None
        block = ctypes.create_string_buffer(size)
        ctypes.memset(block, 0xA5, size)
        kept += [array, block]
        places = subject.producer.pointer(array), ctypes.addressof(block)
        is_used_again |= address is not None and any(
            place is not None and abs(place - address) < size for place in places
        )
        if made + 1 >= CHURN and (address is None or is_used_again):
            break
    return Churn(kept, is_seen)


def meters_of(subject: Subject) -> tuple[list[Callable[[], int]], bool]:
    """Meters of the bytes in use where source and result are; and whether none counts a device.

    On a device the counters of the frameworks that have an array there, on the host those of malloc
    and of the system.
    """
    sides = (
        (subject.spec.device, subject.producer),
        (subject.result_device, subject.consumer),
    )
    places = {place for place, _ in sides}
    meters: list[Callable[[], int]] = []
    on_device = {probe.name: probe for place, probe in sides if place == "cuda"}
    counting = [one for one in on_device.values() if one.memory_in_use("cuda") is not None]
    if counting:
        meters.append(lambda: sum(probe.memory_in_use("cuda") or 0 for probe in counting))
    if "cpu" in places:
        malloc_bytes = malloc_meter()
        meters += [resident_bytes] if malloc_bytes is None else [resident_bytes, malloc_bytes]
    return meters, "cuda" in places and not counting


CONVERSIONS = 200
"""In each run."""
KEPT_BYTES = 256 << 20
"""A run ends once this much stays behind."""
MOST_RUNS = 12
"""As long as a growth may be nothing."""
MOST_BYTES = 256 << 20
"""No more runs follow a run that leaves more than this."""
LEAST_BYTES = 64
"""An allocator's own growth; arrays of less than twice this cannot be told from it."""


class Way(NamedTuple):
    """How growth is measured."""

    fewest_runs: int = 2
    warms_up: bool = True
    plain_only: bool = False
    """It ends with the first run that leaves less than a plain growth."""
    waits: bool = True
    """What is released late is not counted."""


WHOLE = Way()
TRIAL = Way(plain_only=True, waits=False)
PROOF = Way(fewest_runs=3, warms_up=False, plain_only=True)
"""After a trial, which warmed up. All of its runs count: most caches show in the first."""


class Limit(NamedTuple):
    """Per conversion: below ``nothing`` nothing is retained, from ``retained`` on something is.

    From ``plain`` on it is at every conversion or two, and needs no further run.
    """

    nothing: float
    retained: float
    plain: float


REFERENCES = Limit(0.01, 0.05, 0.9)
"""References to the source. Frameworks that keep nothing add none."""
OBJECTS = Limit(0.1, 0.2, 0.9)
"""Blocks of Python's memory. Caches of frameworks fill slowly."""


HANDLES = Limit(0.1, 0.5, 0.9)
"""File descriptors, threads and memory maps."""
HANDLE_WORDS = {"descriptors": "file descriptors", "threads": "threads", "maps": "memory maps"}


def bytes_limit(size_bytes: int) -> Limit:
    """For arrays of ``size_bytes``: one in a whole run, one in twenty conversions, one in two."""
    shares = (size_bytes / 200, size_bytes / 20, size_bytes / 2)
    return Limit(*(max(share, LEAST_BYTES) for share in shares))


HANDLE_COUNTS: dict[str, Callable[[], int]] = {
    "descriptors": lambda: len(os.listdir("/proc/self/fd")),  # noqa: PTH208 - names alone
    "threads": lambda: len(os.listdir("/proc/self/task")),  # noqa: PTH208
    "maps": lambda: Path("/proc/self/maps").read_bytes().count(b"\n"),
}
MOST_HANDLES = 150
"""A run ends once so many stay behind: a process may have a thousand descriptors."""
PIECE = 50
"""Conversions after which a run looks at what stays behind."""


def piece_of(size_bytes: int) -> int:
    """How many conversions to make before looking at what stays behind."""
    return min(PIECE, max(1, KEPT_BYTES // max(size_bytes, 1)))


def measure_growth(
    convert: Callable[[], Any],
    source: Any,
    meters: Sequence[Callable[[], int]],
    size_bytes: int,
    in_each_run: int = CONVERSIONS,
    way: Way = WHOLE,
) -> dict[str, float]:
    """Evidence of what one conversion leaves behind.

    The one of ``meters`` that grew most counts, since none of them sees every allocation.
    """
    handles = HANDLE_COUNTS.values()
    counters = [*handles, *meters, lambda: sys.getrefcount(source), sys.getallocatedblocks]
    most = [MOST_HANDLES] * len(handles) + [KEPT_BYTES] * len(meters)

    def convert_many() -> tuple[list[int], int]:
        return _convert_many(convert, counters, most, piece_of(size_bytes), in_each_run)

    if way.warms_up:
        convert_many()
    least = [math.inf] * len(counters)

    def counted(run: int, before: list[int], conversions: int) -> dict[str, float]:
        gc.collect()
        now = [count() for count in counters]
        grown = [(b - a) / conversions for a, b in zip(before, now, strict=True)]
        least[:] = [min(pair) for pair in zip(least, grown, strict=True)]
        *sizes, references, objects = least[len(handles) :]
        return {
            **{f"{what}_per_conversion": n for what, n in zip(HANDLE_COUNTS, least, strict=False)},
            "bytes_per_conversion": max(sizes, default=0.0),
            "references_per_conversion": references,
            "objects_per_conversion": objects,
            "conversions": conversions,
            "runs": run,
            "size_bytes": size_bytes,
        }

    for run in range(1, MOST_RUNS + 1):
        last = convert_many()
        found = counted(run, *last)
        if way.plain_only and not is_plain(found):
            return found
        if (run > 1 and _is_much(found)) or (run >= way.fewest_runs and _is_clear(found)):
            break
    each = bytes_limit(size_bytes)
    limits = [HANDLES] * len(handles) + [each] * len(meters) + [REFERENCES, OBJECTS]
    if not way.waits or judge_growth(found) == "nothing":
        return found
    grown = [n for n, limit in enumerate(limits) if least[n] >= limit.nothing]
    stays = _stays(counters, grown, last[0])
    # What the runs before left is released by now, and cannot hide what one more leaves. A pool of
    # the framework's own, or its next call, may use the memory again.
    last = convert_many()
    end = time.monotonic() + (0.0 if stays else RELEASED_S)
    while judge_growth(found := counted(run + 1, *last)) != "nothing" and time.monotonic() < end:
        time.sleep(LOOK_S)
    return found


def _is_clear(found: dict[str, float]) -> bool:
    return is_plain(found) or judge_growth(found) == "nothing"


def _is_much(found: dict[str, float]) -> bool:
    return found["bytes_per_conversion"] * found["conversions"] > MOST_BYTES


def _stays(
    counters: Sequence[Callable[[], int]], grown: Sequence[int], before: Sequence[int]
) -> bool:
    """Whether all that conversions left behind is still there after :data:`RELEASED_S`.

    ``grown`` are the places of the counters that say so, and ``before`` what they counted before.
    """
    left = [count() for count in counters]
    fell = False
    end = time.monotonic() + RELEASED_S
    while time.monotonic() < end:
        time.sleep(LOOK_S)
        gc.collect()
        now = [count() for count in counters]
        fell |= any(left[n] - now[n] > RELEASED * (left[n] - before[n]) for n in grown)
    return not fell


def _convert_many(
    convert: Callable[[], Any],
    counters: Sequence[Callable[[], int]],
    most: Sequence[int],
    piece: int,
    in_all: int,
) -> tuple[list[int], int]:
    """What each counter counted before the conversions, and how many they were.

    It ends early if one of the first counters grew by more than its ``most``.
    """
    gc.collect()
    before = [count() for count in counters]

    def is_much() -> bool:
        watched = zip(counters, before, most, strict=False)
        return any(count() - begun > limit for count, begun, limit in watched)

    done = 0
    while done < in_all:
        number = min(piece, in_all - done)
        for _ in range(number):
            convert()
        done += number
        if done < in_all and is_much():
            gc.collect()  # garbage does not stay behind
            if is_much():
                break
    return before, done


def is_plain(evidence: dict[str, Any]) -> bool:
    """Whether something stays at every conversion or two."""
    return any(value >= limit.plain for value, limit, _ in _limited(evidence))


def judge_growth(evidence: dict[str, Any]) -> str:
    """``nothing``, ``retained``, or ``something`` between the two."""
    limited = list(_limited(evidence))
    if any(value >= limit.retained for value, limit, _ in limited):
        return "retained"
    return "something" if any(value >= limit.nothing for value, limit, _ in limited) else "nothing"


def _growth_in_words(evidence: dict[str, Any]) -> str:
    grown = [words for value, limit, words in _limited(evidence) if value >= limit.nothing]
    return (
        f"{' and '.join(grown)} for each conversion stayed behind in each of {evidence['runs']}"
        f" runs of {evidence['conversions']}: more than frameworks leave that keep nothing, less"
        " than proves a leak"
    )


def _limited(evidence: dict[str, Any]) -> Iterator[tuple[float, Limit, str]]:
    """What grew, the limits of its kind, and the growth in words."""
    size, references, objects = (
        evidence[f"{what}_per_conversion"] for what in ("bytes", "references", "objects")
    )
    yield size, bytes_limit(evidence["size_bytes"]), f"{size:.0f} bytes"
    yield references, REFERENCES, f"{references:.2g} references to the source"
    yield objects, OBJECTS, f"{objects:.2g} blocks of Python's memory"
    for what, unit in HANDLE_WORDS.items():
        count = evidence.get(f"{what}_per_conversion", 0.0)
        yield count, HANDLES, f"{count:.2g} {unit}"
