"""Queued work: how to queue work on a source, convert behind it, and see when a result is ready.

On a known stream of the producer a spin kernel is queued, else the producer's own operations. On a
known stream of the consumer an event is recorded right after the call: the consumer's next work
runs after that event. Its own wait serves only if there is no handle: it may wait for more.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from dlprof.device.cuda import Gpu
from dlprof.probes.base import Probe
from dlprof.worker.simulated import computed
from dlprof.worker.source_text import compile_call, execute, statements
from dlprof.worker.subject import Subject

CALIBRATIONS = 5
MOST_WORK = 2**30
"""A queue of this many units that takes no time cannot be filled."""
QUEUEING_SHARE = 0.5
"""A call that takes this share of the work it queues runs the work itself."""
RUNS_IT = "the queue cannot be loaded: the call that queues work runs it"
SPIN_UNIT_NS = 100_000
MOST_STREAMS = 8
PARALLEL_NS = 5_000_000

OtherWork = Callable[[int], Callable[[], None]]
SEVERAL = 3
"""Streams of unrelated work if the framework's own handle is not known. Some of them may share the
device's queue with it, and hardly all.
"""


def calibrate(queue: QueuedWork, least_ns: int) -> tuple[float, float]:
    """Return the length of one unit of work in ns, and the share that the queueing call takes.

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
class StreamSide:
    """A framework on its default stream, or on a ``stream`` of ``gpu`` that it is put on."""

    probe: Probe
    gpu: Gpu | None = None
    stream: int | None = None

    @contextmanager
    def at_home(self) -> Iterator[None]:
        """Inside, the framework is on this side's device and stream."""
        device = nullcontext() if self.gpu is None else self.probe.on_device(self.gpu.ordinal)
        with device:  # a stream of torch belongs to the current device
            stream = None if self.stream is None else self.probe.on_stream(self.stream)
            with stream or nullcontext():
                yield

    def active(self) -> AbstractContextManager[object]:
        """Inside, the framework is as a user has it: moved only if it is put on a stream."""
        return nullcontext() if self.stream is None else self.at_home()

    def handle(self) -> int | None:
        """Return the stream's handle; None if the framework does not say."""
        if self.gpu is None or self.stream is not None:
            return self.stream
        with self.at_home():
            return self.probe.current_stream("cuda")


OWN_STREAMS = "own streams"


def default_sides(subject: Subject, gpu: Gpu | None) -> tuple[StreamSide, StreamSide]:
    """Return both sides on their default streams; ``gpu`` is the device of the source."""
    on_device = gpu is not None and subject.result_device == "cuda"
    result_gpu = gpu.at(subject.result_ordinal) if gpu is not None and on_device else None
    source_gpu = gpu if subject.spec.device == "cuda" else None
    return StreamSide(subject.producer, source_gpu), StreamSide(subject.consumer, result_gpu)


def moved_sides(subject: Subject, gpu: Gpu) -> dict[str, tuple[StreamSide, StreamSide]]:
    """Put producer and consumer on a non-blocking stream each, then each of them alone.

    A framework that converts its own arrays has one current stream for both sides.
    """
    producer, consumer = default_sides(subject, gpu)
    producer = _own_side(producer)
    if subject.producer.name == subject.consumer.name and producer.gpu is consumer.gpu:
        consumer = replace(consumer, stream=producer.stream)
    else:
        consumer = _own_side(consumer, producer.stream if producer.gpu is consumer.gpu else None)
    sides = producer, consumer
    own = [side.stream is not None for side in sides]
    if not any(own):
        return {}
    found = {OWN_STREAMS: sides}
    if all(own) and producer.stream != consumer.stream:
        found["the producer's own stream"] = producer, replace(consumer, stream=None)
        found["the consumer's own stream"] = replace(producer, stream=None), consumer
    return found


def _own_side(side: StreamSide, busy_stream: int | None = None) -> StreamSide:
    if side.gpu is None:
        return side
    stream = parallel_stream(side.gpu, side.probe.name, busy_stream)
    able = stream is not None and side.probe.on_stream(stream) is not None
    return replace(side, stream=stream) if able else side


_streams: WeakKeyDictionary[Gpu, dict[str, int]] = WeakKeyDictionary()


def parallel_stream(gpu: Gpu, use: str, *busy_streams: int | None) -> int | None:
    """Return a non-blocking stream, one per use, whose work runs in parallel with ``busy_streams``.

    A device has few queues (``CUDA_DEVICE_MAX_CONNECTIONS``, 8 by default). Streams that share a
    queue wait for each other, which would look like an order. None if all of
    :data:`MOST_STREAMS` share a queue with one of ``busy_streams``.
    """
    streams = _streams.setdefault(gpu, {})
    for _ in range(MOST_STREAMS):
        stream = streams[use] if use in streams else gpu.new_stream(blocking=False)
        streams[use] = stream
        if gpu.is_simulated:  # it has a queue for each stream
            return stream
        if all(other is None or _runs_in_parallel(gpu, stream, other) for other in busy_streams):
            return stream
        del streams[use]
    return None


def _runs_in_parallel(gpu: Gpu, stream: int, busy_stream: int) -> bool:
    """Whether work on ``stream`` is done before a spin that began earlier on ``busy_stream``."""
    mark, end = gpu.event(), gpu.event()
    gpu.synchronize_device()
    gpu.spin(busy_stream, PARALLEL_NS)
    gpu.record(end, busy_stream)
    gpu.record(mark, stream)
    gpu.synchronize_event(mark)
    is_parallel = not gpu.is_done(end)
    gpu.synchronize_device()
    return is_parallel


