"""Settings: does a conversion change what holds for a whole framework or process?

The texts of ``Probe.settings`` of both frameworks, and of NumPy if it is imported, and those of
:data:`OF_PROCESS` are evaluated before and after the first conversion of an array, whether it is
refused or not. Values are compared as text. A setting that only the call makes unreadable has
changed; which ones cannot be read before it is in the answer. The values of environment variables
may be secrets: only their names are.

The sticky flags of floating-point exceptions are no setting: any computation raises them. Nor are
warning filters for certain messages or modules that come while the call imports a module.

Verdicts: ``kept``, ``changed``, ``unknown`` (nothing can be read). The evidence has the settings
that changed.
"""

from __future__ import annotations

import errno
import operator
import os
import re
import signal
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial, reduce
from typing import Any, NamedTuple

from dlprof.probes.base import Probe
from dlprof.probes.numpy import NumPy
from dlprof.protocol.messages import LONGEST, verdict
from dlprof.worker.channel import Answer
from dlprof.worker.refusal import Refusal, attempt
from dlprof.worker.source_text import compile_call, execute
from dlprof.worker.subject import Subject

HANDLER, HANDLERS_IN_C = "handler of ", "signals caught and ignored"
NAMES = {one.value: one.name for one in signal.Signals}
ROUNDING, ROUNDING_IN_C = "rounding of floats", "rounding mode of C"
WARNING_FILTERS = "warning filters"
VARIABLE = "environment variable "
_STATUS = "Path('/proc/self/status').read_text()"
LONGEST_STATUS = 1 << 16
_C = "ctypes.pythonapi"


def _handlers() -> dict[str, str]:
    """Python's handler of each signal."""
    return {
        f"{HANDLER}{NAMES.get(one, one)}": "signal.getsignal("
        + (f"signal.{NAMES[one]})" if one in NAMES else f"{one:d})")
        for one in sorted(map(int, signal.valid_signals()))
    }


OF_PROCESS = {
    "locale": "locale.setlocale(locale.LC_ALL)",
    **_handlers(),
    # Without 32 to 34, which the C library keeps for itself and sets with the first thread.
    HANDLERS_IN_C: "[hex(int(mask, 16) & ~(7 << 31)) for mask in"
    rf" re.findall(r'Sig(?:Ign|Cgt):\s*(\w+)', {_STATUS})]",
    "blocked signals": "sorted(signal.pthread_sigmask(signal.SIG_BLOCK, []))",
    WARNING_FILTERS: "warnings.filters",
    "garbage collector": "(gc.isenabled(), gc.get_threshold())",
    "switch interval": "sys.getswitchinterval()",
    "resource limits": "[(one, resource.getrlimit(getattr(resource, one)))"
    " for one in dir(resource) if one.startswith('RLIMIT_')]",
    "recursion limit": "sys.getrecursionlimit()",
    "working folder": "os.getcwd()",
    "umask": rf"re.search(r'Umask:\s*(\w+)', {_STATUS})[1]",
    "processors of the thread": "sorted(os.sched_getaffinity(0))",
    ROUNDING: "[1 + sign * sys.float_info.epsilon / 4 for sign in (1, -1)]",
    ROUNDING_IN_C: f"{_C}.fegetround()",
    "floating-point traps": f"{_C}.fegetexcept()",
    "denormals": "(sys.float_info.min / 2, 5e-324 * sys.float_info.max)",
}
"""By name: an expression of Python's standard library. Half of the smallest normal number is zero
if the processor flushes denormals, and so is a product of a denormal if it takes these for zero."""
IMPORTS = (
    "import ctypes, gc, locale, os, re, resource, signal, sys, warnings\nfrom pathlib import Path"
)
QUICK = "import _signal as signal"
"""After the imports: the module ``signal`` asks an enumeration about each handler."""
HANDLER_WORDS = {"0": "SIG_DFL", "1": "SIG_IGN"}
NUMPY = NumPy()
"""Most libraries convert with its help, and share its settings."""
UNREADABLE = "cannot be read: {}"
UNSET = "None"
"""The value of an environment variable that is not set."""
BEFORE = 100
"""So many characters of a long text are kept before the first that changed."""

