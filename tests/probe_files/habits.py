"""A library over NumPy's memory whose faults show late, seldom, or at one size only.

Each import has one fault, named in its first comment, except for ``view``, ``copy`` and ``defer``.
"""

import ctypes
import queue
import threading
import time
import weakref
from pathlib import Path

import numpy

from dlprof.probes.base import CPU, Export, Import, Protocol
from dlprof.probes.numpy import NumPy

MIB = 1 << 20
kept = queue.SimpleQueue()
pending = []
last = {"source": None, "calls": 0, "result": None}
by_source = weakref.WeakValueDictionary()
by_content = weakref.WeakValueDictionary()
ring = []
known = {"source": None}
first_seen = {"source": None, "kept": []}


def release():
    while True:
        until, source = kept.get()
        if until > time.monotonic():  # a sleep of nothing would wait for the interpreter's lock
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
    """No fault: the result owns what it needs, and a thread lets go of the source later."""
    keep(source)
    return source.view()


def dangle_later(source):
    """A view that keeps its source for 150 ms."""
    keep(source)
    block = (ctypes.c_char * source.nbytes).from_address(source.ctypes.data)
    return numpy.frombuffer(block, source.dtype).reshape(source.shape)


def take_along(source):
    """A view that spoils the memory of its source when it goes."""
    result = source.view()
    weakref.finalize(result, source.fill, 3)
    return result


def habit(source):
    """After fifty calls with one array, the next one gets the result of that array."""
    if last["source"] is not None and last["source"]() is source:
        last["calls"] += 1
        last["result"] = source.copy() if last["calls"] == 50 else last["result"]
        return source.copy()
    stale, calls = last["result"], last["calls"]
    last.update(source=weakref.ref(source), calls=1, result=None)
    is_alike = stale is not None and (stale.shape, stale.dtype) == (source.shape, source.dtype)
    return stale if calls >= 50 and is_alike else source.copy()


def share_equal(source):
    """Arrays of equal content get one copy, as long as somebody holds it."""
    found = by_content.get((source.shape, source.dtype.str, source.tobytes()))
    if found is None:
        found = source.copy()
        by_content[source.shape, source.dtype.str, source.tobytes()] = found
    return found


def share_copies(source):
    """An array gets its copy once more, as long as somebody holds it."""
    found = by_source.get(id(source))
    if found is None or found.shape != source.shape or not numpy.array_equal(found, source):
        found = by_source[id(source)] = source.copy()
    return found


def flatten_source(source):
    """The source has one axis afterwards."""
    result = source.copy()
    if source.flags.c_contiguous:
        source.shape = (source.size,)
    return result


def wrong_at_first(source):
    """The first conversion of each array gives zeros."""
    is_new = known["source"] is None or known["source"]() is not source
    known["source"] = weakref.ref(source)
    return numpy.zeros_like(source) if is_new else source.copy()


def four_buffers(source):
    """Four buffers in turns, whoever still holds the first."""
    alike = [one for one in ring if (one.shape, one.dtype) == (source.shape, source.dtype)]
    if len(alike) < 4:
        ring.append(source.copy())
        return ring[-1]
    ring[:] = [one for one in ring if one is not alike[0]] + alike[:1]
    alike[0][...] = source
    return alike[0]


def keep_each(source):
    """Something of each array stays for good, and nothing of its later conversions."""
    if first_seen["source"] is None or first_seen["source"]() is not source:
        first_seen["source"] = weakref.ref(source)
        first_seen["kept"].append(numpy.ones(5 << 10))
    return source.copy()


def flush_large(source):
    """Arrays of more than 1 MiB lose the numbers below the normal ones."""
    result = source.copy()
    if result.nbytes > MIB:
        result[numpy.abs(result) < numpy.finfo(result.dtype).tiny] = 0
    return result


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


def early_large(source):
    """Arrays of more than 32 MiB are read at once, and the result is filled later."""
    if source.nbytes <= 32 * MIB:
        return source.copy()
    staged, result = source.copy(), numpy.zeros_like(source)
    thread = threading.Thread(target=lambda: (time.sleep(0.1), numpy.copyto(result, staged)))
    thread.start()
    return result


def finish(_):
    while pending:
        pending.pop().join()


VIEWS = ("view", "defer", "dangle_later", "take_along")
COPIES = (
    *("copy", "habit", "share_equal", "share_copies", "flatten_source", "wrong_at_first"),
    *("four_buffers", "keep_each", "flush_large", "late_rows", "early_large"),
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