class QueuedWork:
    """A queue of the producer, and conversions behind it.

    ``text`` queues the producer's own operations. Times are in ns, read from ``clock``.
    """

    ready: Callable[[Any], None] | None
    """Wait for a result by the consumer's means alone."""
    export: Callable[[Any], Any] | None
    """The call of the producer alone; None if the consumer takes the array itself."""
    hold: Callable[[], None] | None = None
    """Holds up the work that is queued next, on a simulated device."""
    unrelated: tuple[OtherWork, ...]
    """Each queues work of some ns on another stream of the device, and returns a wait for it."""

    def __init__(
        self, subject: Subject, text: str, gpu: Gpu | None, sides: tuple[StreamSide, StreamSide]
    ) -> None:
        self._subject, self.gpu = subject, gpu
        self._producer, self._consumer = sides
        namespace = self._namespace = dict(subject.namespace)
        execute(subject.producer.queue_setup(subject.spec), namespace, "queue setup")
        wait = subject.producer.wait(subject.spec.device).format(x="_y") or "None"
        self._run = statements(text, namespace, "enqueue")
        self._finish = compile_call(wait, namespace, "_y")
        self.convert = self._on_streams(subject.code)
        self.export_code = subject.export_code
        self.export = None if self.export_code == "x" else self._on_streams(self.export_code)
        self._streams = [side.handle() for side in sides]
        self.clock = time.perf_counter_ns if gpu is None else gpu.host_ns
        self.ready = self._ready()
        self.unrelated = self._unrelated()

    def enqueue(self, work: int) -> Any:
        """Queue ``work`` units; return the array that depends on them."""
        stream = self._streams[0]
        with self._producer.at_home():
            if self.gpu is not None and stream is not None:
                self.gpu.spin(stream, work * SPIN_UNIT_NS)
                work = 1
            self._namespace["work"] = work
            self._run()
            return self._namespace.pop("y")

    def finished(self) -> Any:
        """Return a new array whose work is done."""
        array = self.enqueue(1)
        self.finish(array)
        return array

    def finish(self, array: Any) -> None:
        """Wait for that array."""
        with self._producer.at_home():
            self._finish(array)

    def _on_streams(self, code: str) -> Callable[[Any], Any]:
        """Compile ``code`` on an array ``x``, with both frameworks on their streams."""
        call = compile_call(code, self._namespace, "x")

        def run(array: Any) -> Any:
            # Both: an export may ask for the producer's current stream.
            with self._producer.active(), self._consumer.active():
                return call(array)

        return run

    def later(self, work: int) -> Callable[[], None]:
        """Queue ``work`` units of the producer, and return a wait for them."""
        return partial(self.finish, self.enqueue(work))

    def read(self, result: Any) -> Any:
        """Return a result's values as the consumer reads them; None if it is no array."""
        consumer = self._subject.consumer
        if not self._subject.import_.returns_array:
            return None
        with self._consumer.at_home():
            return computed(self.gpu, lambda: consumer.to_numpy(result)).copy()

    def is_right(self, values: Any, array: Any) -> bool | None:
        """Whether the values match a finished array."""
        if values is None:
            return None
        producer = self._subject.producer
        with self._producer.at_home():
            expected = computed(self.gpu, lambda: producer.to_numpy(array))
        if values.shape != expected.shape or values.dtype != expected.dtype:
            return None
        return bool(values.tobytes() == expected.tobytes())

    def spoil(self, array: Any) -> int | None:
        """Overwrite a finished array, so that reused memory does not hold right values.

        Returns its address; None if it has none, or keeps its values.
        """
        subject = self._subject
        address = subject.producer.pointer(array) if subject.spec.elements else None
        if address is None or address == subject.producer.pointer(subject.source):
            return None
        with self._producer.at_home():
            subject.overwrite(array, self.gpu)
        return address

    def _ready(self) -> Callable[[Any], None] | None:
        gpu, stream, subject = self._consumer.gpu, self._streams[1], self._subject
        if gpu is not None and stream is not None:
            event = gpu.event()

            def by_event(_result: Any) -> None:
                gpu.record(event, stream)
                gpu.synchronize_event(event)

            return by_event
        if subject.wait:
            wait = compile_call(subject.wait.format(x="_r"), self._namespace, "_r")

            def by_consumer(result: Any) -> None:
                with self._consumer.at_home():
                    wait(result)

            return by_consumer
        # The call itself is a wait if the consumer is synchronous.
        return (lambda _result: None) if subject.result_device == "cpu" else None

    def _unrelated(self) -> tuple[OtherWork, ...]:
        gpu = self.gpu
        if gpu is None:
            return ()
        sides = zip((self._producer, self._consumer), self._streams, strict=True)
        busy = [stream for side, stream in sides if side.gpu is gpu]
        count = SEVERAL if None in busy else 1
        streams = [parallel_stream(gpu, f"unrelated work {i}", *busy) for i in range(count)]
        return tuple(partial(queue_unrelated, gpu, stream) for stream in streams)


def queue_unrelated(gpu: Gpu, stream: int | None, duration_ns: int) -> Callable[[], None]:
    """Queue work of ``duration_ns`` that no array depends on, and return a wait for it."""
    if stream is None:  # its work ends at once, and the instrument sees that
        return lambda: None
    gpu.spin(stream, duration_ns)
    return lambda: gpu.synchronize(stream)
