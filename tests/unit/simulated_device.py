"""A CUDA device on a fake clock, and frameworks that behave on it as configured.

Everything queued on a stream runs in order and takes a declared time. The start and end of
each piece of work are therefore known when it is queued. Nothing runs in the background. The
host has one clock, which advances when a call costs host time and when the host waits.

The rules are those of the CUDA driver's documentation ("Stream synchronization behavior"):

- work on the legacy default stream starts after all work queued on blocking streams, and work
  queued on a blocking stream afterwards starts after it;
- the per-thread default stream is a blocking stream;
- a non-blocking stream waits only for its own work and for the events it was given.

Memory holds one byte value throughout, and remembers when each write lands. A reader sees the
value at its own time. A read that is not ordered after the write sees the old value. A copy
sees the value that its source holds when the copy ends.
"""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy

from dlprof.device.cuda import LEGACY_STREAM
from dlprof.probes.base import ArraySpec, Export, Import, Probe, Protocol
from dlprof.worker.subject import Subject

Value = Callable[[], int]


QUEUE_NS = 1_000  # host: to queue one piece of work
PER_THREAD_STREAM = 2
EVENT_NS = 700  # device: to record one event
FLUSH_NS = 50_000  # device: to flush the L2 cache
WARM_BYTES_PER_NS, COLD_BYTES_PER_NS = 4, 2  # a copy


@dataclass
class Stream:
    blocking: bool
    busy_until_ns: int = 0


@dataclass
class Event:
    passed_ns: int | None = None


class Memory:
    """An allocation: its values, with the times at which they land. A zero lands first."""

    def __init__(self) -> None:
        self.writes: list[tuple[int, Value]] = [(0, lambda: 0)]

    def put(self, at_ns: int, value: Value) -> None:
        self.writes.append((at_ns, value))

    def value(self, at_ns: int) -> int:
        landed = [write for write in self.writes if write[0] <= at_ns]
        landed.sort(key=lambda write: write[0])  # in a tie, the later write wins
        return landed[-1][1]()


