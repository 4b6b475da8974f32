"""Refusal: which class has the error, and does a refusal leave anything behind?

A refused conversion is repeated, with a new source each time. What grows is judged as
:mod:`dlprof.worker.growth` does. A process tries each wording once per path, and at most three
errors of one class. If the export alone raises the error, its paths share one try.

A producer whose conversion works is asked by ``__dlpack__`` for another device, with ``copy=False``
and with ``copy=None``. If the first is refused in other words, ``copy=False`` is the cause.

A plain array that the path converted before is converted again. If that fails, or gives other
values, the refusals broke something.

Verdicts: ``clean``, ``retained``, ``broken``, ``unknown``. The evidence has the error's classes.
"""

from __future__ import annotations

import timeit
from collections.abc import Callable
from functools import partial
from typing import Any

from dlprof.probes.base import ArraySpec, Unsupported
from dlprof.protocol.messages import OTHER_VALUES, SAME_ERROR, verdict, words
from dlprof.worker import growth
from dlprof.worker.instruments import values
from dlprof.worker.instruments.handshake import VERSION
from dlprof.worker.refusal import Refusal, attempt
from dlprof.worker.source_text import compile_call
from dlprof.worker.subject import Subject, compose

MOST_ALIKE = 3
"""Errors of one class that are tried on one path: a framework may word each one differently."""
MOST_S = 0.5
"""A loop of refusals that leak nothing takes no longer: a compiler may take half a second each."""
OTHER_DEVICE = {"cpu": (2, 0), "cuda": (1, 0)}
"""``kDLCUDA`` and ``kDLCPU``: a device where the array is not."""

_refusal_keys: set[tuple[str, ...]] = set()
_working: dict[tuple[str, ...], ArraySpec] = {}
"""By path: the plain array that it converted in this process."""


def measure(subject: Subject, error: Exception) -> dict[str, Any]:
    """Return the verdict on a refused conversion."""
    evidence: dict[str, Any] = {"error": _classes(error)}
    kind, key = type(error).__name__, (*_refusing(subject, error), words(error)[:SAME_ERROR])
    alike = [past for past in _refusal_keys if past[:-1] == key[:-1] and past[-1].startswith(kind)]
    if key in _refusal_keys or len(alike) >= MOST_ALIKE:
        evidence["moot"] = True
        return verdict("unknown", evidence, "the same refusal was repeated before")
    _refusal_keys.add(key)
    found = attempt(lambda: _growth(subject))
    broken = _broken(subject)
    if broken:
        return verdict("broken", evidence | broken)
    if isinstance(found, Refusal):
        return verdict("unknown", evidence, found.reason)
    return verdict("retained" if found else "clean", evidence | found)


def note_working(subject: Subject) -> None:
    """Note that a path converts a plain array, unless its values are wrong."""
    if subject.import_.returns_array and not attempt(lambda: values.different(subject)):
        _working[_path(subject)] = subject.spec


def measure_export(subject: Subject) -> dict[str, Any] | None:
    """Return how the producer refuses another device without a copy; None if it does not."""
    source, key = subject.source, (subject.producer.name, subject.export.name)
    device = OTHER_DEVICE.get(subject.spec.device)
    if device is None or not hasattr(source, "__dlpack__") or key in _refusal_keys:
        return None
    _refusal_keys.add(key)
    ask = partial(source.__dlpack__, max_version=VERSION, dl_device=device)
    no_copy, maybe = attempt(partial(ask, copy=False)), attempt(partial(ask, copy=None))
    if not isinstance(no_copy, Refusal) or isinstance(no_copy.error, TypeError):
        return None  # a TypeError means an unknown argument
    reason = words(no_copy.error)
    if isinstance(maybe, Refusal) and words(maybe.error) == reason:
        return None
    # Nothing was refused that could leave something behind.
    evidence = {"other_device": list(device), "error": _classes(no_copy.error)}
    return verdict("unknown", evidence | {"words": reason, "moot": True}, "the conversion works")


def _classes(error: BaseException) -> list[str]:
    """Return the names of an error's classes, the narrowest first."""
    return [kind.__name__ for kind in type(error).__mro__ if kind is not object]


def _broken(subject: Subject) -> dict[str, str]:
    """Return evidence that the path no longer converts its plain array; empty if it does."""
    spec = _working.get(_path(subject))
    if spec is None:
        return {}
    found = attempt(lambda: values.different(subject.subject(spec)))
    if not found:
        return {}
    del _working[_path(subject)]
    return {
        "after": found.reason if isinstance(found, Refusal) else OTHER_VALUES,
        "plain_create": subject.producer.create(spec),
        "plain_code": compose(subject.export, subject.import_, spec),
    }


def _path(subject: Subject) -> tuple[str, ...]:
    names = subject.producer.name, subject.export.name, subject.consumer.name
    return (*names, subject.import_.name)


def _refusing(subject: Subject, error: Exception) -> tuple[str, ...]:
    """Return the names of the export, if it alone raises such an error, else of the path."""
    alone = attempt(compile_call(subject.export_code, subject.namespace))
    if isinstance(alone, Refusal) and type(alone.error) is type(error):
        return subject.producer.name, subject.export.name
    return _path(subject)


def _growth(subject: Subject) -> dict[str, Any]:
    """Return what the refusals leave behind; empty for nothing."""
    trial = subject.of_bytes(growth.NEW_SOURCE_BYTES)
    meters, is_uncounted = growth.choose_meters(subject)
    call_s = min(timeit.repeat(partial(_refused, subject.convert), number=1, repeat=2))
    if 2 * growth.FEW * call_s > MOST_S:  # two runs, the first to warm up
        raise Unsupported(f"a refusal takes {1e3 * call_s:.0f} ms: too long to repeat")
    found = growth.measure_new_sources(trial, meters, _refused)
    if is_uncounted and not found:
        raise Unsupported("neither framework says how much of the device's memory it uses")
    return found | trial.array_evidence() if found else {}


def _refused(convert: Callable[[], Any]) -> None:
    if not isinstance(attempt(convert), Refusal):
        raise Unsupported("an array of another size is not refused")
