"""Reuse: is the memory of a view given out again while another stream still reads the view?

The consumer works on a stream of its own. It copies the view behind a spin, and view and source are
dropped at once. Then the producer makes new arrays on its own stream, until one gets the memory,
and gives them other values. Proof: the copy holds these. On a simulated device the copy stands
behind the gate, so that the speed of the host does not matter.
"""

from __future__ import annotations

import gc
from dataclasses import replace
from typing import Any

from dlprof.device.cuda import Gpu
from dlprof.worker.queued_work import OWN_STREAMS, moved_sides
from dlprof.worker.source_text import compile_call
from dlprof.worker.subject import Subject

SPIN_NS, LIMIT_NS = 50_000_000, 2_000_000_000
MOST_ARRAYS = 16


def is_reused(subject: Subject, gpu: Gpu) -> bool | None:
    """Whether the copy of a dropped view holds values of a later array; None if that is not known.

    The consumer's probe has a text of ``copy`` if its copies are queued on its own stream.
    """
    producer, name = subject.producer, subject.spec.dtype
    text = subject.consumer.idioms("cuda", name).get("copy")
    side = moved_sides(subject, gpu).get(OWN_STREAMS, (None, None))[1]
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
    others = _others(subject, gpu, address)
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


def _others(subject: Subject, gpu: Gpu, address: int) -> list[Any]:
    """Make arrays with other values until one lies at ``address``."""
    subject = replace(subject, spec=replace(subject.spec, shifted=True))
    found: list[Any] = []
    while len(found) < MOST_ARRAYS:
        found.append(subject.make_another())
        subject.overwrite(found[-1], gpu)
        if subject.producer.pointer(found[-1]) == address:
            break
    return found
