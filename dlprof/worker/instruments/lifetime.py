"""Lifetime: does the result outlive its source, and does everything go when it is dropped?

The source and every intermediate are dropped while the result lives, and their memory is used
again. Proof of a dangling result: its values changed, reading it raised an exception, or the
process died of it. The other way round, one of two results is dropped, by ``del``, in another
thread, and by the consumer's own hand: the other and their source must keep their values.

Then the conversion is repeated and its results dropped (:mod:`dlprof.worker.growth`), with one
source and with a new one for each call: a framework may keep something of each array.

A brief look drops at one size and repeats nothing: each process of a run takes one, unless a user's
own setup takes long to make an array.

Verdicts: ``safe``, ``dangling``, ``retained``, ``unknown``.
"""

from __future__ import annotations

import ctypes
import gc
import timeit
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from dlprof.device.cuda import Gpu
from dlprof.probes.base import Unsupported
from dlprof.protocol.messages import (
    AFTER_DROP,
    NO_ARRAY,
    OTHER_AFTER_DROP,
    SAME,
    SOURCE_AFTER_DROP,
    verdict,
    words,
)
from dlprof.worker.channel import Reply
from dlprof.worker.growth import (
    NEW_SOURCE_BYTES,
    choose_meters,
    measure_growth,
    measure_new_sources,
    reaches,
)
from dlprof.worker.queued_work import OWN_STREAMS, moved_sides
from dlprof.worker.refusal import Refusal, attempt
from dlprof.worker.simulated import NOT_COMPUTED, computed
from dlprof.worker.source_text import compile_call, execute
from dlprof.worker.subject import Subject

BRIEF_S = 0.02
"""A brief look makes 14 arrays or more."""
CHURN = 4
"""At least this many arrays and blocks of the source's size are made after it was dropped."""
MOST_CHURN, MOST_CHURN_BYTES = 64, 16 << 20
"""At most this many if none gets the memory of the source. A pool may have other free blocks, which
it hands out first."""
SIZE_BYTES = 64 << 10
"""Small enough that the allocator hands freed memory out again instead of returning it."""
SMALL_BYTES = 512
"""Some frameworks keep small arrays in the object itself, or copy them."""
LARGE_BYTES = 2 << 20
"""The system gives such memory out by pages, and has it back at once."""
LARGEST_BYTES = 64 << 20
"""Many copies of a larger array of a user's own would not fit into memory."""
CONTROLS = 3
"""A result that is not finished may change by chance."""
CHANGED = "changed"
CHANGES_ANYWAY = "the result changes while its source is kept, too: it may not be finished"
TOO_LITTLE = "more stays behind than in frameworks that keep nothing, and less than proves a leak"
IN_THREAD = {
    "another thread": """\
import threading
held = [y]
del y
thread = threading.Thread(target=held.clear)
thread.start()
thread.join()"""
}
SPIN_NS, LIMIT_NS = 50_000_000, 2_000_000_000
UNCOUNTED = "neither framework says how much of the device's memory it uses"


def measure(
    subject: Subject, gpu: Gpu | None, reply: Reply, *, is_brief: bool = False
) -> dict[str, Any] | None:
    subject.check_own()
    trial = subject.of_bytes(SIZE_BYTES)
    if is_brief and trial.is_one_array:
        make_s = min(timeit.repeat(trial.make_another, number=1, repeat=2))
        if make_s > BRIEF_S:
            return None
    size = trial.spec.size_bytes
    if size > LARGEST_BYTES:
        raise Unsupported(f"an array of more than {LARGEST_BYTES >> 20} MiB is too large to repeat")
    unknown = {"changed_after_drop": None, "source_after_drop": None}
    evidence: dict[str, Any] = unknown
    reason, reads = NO_ARRAY, gpu.uncomputed_reads() if gpu else 0
    if subject.import_.returns_array and subject.spec.elements:
        for candidate, way in [(trial, {})] if is_brief else _ways(subject, trial):
            evidence = _drops(candidate, gpu, reply, way)
            if evidence.get("verdict"):
                break
        if gpu and gpu.uncomputed_reads() > reads:
            evidence, reason = unknown, NOT_COMPUTED
        elif evidence.get("verdict"):
            return evidence
    if not is_brief:
        return _repetition(subject, trial, gpu, reply, evidence, reason)
    is_known = evidence["changed_after_drop"] is not None
    return verdict("safe", evidence) if is_known else verdict("unknown", evidence, reason)


def _ways(subject: Subject, trial: Subject) -> Iterator[tuple[Subject, dict[str, str]]]:
    """Yield the arrays to drop, and ways to release the result of ``trial``."""
    yield trial, {}
    if subject.is_one_array or subject.spec.device != "cpu":
        return
    yield subject.of_bytes(SMALL_BYTES), {}
    yield subject.of_bytes(LARGE_BYTES), {}
    if subject.spec.size_bytes <= LARGEST_BYTES:
        yield subject, {}
    ways = dict(IN_THREAD)
    if subject.producer.module != subject.consumer.module:  # else y may be x itself
        ways.update(subject.consumer.releases(subject.spec.dtype))
    for name, text in ways.items():
        yield trial, {"released_by": name, "release": text}


