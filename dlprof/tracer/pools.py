"""Workers of a pool of :mod:`multiprocessing`, which the pool kills when its block ends.

A worker writes its file before it gives a result away, and when it waits for the next task. While
it waits with all of its counts in the file, a byte of a second file says so: then nothing is lost.
"""

from __future__ import annotations

import functools
import mmap
import sys
import threading
import time
from contextlib import suppress
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import ForkingPickler
from typing import Any

from dlprof.tracer.state import Tracer
from dlprof.tracer.tracebacks import WithoutFrame

IDLE = ".idle"
"""How the name of the second file ends."""
POOLS = ("multiprocessing.pool", "torch.multiprocessing.pool")
NO_MORE = bytes(ForkingPickler.dumps(None))
"""What a worker gets instead of a task when it should end."""
FREE_NS, SHARE = 50_000_000, 10
"""Writing before results takes at most this time and one part in ten of the worker's life."""


def follow(tracer: Tracer) -> None:
    """Make each worker of a pool that begins in this process, or in a fork of it, a ``Worker``."""
    original = BaseProcess._bootstrap  # type: ignore[attr-defined]  # noqa: SLF001

    def begun(self: Any, *args: Any, **kwargs: Any) -> Any:
        with suppress(Exception):  # a pool of another making is left alone
            if getattr(self._target, "__module__", "") in POOLS:
                Worker(tracer, *self._args[:2])
        return original(self, *args, **kwargs)

    BaseProcess._bootstrap = functools.wraps(original)(begun)  # type: ignore[attr-defined]  # noqa: SLF001


class Worker:
    """Puts itself between a worker and its two queues."""

    def __init__(self, tracer: Tracer, tasks: Any, results: Any) -> None:
        self.tracer, self.rows = tracer, tracer.rows
        self.written, self.spent_ns = -1, 0
        self._is_ready, self._receive = tasks._reader.poll, tasks._reader.recv_bytes  # noqa: SLF001
        self._put, self._send = results.put, results._writer.send_bytes  # noqa: SLF001
        with open(f"{self.rows.path}{IDLE}", "w+b") as file:  # noqa: PTH123
            file.write(b"0")
            file.flush()
            self.said = mmap.mmap(file.fileno(), 1)
        self.write()
        tasks._reader.recv_bytes = self.receive  # noqa: SLF001
        results.put, results._writer.send_bytes = self.put, self.send  # noqa: SLF001

    def put(self, result: Any) -> None:
        """Write before the lock of the queue is taken: others wait for it."""
        life_ns = time.perf_counter_ns() - self.rows.started_ns
        if self.spent_ns < FREE_NS + life_ns / SHARE:
            self.write()
        with WithoutFrame():
            self._put(result)

    def send(self, *args: Any) -> None:
        self.say()  # after the result was pickled, which may convert
        with WithoutFrame():
            self._send(*args)

    def receive(self, *args: Any) -> Any:
        if not self._is_ready(0):
            self.write()
        self.say()
        with WithoutFrame():
            task = self._receive(*args)
        if bytes(task) != NO_MORE:
            self.said[0:1] = b"0"
        return task

    def write(self) -> None:
        """Write the file if anything was counted since."""
        counted = self.rows.counted()
        if counted != self.written:
            began = time.perf_counter_ns()
            self.rows.write()
            self.written = counted
            self.spent_ns += time.perf_counter_ns() - began

    def say(self) -> None:
        """Say that the file has all, if nothing else can count now."""
        me, own_frame = threading.get_ident(), self.tracer.places.own_frame
        frames = sys._current_frames().items()  # noqa: SLF001 - CPython's own way
        is_alone = all(thread == me or own_frame(frame) is None for thread, frame in frames)
        if is_alone and not self.tracer.capsules and self.rows.counted() == self.written:
            self.said[0:1] = b"1"
