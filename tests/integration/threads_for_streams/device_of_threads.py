"""A device in real time without a GPU: its streams are threads, its memory is the host's.

It orders streams by the rules of the simulated device in ``tests/unit``. Workers of another process
can use it, and clocks of the host tell its times. It says nothing about CUDA itself.
"""

from __future__ import annotations

import ctypes
import functools
import queue
import threading
import time

LEGACY, PER_THREAD = 1, 2
WAKING_NS = 60_000
"""A sleeping thread goes on about so much later."""

_libc = ctypes.CDLL(None)
_libc.malloc.restype = ctypes.c_void_p
_libc.malloc.argtypes = (ctypes.c_size_t,)
_libc.free.argtypes = (ctypes.c_void_p,)


def take_the_place_of(cuda):
    """Let ``dlprof.device.cuda`` open the device of threads."""
    cuda.driver_devices = lambda: 1
    cuda.open_gpu = functools.cache(DeviceOfThreads)


class Work:
    """A piece of queued work, and when it was done."""

    def __init__(self, before, run):
        self.before, self.run = before, run
        self.done = threading.Event()
        self.done_ns = None


class Stream:
    def __init__(self, *, blocking):
        self.blocking = blocking
        self.last = None
        self._queue = queue.SimpleQueue()
        threading.Thread(target=self._work, daemon=True).start()

    def put(self, work):
        self.last = work
        self._queue.put(work)

    def _work(self):
        while True:
            work = self._queue.get()
            for other in work.before:
                other.done.wait()
            work.run()
            work.before = ()  # else each piece of work would keep all before it
            work.done_ns = time.perf_counter_ns()
            work.done.set()


class Event:
    work = None


class DeviceOfThreads:
    """Implements :class:`dlprof.device.cuda.Gpu`."""

    uuid = ""

    def __init__(self):
        self._streams = {LEGACY: Stream(blocking=True), PER_THREAD: Stream(blocking=True)}

    def host_ns(self):
        return time.perf_counter_ns()

    # Streams and events

    def new_stream(self, *, blocking):
        handle = 0x1000 + len(self._streams)
        self._streams[handle] = Stream(blocking=blocking)
        return handle

    def spin(self, stream, duration_ns):
        self._put(stream, lambda: time.sleep(max(0, duration_ns - WAKING_NS) / 1e9))

    def event(self):
        return Event()

    def record(self, event, stream):
        event.work = self._put(stream, _nothing)

    def is_done(self, event):
        return event.work is None or event.work.done.is_set()

    def elapsed_ns(self, start, end):
        return float(end.work.done_ns - start.work.done_ns)

    def wait_event(self, stream, event):
        self._put(stream, _nothing, [event.work])

    def synchronize_event(self, event):
        _wait(event.work)

    def synchronize(self, stream):
        for work in [self._streams[stream].last, *self._ahead(stream)]:
            _wait(work)

    def synchronize_device(self):
        for stream in list(self._streams.values()):
            _wait(stream.last)

    def _put(self, stream, run, before=()):
        work = Work([one for one in (*before, *self._ahead(stream)) if one is not None], run)
        self._streams[stream].put(work)
        return work

    def _ahead(self, handle):
        """What work on this stream comes after, besides its own."""
        stream, legacy = self._streams[handle], self._streams[LEGACY]
        if stream is legacy:
            blocking = [one for one in self._streams.values() if one.blocking]
            return [one.last for one in blocking if one is not legacy]
        return [legacy.last] if stream.blocking else []

    # Memory

    def allocate(self, size_bytes):
        return _libc.malloc(max(size_bytes, 1))

    def free(self, address):
        _libc.free(address)

    def read(self, address, size_bytes):
        return ctypes.string_at(address, size_bytes)

    def write(self, address, data):
        ctypes.memmove(address, data, len(data))

    def copy(self, destination, source, size_bytes, stream):
        self._put(stream, lambda: ctypes.memmove(destination, source, size_bytes))

    def flush_l2(self, stream):
        self._put(stream, _nothing)

    def memcpy_ns(self, size_bytes):
        addresses = [self.allocate(size_bytes) for _ in range(2)]
        begin = time.perf_counter_ns()
        self.copy(*addresses, size_bytes, PER_THREAD)
        self.synchronize(PER_THREAD)
        return float(time.perf_counter_ns() - begin)


def _wait(work):
    if work is not None:
        work.done.wait()


def _nothing():
    """Stand at the end of a stream."""