def _repetition(
    subject: Subject,
    trial: Subject,
    gpu: Gpu | None,
    reply: Reply,
    evidence: dict[str, Any],
    reason: str,
) -> dict[str, Any]:
    """Return the verdict, with evidence of what stays behind; ``reason`` is for an unknown drop."""
    reply.stage("lifetime reuse")
    reused = attempt(lambda: gpu and computed(gpu, lambda: _is_reused(trial, gpu)))
    evidence["reused"] = None if isinstance(reused, Refusal) else reused
    reply.stage("lifetime repetition")
    meters, is_uncounted = choose_meters(subject)
    growth, grown = _growth(subject, trial, meters)
    evidence |= growth
    if reaches(evidence, "retained"):
        return verdict("retained", evidence | grown.array_evidence())
    if reaches(evidence, "nothing"):
        return verdict("unknown", evidence, TOO_LITTLE)
    if is_uncounted:
        return verdict("unknown", evidence, UNCOUNTED)
    if evidence["changed_after_drop"] is None:
        return verdict("unknown", evidence, reason)
    return verdict("safe", evidence)


def _is_reused(subject: Subject, gpu: Gpu) -> bool | None:
    """Whether memory of a dropped view holds other values while a stream still reads the view.

    None if that is not known. The consumer copies the view on a stream of its own, behind a spin.
    View and source are dropped at once, and the producer makes arrays with other values. On a
    simulated device the copy stands behind the gate, so that the speed of the host does not matter.
    """
    producer, name = subject.producer, subject.spec.dtype
    stays = (subject.spec.device, subject.result_device) == ("cuda", "cuda")
    # A probe has this text if its copies are queued on its own stream.
    text = subject.consumer.idioms("cuda", name).get("copy")
    side = moved_sides(subject, gpu).get(OWN_STREAMS, (None, None))[1] if stays else None
    if text is None or side is None or side.stream is None or producer.name == side.probe.name:
        return None
    copy = compile_call(text.replace("{x}", "_z"), subject.namespace, "_z")
    source = subject.make_another()
    address, expected = producer.pointer(source), producer.to_numpy(source)
    done = gpu.event()
    with side.at_home():
        result = subject.converter(source)()
        if address is None or side.probe.pointer(result) != address:
            return None
        copy(result)  # leaves its memory in the pool: a new one might wait for the device
        gpu.synchronize(side.stream)
        if gpu.is_simulated:
            gpu.close_gate(LIMIT_NS)
        gpu.spin(side.stream, SPIN_NS)
        copied = copy(result)
        gpu.record(done, side.stream)
        del result
    del source
    gc.collect()
    others = _churn(subject, gpu, address)
    is_late = gpu.is_done(done)
    if gpu.is_simulated:
        gpu.open_gate()
    with side.at_home():
        gpu.synchronize(side.stream)
        values = side.probe.to_numpy(copied)
    del others
    if values.tobytes() != expected.tobytes():
        return True
    return None if is_late else False


def _drops(subject: Subject, gpu: Gpu | None, reply: Reply, way: dict[str, str]) -> dict[str, Any]:
    """Return evidence of a result without its source, and of a source without its result.

    Return a verdict if either is damaged. A ``way`` releases results only: its words and text.
    """
    # It is made first: made later, it might take the memory of the other source and keep it.
    source = subject.make_another()
    convert = subject.converter(source)
    results = [convert(), convert()]
    for result in results:
        _finish(subject, gpu, result)
    del convert, result
    evidence: dict[str, Any] = {"changed_after_drop": False}
    if not way:
        evidence = _without_source(subject, gpu, reply)
    if evidence["changed_after_drop"] is not False:
        return _accused(subject, gpu, reply, evidence)
    evidence |= way
    reply.part("after_drop", evidence | subject.array_evidence())
    if _without_result(subject, gpu, reply, source, results, evidence):
        return {name: value for name, value in evidence.items() if name not in way}
    # Its memory may be free already, and must not be freed once more.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(source))
    return _accused(subject, gpu, reply, evidence)


def _accused(
    subject: Subject, gpu: Gpu | None, reply: Reply, evidence: dict[str, Any]
) -> dict[str, Any]:
    """Return the verdict on a damage: unknown if results change while their source is kept, too."""
    evidence |= subject.array_evidence()
    for _ in range(CONTROLS):
        control = _without_source(subject, gpu, reply, keeps_source=True)
        if control["changed_after_drop"] is not False:
            return verdict("unknown", evidence, CHANGES_ANYWAY)
    return verdict("dangling", evidence)


