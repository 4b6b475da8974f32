"""Settings: does a conversion change what holds for a whole framework or process?

The texts of ``Probe.settings`` of both frameworks and those of :data:`OF_PROCESS` are evaluated
before and after the first conversion of an array, whether it is refused or not. Values are compared
as text. A setting that cannot be read is left out.

Verdicts: ``kept``, ``changed``. The evidence has the settings that changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

from dlprof.probes.base import Probe
from dlprof.protocol.messages import LONGEST, verdict
from dlprof.worker.channel import Answer
from dlprof.worker.refusal import Refusal, attempt
from dlprof.worker.source_text import compile_call, execute
from dlprof.worker.subject import Subject

OF_PROCESS = {
    "locale": "locale.setlocale(locale.LC_ALL)",
    "handler of SIGINT": "signal.getsignal(signal.SIGINT)",
    "handler of SIGFPE": "signal.getsignal(signal.SIGFPE)",
    "warning filters": "warnings.filters",
    "rounding of floats": "[1 + sign * sys.float_info.epsilon / 4 for sign in (1, -1)]",
    "denormals": "sys.float_info.min / 2",
}
"""By name: an expression of Python's standard library. Half of the smallest normal number is zero
if the processor flushes denormals."""
IMPORTS = "import locale, signal, sys, warnings"

Found = dict[str, tuple[str, str]]
"""By name: the expression, and its value as text."""


@contextmanager
def watched(subject: Subject, answer: Answer) -> Iterator[None]:
    """Send what the conversion inside changes, also if it raises."""
    before = _read(subject)
    try:
        yield
    finally:
        answer.part("settings", _judge(before, _read(subject)))


def _judge(before: Found, after: Found) -> dict[str, Any]:
    changed = [
        {"name": name, "code": code, "before": value, "after": after[name][1]}
        for name, (code, value) in before.items()
        if name in after and after[name][1] != value
    ]
    return verdict("changed" if changed else "kept", {"changed": changed} if changed else {})


def _read(subject: Subject) -> Found:
    found: Found = {}
    for probe in dict.fromkeys((subject.producer, subject.consumer, None)):
        for name, code, value_of in _getters(probe):
            value = attempt(lambda: repr(value_of()))  # noqa: B023 - called at once
            if not isinstance(value, Refusal):
                found[name] = (code, value[:LONGEST])
    return found


@cache
def _getters(probe: Probe | None) -> tuple[tuple[str, str, Callable[[], Any]], ...]:
    """Name, expression and function of each setting; those of the process for None."""
    setup, texts, owner = (
        (IMPORTS, OF_PROCESS, "the process")
        if probe is None
        else (probe.setup, probe.settings, probe.name)
    )
    namespace: dict[str, Any] = {}
    if texts and isinstance(attempt(partial(execute, setup, namespace, "setup")), Refusal):
        return ()
    return tuple(
        (f"{name} of {owner}", code, compile_call(code, namespace)) for name, code in texts.items()
    )
