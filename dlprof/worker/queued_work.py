"""Queued work: how to queue work on a source, convert behind it, and see when a result is ready.

If the producer's stream is known, a spin kernel of known length is queued there. Else the
producer queues its own operations. If the consumer's stream is known, an event is recorded on it
right after the call: the consumer's next work runs after that event and after nothing else. The
consumer's own wait serves only if there is no handle, since it may wait for more than its stream.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from dlprof.device.cuda import Gpu
from dlprof.probes.base import Probe
from dlprof.worker.simulated import computed
from dlprof.worker.source_text import compile_call, prepare, statements
from dlprof.worker.subject import Subject

CALIBRATIONS = 5
MOST_WORK = 2**30
"""A queue of so many units that takes no time cannot be filled."""
QUEUEING_SHARE = 0.5
"""A call that takes this share of the work it queues runs the work itself."""
RUNS_IT = "the queue cannot be loaded: the call that queues work runs it"
SPIN_UNIT_NS = 100_000
MOST_STREAMS = 8
BESIDE_NS = 5_000_000


Unrelated = Callable[[int], Callable[[], None]]
SEVERAL = 3
"""Streams of unrelated work beside one whose handle is not known: the device's queue of that one
may be shared by some of them, and hardly by all.
"""


@dataclass(frozen=True)
class QueuedWork:
    """What an instrument does with a queue; times are those of ``clock``, in ns."""

    enqueue: Callable[[int], Any]
    """Queue that many units of work; returns the array that depends on them."""
    finish: Callable[[Any], None]
    """Wait for that array."""
    convert: Callable[[Any], Any]
    ready: Callable[[Any], None] | None
    """Wait for a result by the consumer's means alone."""
    look: Callable[[Any], Any]
    """The values of a result as the consumer reads them; None if it leaves no array."""
    is_right: Callable[[Any, Any], bool | None]
    """Whether these values are those of a finished array."""
    spoil: Callable[[Any], int | None]
    """Overwrite a finished array: its memory must not hold right values when it is reused. Returns
    its address; None if it has none, or keeps its values."""
    clock: Callable[[], int] = time.perf_counter_ns
    unrelated: tuple[Unrelated, ...] = ()
    """Each queues work of that many ns on which no array depends, and returns a wait for it."""


def calibrate(queue: QueuedWork, least_ns: int) -> tuple[float, float]:
    """Length of one unit of work in ns, and the share of it that the queueing call takes.

    Both are the least of several tries: a thread that was not scheduled seems to work.
    """
    work = 1
    while True:
        tries = [_queue_once(queue, work) for _ in range(CALIBRATIONS)]
        total = min(total for total, _ in tries)
        if total >= least_ns:
            return total / work, min(share for _, share in tries)
        if work >= MOST_WORK:
            return max(total, 1) / work, 1.0
        work *= 2


def _queue_once(queue: QueuedWork, work: int) -> tuple[int, float]:
    begin = queue.clock()
    array = queue.enqueue(work)
    queued = queue.clock()
    queue.finish(array)
    total = queue.clock() - begin
    return total, (queued - begin) / max(total, 1)


