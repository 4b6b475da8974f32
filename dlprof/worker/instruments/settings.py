"""Settings: does a conversion change what holds for a whole framework or process?

The texts of ``Probe.settings`` of both frameworks and of an imported NumPy, and
:data:`PROCESS_SETTINGS`, are evaluated before and after the first conversion of an array, even if
it is refused, and around the timed ones. Values are compared as text.

The sticky flags of floating-point exceptions are no setting: any computation raises them. Nor are
warning filters, which any import may add.

Verdicts: ``kept``, ``changed``. The evidence has the settings that changed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

from dlprof.probes.base import Probe
from dlprof.probes.numpy import NumPy
from dlprof.protocol.messages import LONGEST, verdict
from dlprof.worker.channel import Reply
from dlprof.worker.refusal import Refusal, attempt
from dlprof.worker.source_text import compile_call, execute
from dlprof.worker.subject import Subject
from dlprof.worker.turns import has_spinning_thread

PROCESS_SETTINGS = {
    "locale": "locale.setlocale(locale.LC_ALL)",
    "signal handlers": "[(int(one), signal.getsignal(one)) for one in signal.valid_signals()]",
    "blocked signals": "sorted(signal.pthread_sigmask(signal.SIG_BLOCK, []))",
    "garbage collector": "(gc.isenabled(), gc.get_threshold())",
    "switch interval": "sys.getswitchinterval()",
    "resource limits": "[(one, resource.getrlimit(getattr(resource, one)))"
    " for one in dir(resource) if one.startswith('RLIMIT_')]",
    "recursion limit": "sys.getrecursionlimit()",
    "working folder": "os.getcwd()",
    "processors of the thread": "sorted(os.sched_getaffinity(0))",
    "rounding of floats": "[1 + sign * sys.float_info.epsilon / 4 for sign in (1, -1)]",
    "floats near zero (denormals)": "'flushed to zero' if 0.0 in"
    " (sys.float_info.min / 2, 5e-324 * sys.float_info.max) else 'kept'",
    "random generator": "hash(random.getstate())",
    "default socket timeout": "socket.getdefaulttimeout()",
    "hooks": "(sys.excepthook, sys.displayhook, sys.unraisablehook, threading.excepthook)",
}
"""By name: an expression of Python's standard library. Half of the smallest normal number is zero
if the processor flushes denormals, and so is a product of a denormal if it takes these for zero."""
SPINS = (
    "('asleep', 'running')[time.sleep(0.2) or"
    " -time.process_time() + (time.sleep(0.1) or time.process_time()) > 0.01]"
)
BETWEEN_CALLS = "state of the threads between calls", SPINS
"""The code for scripts. Here a look is short if all threads are asleep."""
IMPORTS = "import gc, locale, os, random, resource, signal, socket, sys, threading"
NUMPY = NumPy()
"""Most libraries convert with its help, and share its settings."""
CONTEXT = 100
"""This many characters of a text are kept before the first that changed."""

Reading = dict[tuple[str, str], "str | Refusal"]
"""Settings as text, by their name and the expression that reads them."""


@contextmanager
def watched(
    subject: Subject, reply: Reply, *, timed: bool = False, later: bool = False
) -> Iterator[None]:
    """Send what is changed inside, also by an error. Of ``later`` calls send a change only.

    A ``timed`` case also looks at the threads of the process.
    """
    numpy = (NUMPY,) if "numpy" in sys.modules else ()
    owners = tuple(dict.fromkeys((subject.producer, subject.consumer, *numpy, None)))
    before = _read(owners, timed=timed)
    try:
        yield
    finally:
        changed = list(_changed(before, _read(owners, timed=timed)))
        found = verdict("changed", {"changed": changed}) if changed else verdict("kept", {})
        if changed or not later:
            reply.part("settings", found)


def _read(owners: Iterable[Probe | None], *, timed: bool) -> Reading:
    """Read the settings of these frameworks, and of the process for None."""
    readers = {key: read for probe in owners for key, read in _readers(probe).items()}
    if timed:
        readers[BETWEEN_CALLS] = lambda: "running" if has_spinning_thread() else "asleep"
    # A probe's text may end the process.
    return {key: attempt(read, BaseException) for key, read in readers.items()}


def _changed(before: Reading, after: Reading) -> Iterator[dict[str, str]]:
    for key, old in before.items():
        now = after[key]
        if isinstance(old, Refusal) or now == old:
            continue
        text = f"cannot be read: {now.reason}" if isinstance(now, Refusal) else now
        pairs = enumerate(zip(old, text, strict=False))
        begin = max(0, next((index for index, (a, b) in pairs if a != b), 0) - CONTEXT)
        part = slice(begin, begin + LONGEST)
        yield {"name": key[0], "code": key[1], "before": old[part], "after": text[part]}


@cache
def _readers(probe: Probe | None) -> dict[tuple[str, str], Callable[[], str]]:
    """Return functions that read the settings of a framework, or of the process for None."""
    setup, texts, owner = (
        (IMPORTS, PROCESS_SETTINGS, "the process")
        if probe is None
        else (probe.setup, probe.settings, probe.name)
    )
    namespace: dict[str, Any] = {}
    if texts:  # an error of the setup is one of each text, which lacks its names then
        attempt(partial(execute, setup, namespace, "setup"))
    namespace["repr"] = repr  # a setup may have a name like that
    # In parentheses and on lines of its own: an expression may be a tuple, or have a comment.
    return {
        (f"{name} of {owner}", code): compile_call(f"repr((\n{code}\n))", namespace)
        for name, code in texts.items()
    }