Found = dict[str, tuple[str, str | Refusal]]
"""By name: the expression, and its value as text or the error of reading it."""


class Reading(NamedTuple):
    """All values as text or the error of reading them, in their order, and the environment."""

    texts: list[str | Refusal]
    environment: dict[str, str]


@contextmanager
def watched(subject: Subject, answer: Answer) -> Iterator[None]:
    """Send what the conversion inside changes, also if it raises."""
    numpy = (NUMPY,) if "numpy" in sys.modules else ()
    owners = tuple(dict.fromkeys((subject.producer, subject.consumer, *numpy, None)))
    filters, modules, before = [*warnings.filters], len(sys.modules), _read(owners)
    try:
        yield
    finally:
        after = _read(owners)
        if before == after:  # as a rule, and a survey has hundreds of cases
            answer.part("settings", verdict("kept", {}))
        else:
            found, now = _named(owners, before), _named(owners, after)
            if len(sys.modules) > modules and attempt(partial(_are_of_modules, filters)) is True:
                name = f"{WARNING_FILTERS} of the process"
                now[name] = found[name]
            answer.part("settings", _judge(found, now))


def _are_of_modules(filters: list[Any]) -> bool:
    """Whether what was added to these ``filters`` is for certain messages or modules, as what a
    module adds when it is imported.
    """
    added = [one for one in warnings.filters if one not in filters]
    is_kept = [one for one in warnings.filters if one in filters] == filters
    return is_kept and all(message or module for _, message, _, module, _ in added)


def _judge(before: Found, after: Found) -> dict[str, Any]:
    changed: dict[str, dict[str, str]] = {}
    lost: dict[str, str] = {}
    kept = 0
    for name, (code, _) in {**before, **after}.items():
        _, value = before.get(name, (code, UNSET))
        _, now = after.get(name, (code, UNSET))
        if isinstance(value, Refusal):
            lost[name] = value.reason
            continue
        if isinstance(now, Refusal):
            if _is_shortage(now.error):
                lost[name] = now.reason
                continue
            now = UNREADABLE.format(now.reason)
        if now != value:
            shown = _hidden(value, now) if name.startswith(VARIABLE) else _cut(value, now)
            texts = dict(zip(("before", "after"), shown, strict=True))
            changed[name] = {"name": name, "code": code, **texts}
        else:
            kept += 1
    told = [one for name, one in changed.items() if not _is_echo(name, before, after, changed)]
    evidence: dict[str, Any] = {"changed": told} if told else {}
    if lost:
        # A rule asks for the names: they come first where the text is cut.
        reasons = "; ".join(dict.fromkeys(lost.values()))
        evidence["left_out"] = f"{', '.join(lost)}: {reasons}"[:LONGEST]
    if not (told or kept):
        return verdict("unknown", evidence, "no setting can be read")
    return verdict("changed" if told else "kept", evidence)


def _is_shortage(error: BaseException) -> bool:
    """Whether it says nothing of the setting: the process may open nothing more."""
    short_of = errno.EMFILE, errno.ENFILE, errno.ENOMEM
    return isinstance(error, MemoryError) or getattr(error, "errno", None) in short_of


def _is_echo(name: str, before: Found, after: Found, changed: Mapping[str, Any]) -> bool:
    """Whether another setting that changed says the same: that of Python says it of C, too."""
    if name.startswith(ROUNDING_IN_C):
        return _has(changed, ROUNDING)
    if not name.startswith(HANDLERS_IN_C) or isinstance(after[name][1], Refusal):
        return False
    masks = zip(*(_masks(found[name][1]) for found in (before, after)), strict=True)
    bits = reduce(operator.or_, (old ^ new for old, new in masks), 0)
    numbers = [one for one in map(int, signal.valid_signals()) if bits >> (one - 1) & 1]
    return all(_has(changed, f"{HANDLER}{NAMES.get(one, one)} ") for one in numbers)