def _without_result(
    subject: Subject,
    gpu: Gpu | None,
    reply: Reply,
    source: Any,
    results: list[Any],
    evidence: dict[str, Any],
) -> bool:
    """Release one of two results of ``source``, then the other. Add to ``evidence``.

    Return whether the source keeps its values, and the other result as long as it lives.
    """

    def read_source() -> bytes:
        return bytes(subject.producer.to_numpy(source).tobytes())

    def read_other() -> bytes:
        return bytes(subject.consumer.to_numpy(results[-1]).tobytes())

    source_values, other_values = read_source(), read_other()
    while results:
        reply.stage("lifetime release")
        names = {**subject.namespace, "y": results.pop(0)}
        attempt(partial(execute, evidence.get("release", "del y"), names, "release"))
        names.clear()
        gc.collect()
        subject.producer.give_back(subject.spec.device)
        blocks = _churn(subject, gpu, None)
        reply.stage(SOURCE_AFTER_DROP)
        evidence["source_after_drop"] = _state(read_source, source_values)
        if results and evidence["source_after_drop"] == SAME:
            reply.stage(OTHER_AFTER_DROP)
            evidence["other_after_drop"] = _state(read_other, other_values)
        del blocks
        if {evidence["source_after_drop"], evidence.get("other_after_drop", SAME)} != {SAME}:
            return False
    reply.stage("lifetime release")
    return True


def _state(read: Callable[[], bytes], before: bytes) -> str:
    """Return whether values are the same, have changed, or the error of a read."""
    now = attempt(read)
    if isinstance(now, Refusal):
        return words(now.error)
    return SAME if now == before else CHANGED


def _without_source(
    subject: Subject, gpu: Gpu | None, reply: Reply, *, keeps_source: bool = False
) -> dict[str, Any]:
    """Return evidence of a result that is read after its source's memory was used again.

    The control keeps the source, and does the same otherwise.
    """
    reply.part("after_drop", subject.array_evidence())  # tells the array if the process dies of it
    source = subject.make_another()
    address = subject.producer.pointer(source)
    calls = [subject.converter(source)]
    kept = [source] if keeps_source else []
    del source  # only the call holds it now
    result = calls[0]()
    _finish(subject, gpu, result)
    values = subject.consumer.to_numpy(result).tobytes()
    reply.stage(AFTER_DROP)
    calls.clear()
    gc.collect()
    subject.producer.give_back(subject.spec.device)
    read = partial(attempt, lambda: subject.consumer.to_numpy(result).tobytes())
    # Memory that is unmapped is read at once: a new source may get it, with the same values.
    # On a device that read would end its context.
    looks = [] if gpu else [read()]
    blocks = _churn(subject, gpu, address)
    looks.append(read())
    del blocks
    kept.clear()
    for now in looks:
        if isinstance(now, Refusal):  # a driver knows that the memory is not there any more
            return {"changed_after_drop": None, "error_after_drop": words(now.error)}
    return {"changed_after_drop": {*looks} != {values}}


def _finish(subject: Subject, gpu: Gpu | None, result: Any) -> None:
    """Wait for a result. A consumer on the host does not know of a copy that is still under way."""
    subject.wait_for(result)
    if gpu:
        gpu.synchronize_device()


def _churn(subject: Subject, gpu: Gpu | None, address: int | None) -> list[Any]:
    """Make arrays and plain memory of the source's size, with other values.

    The last one lies at ``address``, where the source was, if that is free.
    """
    size = subject.spec.size_bytes
    # An intermediate may get the memory of the source, too: with the same values that would not
    # show.
    subject = replace(subject, spec=replace(subject.spec, shifted=True))
    blocks: list[Any] = []
    for count in range(max(CHURN, min(MOST_CHURN, MOST_CHURN_BYTES // max(size, 1)))):
        array = subject.make_another()
        subject.overwrite(array, gpu)
        block = ctypes.create_string_buffer(size)
        ctypes.memset(block, 0xA5, size)
        blocks += [array, block]
        places = subject.producer.pointer(array), ctypes.addressof(block)
        is_used_again = address is not None and any(
            place is not None and abs(place - address) < size for place in places
        )
        if count + 1 >= CHURN and (address is None or is_used_again):
            break
    return blocks


def _growth(subject: Subject, trial: Subject, meters: list[Any]) -> tuple[dict[str, Any], Subject]:
    """Return the growth by conversions of one source, or of a new source each, and the array."""
    source = trial.make_another()
    convert = trial.converter(source)
    size = trial.spec.size_bytes
    # An unfinished result is not retained.
    found = measure_growth(lambda: subject.wait_for(convert()), source, meters, size)
    if reaches(found, "retained") or subject.is_one_array:
        return found, trial
    anew = subject.of_bytes(NEW_SOURCE_BYTES)
    per_source = attempt(lambda: measure_new_sources(anew, meters, lambda c: subject.wait_for(c())))
    if isinstance(per_source, Refusal) or not per_source:
        return found, trial
    return per_source | {"per_source": True}, anew