@dataclass(frozen=True)
class Side:
    """A framework on its default stream, or on a ``stream`` that it is put on."""

    probe: Probe
    stream: int | None = None

    def on(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """``call``, with the framework on this side's stream while it runs."""
        stream = self.stream
        if stream is None:
            return call

        def run(*arguments: Any) -> Any:
            context = self.probe.on_stream(stream)
            if context is None:  # it could when the side was made
                raise RuntimeError(f"{self.probe.name} cannot be put on a stream any more")
            with context:
                return call(*arguments)

        return run

    def handle(self, device: str) -> int | None:
        return self.probe.current_stream(device) if self.stream is None else self.stream


def default_sides(subject: Subject) -> tuple[Side, Side]:
    return Side(subject.producer), Side(subject.consumer)


def own_sides(subject: Subject, gpu: Gpu) -> tuple[Side, Side] | None:
    """Producer and consumer on a non-blocking stream each; None if neither can be put on one.

    A framework that converts its own arrays has one current stream for both sides.
    """
    producer = _own_side(subject.producer, gpu)
    if subject.producer.name == subject.consumer.name:
        consumer = Side(subject.consumer, producer.stream)
    else:
        consumer = _own_side(subject.consumer, gpu, producer.stream)
    return None if producer.stream is consumer.stream is None else (producer, consumer)


def _own_side(probe: Probe, gpu: Gpu, beside: int | None = None) -> Side:
    stream = stream_for(gpu, probe.name, beside)
    able = stream is not None and probe.on_stream(stream) is not None
    return Side(probe, stream if able else None)


_streams: WeakKeyDictionary[Gpu, dict[str, int]] = WeakKeyDictionary()


def stream_for(gpu: Gpu, use: str, *beside: int | None) -> int | None:
    """A non-blocking stream, one per use, whose work runs beside that of other streams.

    A device has few queues (``CUDA_DEVICE_MAX_CONNECTIONS``, 8 by default). Streams that share a
    queue wait for each other, which would look like an order. None if none of
    :data:`MOST_STREAMS` is free of all ``beside``.
    """
    streams = _streams.setdefault(gpu, {})
    others = [stream for stream in beside if stream is not None]
    for _ in range(MOST_STREAMS):
        stream = streams[use] if use in streams else gpu.new_stream(blocking=False)
        streams[use] = stream
        if all(_runs_beside(gpu, stream, other) for other in others):
            return stream
        del streams[use]
    return None


def _runs_beside(gpu: Gpu, stream: int, other: int) -> bool:
    """Whether work on ``stream`` is done before a spin that began earlier on ``other``."""
    mark, end = gpu.event(), gpu.event()
    gpu.synchronize_device()
    gpu.spin(other, BESIDE_NS)
    gpu.record(end, other)
    gpu.record(mark, stream)
    gpu.synchronize_event(mark)
    beside = not gpu.is_done(end)
    gpu.synchronize_device()
    return beside


def queue_of(subject: Subject, text: str, gpu: Gpu | None, sides: tuple[Side, Side]) -> QueuedWork:
    """The queue of a real producer, whose enqueue is ``text``, before a real consumer."""
    producer, consumer = sides
    namespace = dict(subject.namespace)
    wait = subject.producer.wait(subject.spec.device).format(x="_y") or "None"
    convert = compile_call(subject.code, namespace, "x")
    return QueuedWork(
        enqueue=producer.on(_enqueue(subject, text, gpu, producer, namespace)),
        finish=producer.on(compile_call(wait, namespace, "_y")),
        # Both are on their streams: an export may ask for the producer's current stream.
        convert=producer.on(consumer.on(convert)),
        ready=_ready(subject, gpu, consumer, namespace),
        look=consumer.on(lambda result: _look(subject, result, gpu)),
        is_right=producer.on(lambda seen, array: _is_right(subject, seen, array, gpu)),
        spoil=producer.on(lambda array: _spoil(subject, array, gpu)),
        clock=time.perf_counter_ns if gpu is None else gpu.host_ns,
        unrelated=(
            _probe_unrelated(subject, namespace)
            if gpu is None
            else _unrelated(gpu, *_handles(subject, sides))
        ),
    )


def _enqueue(
    subject: Subject, text: str, gpu: Gpu | None, side: Side, namespace: dict[str, Any]
) -> Callable[[int], Any]:
    prepare(subject.producer.queue_setup(subject.spec), namespace)
    run = statements(text, namespace, "enqueue")

    def enqueue(work: int) -> Any:
        namespace["work"] = work
        run()
        return namespace.pop("y")

    stream = side.handle("cuda") if subject.spec.device == "cuda" else None
    if gpu is None or stream is None:
        return enqueue

    def spin(work: int) -> Any:
        gpu.spin(stream, work * SPIN_UNIT_NS)
        return enqueue(1)

    return spin


def _ready(
    subject: Subject, gpu: Gpu | None, side: Side, namespace: dict[str, Any]
) -> Callable[[Any], None] | None:
    """A way to wait for a result; None if there is none.

    The call itself is one if the consumer is synchronous.
    """
    stream = side.handle("cuda") if gpu is not None and subject.result_device == "cuda" else None
    if gpu is not None and stream is not None:
        return _by_event(gpu, stream)
    if subject.wait:
        wait = compile_call(subject.wait.format(x="_r"), namespace, "_r")
        return side.on(wait)
    return (lambda _result: None) if subject.result_device == "cpu" else None


def _by_event(gpu: Gpu, stream: int) -> Callable[[Any], None]:
    event = gpu.event()

    def ready(_result: Any) -> None:
        gpu.record(event, stream)
        gpu.synchronize_event(event)

    return ready


def _look(subject: Subject, result: Any, gpu: Gpu | None) -> Any:
    if not subject.import_.returns_array:
        return None
    return computed(gpu, lambda: subject.consumer.to_numpy(result)).copy()


def _is_right(subject: Subject, seen: Any, array: Any, gpu: Gpu | None) -> bool | None:
    if seen is None:
        return None
    expected = computed(gpu, lambda: subject.producer.to_numpy(array))
    if seen.shape != expected.shape or seen.dtype != expected.dtype:
        return None
    return bool(seen.tobytes() == expected.tobytes())


def _spoil(subject: Subject, array: Any, gpu: Gpu | None) -> int | None:
    address = subject.producer.pointer(array) if subject.spec.elements else None
    if address is None or address == subject.producer.pointer(subject.source):
        return None
    subject.overwrite(array, gpu)
    return address


def _probe_unrelated(subject: Subject, namespace: dict[str, Any]) -> tuple[Unrelated, ...]:
    text = subject.producer.enqueue_unrelated(subject.spec)
    if text is None:
        return ()
    run = statements(text, namespace, "enqueue unrelated")

    def queue(duration_ns: int) -> Callable[[], None]:
        namespace["duration_ns"] = duration_ns
        run()
        finish: Callable[[], None] = namespace.pop("z").wait
        return finish

    return (queue,)


def _handles(subject: Subject, sides: tuple[Side, Side]) -> list[int | None]:
    devices = subject.spec.device, subject.result_device
    return [
        side.handle("cuda") for side, device in zip(sides, devices, strict=True) if device == "cuda"
    ]


def _unrelated(gpu: Gpu, *handles: int | None) -> tuple[Unrelated, ...]:
    count = SEVERAL if None in handles else 1
    return tuple(_on_stream(gpu, f"unrelated work {at}", *handles) for at in range(count))


def _on_stream(gpu: Gpu, use: str, *handles: int | None) -> Unrelated:
    stream = stream_for(gpu, use, *handles)
    if stream is None:  # its work ends at once, and the instrument sees that
        return lambda _: lambda: None

    def queue(duration_ns: int) -> Callable[[], None]:
        gpu.spin(stream, duration_ns)
        return lambda: gpu.synchronize(stream)

    return queue