def _has(changed: Iterable[str], prefix: str) -> bool:
    return any(name.startswith(prefix) for name in changed)


def _masks(text: str | Refusal) -> list[int]:
    return [int(one, 16) for one in re.findall(r"0x[0-9a-f]+", str(text))]


def _cut(before: str, after: str) -> tuple[str, str]:
    """Both texts; of long ones a part with the first difference."""
    if max(len(before), len(after)) <= LONGEST:
        return before, after
    pairs = enumerate(zip(before, after, strict=False))
    differ = next((at for at, (one, other) in pairs if one != other), min(len(before), len(after)))
    begin = max(0, differ - BEFORE)
    return before[begin : begin + LONGEST], after[begin : begin + LONGEST]


def _hidden(before: str, after: str) -> tuple[str, str]:
    """What became of an environment variable, without its values."""
    old, new = ("not set" if one == UNSET else "set" for one in (before, after))
    return old, "another value" if old == new else new


def _read(owners: Iterable[Probe | None]) -> Reading:
    """The settings of these frameworks; those of the process for None."""
    texts: list[str | Refusal] = []
    for probe in owners:
        settings, at_once = _settings(probe)
        found = attempt(at_once, BaseException)  # a probe's text may end the process
        if isinstance(found, Refusal):  # of one of them
            texts += [attempt(one.read, BaseException) for one in settings]
        else:
            texts += found
    return Reading(texts, dict(os.environ))


def _named(owners: Iterable[Probe | None], reading: Reading) -> Found:
    settings = (one for probe in owners for one in _settings(probe)[0])
    found: Found = {
        one.name: (one.code, HANDLER_WORDS.get(str(text), text) if one.is_handler else text)
        for one, text in zip(settings, reading.texts, strict=True)
    }
    return found | {
        f"{VARIABLE}{name} of the process": (f"os.environ.get({name!r})", repr(value))
        for name, value in reading.environment.items()
    }


class Setting(NamedTuple):
    """Its name, the expression of its value, and a function that gives this as text."""

    name: str
    code: str
    read: Callable[[], str]

    @property
    def is_handler(self) -> bool:
        return self.name.startswith(HANDLER)


@cache
def _settings(probe: Probe | None) -> tuple[tuple[Setting, ...], Callable[[], list[str]]]:
    """Those of a framework, or of the process for None; and a function that reads all at once."""
    setup, texts, owner = (
        (IMPORTS, OF_PROCESS, "the process")
        if probe is None
        else (probe.setup, probe.settings, probe.name)
    )
    namespace: dict[str, Any] = {}
    if texts:  # an error of the setup is one of each text, which lacks its names then
        attempt(partial(execute, setup, namespace, "setup"))
        if probe is None:
            execute(QUICK, namespace, "setup")
    namespace["repr"] = repr  # a setup may have a name like that
    # In parentheses and on lines of its own: an expression may be a tuple, or have a comment.
    read = {name: f"repr((\n{code}\n))" for name, code in texts.items()}
    settings = (
        Setting(f"{name} of {owner}", code, compile_call(read[name], namespace))
        for name, code in texts.items()
    )
    at_once = f"[{', '.join(read.values())}]"
    if probe is not None:
        return tuple(settings), compile_call(at_once, namespace)
    # The file is read once, without a file object of Python.
    all_texts = compile_call(at_once.replace(_STATUS, "status"), namespace, "status")
    return tuple(settings), lambda: all_texts(_status())


def _status() -> str:
    file = os.open("/proc/self/status", os.O_RDONLY)
    try:
        return os.read(file, LONGEST_STATUS).decode()
    finally:
        os.close(file)