class SimulatedDevice:
    """A fake :class:`dlprof.device.cuda.Gpu` on a fake clock."""

    uuid = ""
    is_simulated = False
    ordinal = 0

    def __init__(self) -> None:
        self.now_ns = 0
        self.memory: dict[int, Memory] = {}
        self._free = 0x7000_0000
        self.l2_is_cold = True
        self._streams = {LEGACY_STREAM: Stream(True), PER_THREAD_STREAM: Stream(True)}

    def at(self, ordinal: int) -> "SimulatedDevice":
        return self

    # The host

    def host_ns(self) -> int:
        return self.now_ns

    def spend(self, host_ns: int) -> None:
        """Advance the clock as if the host were busy."""
        self.now_ns += host_ns

    def synchronize(self, stream: int) -> None:
        self.now_ns = self._start(stream)

    def synchronize_device(self) -> None:
        self.now_ns = max(self.now_ns, *(one.busy_until_ns for one in self._streams.values()))

    # Streams and events

    def new_stream(self, *, blocking: bool) -> int:
        handle = 0x1000 + len(self._streams)
        self._streams[handle] = Stream(blocking)
        return handle

    def end_of(self, stream: int) -> int:
        """Return the time at which all work queued on the stream will be done."""
        return self._stream(stream).busy_until_ns

    def queue(self, stream: int, device_ns: int) -> tuple[int, int]:
        """Queue work of this length; return its start and end."""
        self.spend(QUEUE_NS)
        start = self._start(stream)
        self._stream(stream).busy_until_ns = start + device_ns
        return start, start + device_ns

    def spin(self, stream: int, duration_ns: int) -> None:
        self.queue(stream, duration_ns)

    def event(self) -> Event:
        return Event()

    def record(self, event: Event, stream: int) -> None:
        _, event.passed_ns = self.queue(stream, EVENT_NS)

    def is_done(self, event: Event) -> bool:
        return event.passed_ns is None or event.passed_ns <= self.now_ns

    def elapsed_ns(self, start: Event, end: Event) -> float:
        assert start.passed_ns is not None
        assert end.passed_ns is not None
        assert max(start.passed_ns, end.passed_ns) <= self.now_ns, "an event has not passed yet"
        return float(end.passed_ns - start.passed_ns)

    def wait_event(self, stream: int, event: Event) -> None:
        start, _ = self.queue(stream, 0)
        self._stream(stream).busy_until_ns = max(start, event.passed_ns or 0)

    def synchronize_event(self, event: Event) -> None:
        self.now_ns = max(self.now_ns, event.passed_ns or 0)

    def _stream(self, handle: int | None) -> Stream:
        return self._streams[handle or LEGACY_STREAM]

    def _start(self, handle: int) -> int:
        """Return the time at which work queued now would start."""
        stream, legacy = self._stream(handle), self._streams[LEGACY_STREAM]
        ahead = [stream.busy_until_ns, self.now_ns]
        if stream is legacy:
            ahead += [one.busy_until_ns for one in self._streams.values() if one.blocking]
        elif stream.blocking:
            ahead.append(legacy.busy_until_ns)
        return max(ahead)

    # Memory

    def allocate(self, size_bytes: int) -> int:
        address, self._free = self._free, self._free + 512 * (1 + size_bytes // 512)
        self.memory[address] = Memory()
        return address

    def uncomputed_reads(self) -> int:
        return 0

    def write(self, address: int, data: bytes) -> None:
        self.spend(1)  # work that ended just now did not see it any more
        self.memory[address].put(self.now_ns, lambda: data[0])

    def copy(self, destination: int, source: int, size_bytes: int, stream: int) -> None:
        _, end = self.queue(stream, self.copy_ns(size_bytes))
        origin = self.memory[source]
        self.memory[destination].put(end, lambda: origin.value(end))
        self.l2_is_cold = False

    def copy_ns(self, size_bytes: int) -> int:
        return size_bytes // (COLD_BYTES_PER_NS if self.l2_is_cold else WARM_BYTES_PER_NS)

    def flush_l2(self, stream: int) -> None:
        self.queue(stream, FLUSH_NS)
        self.l2_is_cold = True

    def speed_up(self) -> None:
        """Returns constant clocks."""


@dataclass(frozen=True)
class FakeArray:
    address: int
    size_bytes: int
    stream: int


@dataclass(frozen=True)
class Behaviour:
    """The behavior of a framework when it imports an array.

    ``order`` is its response to the producer's queued work. The ``host`` waits for the producer's
    stream, for the whole ``device``, or for ``half`` of the remaining queue. Or its own stream
    waits for an ``event``, the ``legacy`` default stream waits for it, or ``nothing`` does. If it
    ``copies``, it then copies on its own stream; if ``hasty``, it copies first. A ``private``
    stream is neither exposed nor accepted. A ``mute`` framework has no wait of its own. ``host_ns``
    is the added host time of the call. A producer that ``blocks`` runs its queued work before it
    returns.
    """

    order: str = "event"
    copies: bool = False
    hasty: bool = False
    private: bool = False
    mute: bool = False
    blocks: bool = False
    host_ns: int = 2_000


class FakeFramework(Probe):
    """A framework with its own stream, whose ``from_dlpack`` behaves as configured."""

    exports = (Export("dlpack", Protocol.DLPACK, "{x}"),)
    devices = ("cuda",)

    def __init__(
        self,
        device: SimulatedDevice,
        stream: int,
        behaviour: Behaviour | None = None,
        name: str = "consumer",
    ) -> None:
        self.gpu, self.stream, self.name = device, stream, name  # type: ignore[misc]
        self.imports = (Import("from_dlpack", (Protocol.DLPACK,), f"{name}.from_dlpack({{x}})"),)  # type: ignore[misc]
        self.behaviour = behaviour or Behaviour()

    def array(self, size_bytes: int) -> FakeArray:
        return FakeArray(self.gpu.allocate(size_bytes), size_bytes, self.stream)

    def from_dlpack(self, source: FakeArray) -> FakeArray:
        self.gpu.spend(self.behaviour.host_ns)
        if self.behaviour.hasty:
            result = self._taken(source)
            self._take_turn(source.stream)
            return result
        self._take_turn(source.stream)
        return self._taken(source)

    def _taken(self, source: FakeArray) -> FakeArray:
        if not self.behaviour.copies:
            return FakeArray(source.address, source.size_bytes, self.stream)
        result = self.array(source.size_bytes)
        self.gpu.copy(result.address, source.address, source.size_bytes, self.stream)
        return result

    def _take_turn(self, producer_stream: int) -> None:
        order = self.behaviour.order
        if order == "host":
            self.gpu.synchronize(producer_stream)
        elif order == "device":
            self.gpu.synchronize_device()
        elif order == "half":
            self.gpu.spend(max(0, self.gpu.end_of(producer_stream) - self.gpu.now_ns) // 2)
        elif order in ("event", "legacy"):
            event = self.gpu.event()
            self.gpu.record(event, producer_stream)
            self.gpu.wait_event(self.stream if order == "event" else LEGACY_STREAM, event)

    def compute(self, source: FakeArray, work_ns: int) -> FakeArray:
        """Queue work on this framework's stream that computes the source's value plus one."""
        result = self.array(source.size_bytes)
        start, end = self.gpu.queue(self.stream, work_ns)
        old, new = self.gpu.memory[source.address], self.gpu.memory[result.address]
        new.put(end, lambda: (old.value(start) + 1) % 256)
        if self.behaviour.blocks:
            self.gpu.synchronize(self.stream)
        return result

    def to_numpy(self, array: FakeArray) -> Any:
        """Copy to the host on this framework's stream, and let the host wait for it."""
        _, end = self.gpu.queue(self.stream, 0)
        value = self.gpu.memory[array.address].value(end)
        self.gpu.synchronize(self.stream)
        return numpy.full(array.size_bytes, value, "uint8")

    def pointer(self, array: FakeArray) -> int:
        return array.address

    def device(self, array: FakeArray) -> str:
        return "cuda"

    def dtype(self, array: FakeArray) -> str:
        return "uint8"

    def write(self, array: FakeArray, value: int) -> None:
        self.gpu.write(array.address, bytes([value]) * array.size_bytes)

    def wait(self, device: str) -> str:
        return "" if self.behaviour.mute else f"{self.name}.gpu.synchronize({{x}}.stream)"

    def enqueue(self, spec: ArraySpec) -> str:
        return f"y = {self.name}.compute(x, work)"

    def current_stream(self, device: str) -> int | None:
        return None if self.behaviour.private else self.stream

    def on_stream(self, handle: int) -> contextlib.AbstractContextManager[None] | None:
        return None if self.behaviour.private else self._moved_to(handle)

    @contextlib.contextmanager
    def _moved_to(self, handle: int) -> Iterator[None]:
        before, self.stream = self.stream, handle  # type: ignore[misc]
        try:
            yield
        finally:
            self.stream = before  # type: ignore[misc]


STREAM_KINDS = ("legacy", "per-thread", "blocking", "non-blocking")


def stream_of(device: SimulatedDevice, kind: str) -> int:
    """Return a stream of this kind; there is one legacy and one per-thread default stream."""
    if kind == "legacy":
        return LEGACY_STREAM
    if kind == "per-thread":
        return PER_THREAD_STREAM
    return device.new_stream(blocking=kind == "blocking")


def pair(
    device: SimulatedDevice | None = None,
    streams: tuple[str, str] = ("non-blocking", "non-blocking"),
    producer: Behaviour | None = None,
    size_bytes: int = 64,
    **behaviour: Any,
) -> tuple[Subject, SimulatedDevice]:
    """Return the case of ``consumer.from_dlpack(x)`` on streams of these kinds, and its device."""
    device = device or SimulatedDevice()
    first, second = (stream_of(device, kind) for kind in streams)
    giver = FakeFramework(device, first, producer, name="producer")
    taker = FakeFramework(device, second, Behaviour(**behaviour))
    names = {"producer": giver, "consumer": taker, "x": giver.array(size_bytes)}
    spec = ArraySpec((size_bytes,), "uint8", device="cuda")
    export, import_ = giver.exports[0], taker.imports[0]
    return Subject(giver, taker, export, import_, names, spec, "cuda"), device
