"""A library on NumPy memory whose faults show late, rarely, or at one size only.

Each import has one fault, named in its docstring, except for ``view``, ``copy`` and ``defer``.
"""

import os
import queue
import signal
import sys
import threading
import time
import weakref
from pathlib import Path

import numpy

from dlprof.probes.base import CPU, Export, Import, Protocol
from dlprof.probes.numpy import NumPy

calls = []
kept = queue.SimpleQueue()
pending = []
ring = []
shared = {"source": lambda: None, "copy": None}
first_seen = {"source": None, "kept": []}


def release():
    while True:
        until, source = kept.get()
        if until > time.monotonic():  # a sleep of 0 s would wait for the interpreter's lock
            time.sleep(max(0.0, until - time.monotonic()))
        del source


threading.Thread(target=release, daemon=True).start()


def keep(source, seconds=0.15):
    kept.put((time.monotonic() + seconds, source))


def view(source):
    return source.view()


def copy(source):
    return source.copy()


def defer(source):
    """No fault: the result owns its memory, and a thread releases the source later."""
    keep(source)
    return source.view()


def take_along(source):
    """A view that overwrites the memory of its source when it is freed."""
    result = source.view()
    weakref.finalize(result, source.fill, 3)
    return result


def share_copy(source):
    """The results of one array share a copy, which the first of them to be freed overwrites."""
    if shared["source"]() is not source:
        shared.update(source=weakref.ref(source), copy=source.copy())
    result = shared["copy"].view()
    weakref.finalize(result, shared["copy"].fill, 3)
    return result


def release_there(source):
    """A view that overwrites the memory of its source when another thread frees it."""

    def release():
        if threading.current_thread() is not threading.main_thread():
            source.fill(3)

    result = source.view()
    weakref.finalize(result, release)
    return result


class Late(numpy.ndarray):
    def __del__(self):
        if sys.is_finalizing():
            os.abort()


def crash_at_exit(source):
    """A view that ends the process if the interpreter exits while it is alive."""
    return source.view(Late)


def main_thread_only(source):
    """A copy that has no values when another thread makes it."""
    is_main = threading.current_thread() is threading.main_thread()
    return source.copy() if is_main else numpy.zeros_like(source)


def mask_later(source):
    """A copy; the tenth call blocks a signal for good."""
    calls.append(1)
    if len(calls) == 10:
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
    return source.copy()


def spin():
    while True:
        pass


def spin_later(source):
    """A copy; the tenth call starts a thread that runs for good."""
    calls.append(1)
    if len(calls) == 10:
        threading.Thread(target=spin, daemon=True).start()
    return source.copy()


def four_buffers(source):
    """Four buffers in rotation, even if the first is still in use."""
    alike = [one for one in ring if (one.shape, one.dtype) == (source.shape, source.dtype)]
    if len(alike) < 4:
        ring.append(source.copy())
        return ring[-1]
    ring[:] = [one for one in ring if one is not alike[0]] + alike[:1]
    alike[0][...] = source
    return alike[0]


def keep_each(source):
    """The first conversion of each array leaks, and later ones do not."""
    if first_seen["source"] is None or first_seen["source"]() is not source:
        first_seen["source"] = weakref.ref(source)
        first_seen["kept"].append(numpy.ones(5 << 10))
    return source.copy()


def beside(source, result):
    """Fill ``result`` on a thread that begins a little later."""

    def fill():
        time.sleep(0.02)
        result[...] = source

    thread = threading.Thread(target=fill)
    pending.append(thread)
    thread.start()
    return result


def late_rows(source):
    """Arrays of two axes are still read after the call has returned."""
    return beside(source, numpy.zeros_like(source)) if source.ndim == 2 else source.copy()


def finish(_):
    while pending:
        pending.pop().join()


VIEWS = ("view", "defer", "take_along", "release_there", "crash_at_exit")
COPIES = (
    "copy",
    "mask_later",
    "spin_later",
    "share_copy",
    "main_thread_only",
    "four_buffers",
    "keep_each",
    "late_rows",
)


def import_(name, promise):
    protocols, code = (Protocol.NATIVE,), f"habits.{name}({{x}})"
    return Import(name, protocols, code, CPU, promise=promise, producers=("habits",))


class Habits(NumPy):
    name = "habits"
    aliases = ()
    setup = f"import numpy, sys\nsys.path.insert(0, {str(Path(__file__).parent)!r})\nimport habits"
    exports = (Export("array", Protocol.NATIVE, "{x}", CPU),)
    imports = (
        *(import_(name, "view") for name in VIEWS),
        *(import_(name, "copy") for name in COPIES),
    )

    def wait(self, device):
        return "habits.finish({x})"
