"""Order on the simulated device, by its driver's own record and not by times.

The driver closes a gate in front of the queued work. A wait of the host for work behind the gate
opens it, so that the record says which call waited: the load of the machine changes nothing. A
framework may wait by other means, such as a thread that polls. Then the gate opens after a limit,
and a call that does not return before the longest limit waits.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from dlprof.device.cuda import Gate, Gpu
from dlprof.protocol.messages import verdict
from dlprof.worker.queued_work import RUNS_IT, OtherWork, QueuedWork

LIMITS_NS = (100_000_000, 1_000_000_000)
TRIES = 3
"""A call that waits does so each time. A framework that frees memory now and then also waits."""
LAUNCH_S = 2.0
"""The longest time until a framework's own thread has queued the work."""
NOT_TOLD = "the host does not wait, and the consumer's stream cannot be asked"
NO_LOAD = "the framework queues no kernel"


class NoLoad(Exception):
    """No work can be queued; the message says why."""


def measure_queue(
    queue: QueuedWork, gpu: Gpu, look_for_stale: Callable[[QueuedWork, int], bool | None]
) -> dict[str, Any]:
    """Return the verdict on a conversion behind queued work."""
    for _ in range(2):  # the first use may load code, which waits for the device
        array = queue.enqueue(1)
        result = queue.convert(array)
        if queue.ready is not None:
            queue.ready(result)
        queue.finish(array)
    cause: dict[str, Any] = {}
    try:
        host_waits, is_ordered, waits_for_all = _waits(queue, gpu, queue.convert), None, False
        if host_waits:
            # Each look has a new array: a framework may keep the host copy of an old one.
            waits = partial(waits_for, gpu, queue.convert, queue.finished)
            waits_for_all = all(map(waits, queue.unrelated))
            cause["waits_for_later"] = waits(queue.later)
            if queue.export is not None and _waits(queue, gpu, queue.export):
                cause["waits_in"] = queue.export_code
        elif queue.ready is not None:
            is_ordered = _waits(queue, gpu, queue.convert, queue.ready)
        queue.hold = partial(gpu.close_gate, LIMITS_NS[0])
        right = look_for_stale(queue, 1)
    except NoLoad as reason:
        return verdict("unknown", {}, str(reason))
    finally:
        gpu.open_gate()
        queue.hold = None
    evidence: dict[str, Any] = {"recorded": True, "values_right": right, **cause}
    wait = "device-sync" if waits_for_all else "host-sync"
    if right is False:
        return verdict("unordered", evidence | ({"waits": wait} if host_waits else {}))
    if host_waits:
        return verdict(wait, evidence)
    if is_ordered is None:
        return verdict("unknown", evidence, NOT_TOLD)
    return verdict("stream-ordered" if is_ordered else "unordered", evidence)


def _waits(
    queue: QueuedWork,
    gpu: Gpu,
    call: Callable[[Any], Any],
    ready: Callable[[Any], None] | None = None,
) -> bool:
    """Whether the call waits for the work; with ``ready``, whether its result does."""

    def look(limit_ns: int) -> Gate:
        gpu.close_gate(limit_ns)
        array = queue.enqueue(1)
        if _launched(gpu) is Gate.WAITED:
            raise NoLoad(RUNS_IT)
        result = call(array)
        if ready is not None:
            ready(result)
        state = gpu.gate()
        gpu.open_gate()
        queue.finish(array)
        return state

    return _always_waits(look)


def _always_waits(look: Callable[[int], Gate]) -> bool:
    """Whether the gate is open after each look behind it."""
    for limit_ns in LIMITS_NS:
        for _ in range(TRIES):
            state = look(limit_ns)
            if state is Gate.CLOSED:
                return False
            if state is Gate.LIMIT:
                break
        else:
            return True
    return True


def _launched(gpu: Gpu) -> Gate:
    """Return the gate's state once the work stands behind it."""
    end = time.monotonic() + LAUNCH_S
    while gpu.gate() is Gate.ARMED:
        if time.monotonic() > end:
            gpu.open_gate()
            raise NoLoad(NO_LOAD)
        time.sleep(0.0001)
    return gpu.gate()


def waits_for(
    gpu: Gpu, call: Callable[[Any], Any], prepare: Callable[[], Any], work: OtherWork
) -> bool:
    """Whether the call on what ``prepare`` returns waits for work that is queued in between."""

    def look(limit_ns: int) -> Gate:
        argument = prepare()
        gpu.close_gate(limit_ns)
        finish = work(1)
        _launched(gpu)
        call(argument)
        state = gpu.gate()
        gpu.open_gate()
        finish()
        return state

    return _always_waits(look)
