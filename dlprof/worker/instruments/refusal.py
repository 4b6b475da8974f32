"""Refusal: of which kind is the error, and does a refusal leave anything behind?

A conversion that was refused is refused again and again, of a new source each time. What grows
meanwhile is judged as :mod:`~dlprof.worker.instruments.lifetime` judges conversions. A few calls
come first. The many that prove a leak follow if these leave something at every call or two. The
same path and words are tried once in a process, and three errors of one class. If the export alone
raises this error, that is once for all its paths. What a compiler refuses takes long: one export
that gives a NumPy array stands for all. If it leaves nothing, it stands for the other processes of
a survey, too. What another process showed to leave something is not proved again.

A producer whose conversion works is asked by ``__dlpack__`` for another device, with ``copy=False``
and with ``copy=None``. If the first is refused in other words than the second, ``copy=False`` is
the cause.

A small plain array that the path converted before is made and converted again after the refusals.
If that fails now, or gives other values, the refusals broke something. Without such an array that
is unknown.

Verdicts: ``clean``, ``retained``, ``broken``, ``unknown``. The evidence has the error's classes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from dlprof.probes.base import ArraySpec, Unsupported, written
from dlprof.protocol.messages import OTHER_VALUES, SAME_ERROR, verdict, words
from dlprof.worker.instruments import lifetime, values
from dlprof.worker.instruments.handshake import VERSION
from dlprof.worker.refusal import Refusal, attempt
from dlprof.worker.source_text import compile_call
from dlprof.worker.subject import Subject, compose

MOST_ALIKE = 3
"""Errors of one class that are tried on one path: a framework may word each one differently."""
MOST_S = 0.5
"""A loop of refusals that leak nothing takes no longer, or is left out: a compiler may take half a
second each."""
FEWEST = 8
"""Calls that tell what stays at each from one chance object. The runs before the last have 183
together: a cache of 128 entries, as ``functools`` makes, is full by then."""
SLOW_S = 2e-3
"""A compiler takes longer to refuse. What it leaves behind of one NumPy array tells of those that
other exports give: a loop takes seconds."""
NO_PLAIN = "no plain array was converted before, which could show what the refusals broke"
OTHER_DEVICE = {"cpu": (2, 0), "cuda": (1, 0)}
"""``kDLCUDA`` and ``kDLCPU``: a device where the array is not."""

_tried: set[tuple[str, ...]] = set()
_working: dict[tuple[str, ...], ArraySpec] = {}
"""By path: the plain array that it converted in this process."""


def kinds_of(error: BaseException) -> list[str]:
    """Names of the classes of an error, the narrowest first."""
    return [kind.__name__ for kind in type(error).__mro__ if kind is not object]


class Known(NamedTuple):
    """How errors begin of which other processes of a survey know what they leave behind."""

    retained: Collection[str] = ()
    """Those of the path that leave something."""
    of_numpy: Collection[str] = ()
    """Those of the import that a compiler raises for any export's NumPy array, and that leave
    nothing.
    """


NOTHING = Known()


def measure(subject: Subject, error: Exception, known: Known = NOTHING) -> dict[str, Any]:
    """What the refusal of a conversion shows, and a loop of refusals leaves behind."""
    evidence: dict[str, Any] = {"error": kinds_of(error)}
    key = (*_refusing(subject, error), words(error)[:SAME_ERROR])
    kind = type(error).__name__
    alike = [one for one in _tried if one[:-1] == key[:-1] and one[-1].startswith(kind)]
    if key in _tried or subject.is_one_array or len(alike) >= MOST_ALIKE:
        moot = {"moot": True} if key in _tried else {}  # the first one is judged
        return verdict("unknown", evidence | moot, "the same refusal was repeated before")
    _tried.add(key)
    found = attempt(lambda: _growth(subject, words(error)[:SAME_ERROR], known, evidence))
    broken = _broken(subject)
    if broken:
        return verdict("broken", evidence | broken)
    if isinstance(found, Refusal):
        moot = {"moot": True} if isinstance(found.error, Judged) else {}
        return verdict("unknown", evidence | moot, found.reason)
    if _path(subject) in _working:
        return verdict("retained" if found else "clean", evidence | found)
    if found:
        return verdict("retained", evidence | found | {"left_out": NO_PLAIN})
    return verdict("unknown", evidence, f"nothing stays behind, but {NO_PLAIN}")


def worked(subject: Subject) -> None:
    """Note that a path converts a plain array, unless its values are wrong."""
    if subject.import_.returns_array and not attempt(lambda: values.different(subject)):
        _working[_path(subject)] = subject.spec


def _broken(subject: Subject) -> dict[str, str]:
    """What became of the array that the path converted before, and of one with other values, for
    which it may give an earlier result once more; empty if it still converts both.
    """
    spec = _working.get(_path(subject))
    if spec is None:
        return {}
    for tried in (replace(spec, corners=False, shifted=True), spec):
        found = attempt(partial(_different, subject, tried))
        if found:
            break
    else:
        return {}
    del _working[_path(subject)]
    after = found.reason if isinstance(found, Refusal) else OTHER_VALUES
    code = compose(subject.export, subject.import_, spec)
    texts = {"plain_create": tried} | ({} if tried is spec else {"earlier_create": spec})
    creates = {name: attempt(partial(subject.producer.create, one)) for name, one in texts.items()}
    made = {name: one for name, one in creates.items() if not isinstance(one, Refusal)}
    return {"after": after, **made, "plain_code": code}


def _different(subject: Subject, spec: ArraySpec) -> Any:
    return values.different(subject.subject(spec))


def _path(subject: Subject) -> tuple[str, ...]:
    names = subject.producer.name, subject.export.name, subject.consumer.name
    return (*names, subject.import_.name)


def _refusing(subject: Subject, error: Exception) -> tuple[str, ...]:
    """What refuses: the export, if it alone raises such an error, else the path."""
    spec, export = subject.spec, (subject.producer.name, subject.export.name)
    code = written(subject.export.code, "x", spec.dtype, spec.shape)
    alone = attempt(compile_call(code, subject.namespace))
    if isinstance(alone, Refusal) and type(alone.error) is type(error):
        return export
    return _path(subject)


def _growth(
    subject: Subject, begins: str, known: Known, evidence: dict[str, Any]
) -> dict[str, Any]:
    """What the refusals leave behind; empty for nothing. ``evidence`` gets whether that stands for
    all exports that give a NumPy array.

    Raises :class:`Judged` if that is known.
    """
    if begins in known.retained:
        raise Judged("another process showed what the same refusal leaves behind")
    other = subject.of_bytes(lifetime.NEW_SOURCE_BYTES)
    meters, is_uncounted = lifetime.meters_of(subject)
    convert = other.converting(other.make_another())
    each_s = _seconds(convert)
    if each_s > SLOW_S:  # the processor may have been taken away
        each_s = min(each_s, _seconds(convert))
    # Two runs, the first to warm up. Calls that take long are fewer: a leak shows at each.
    few = min(lifetime.FEW, int(MOST_S / 2 / each_s))
    if few < FEWEST:
        raise Unsupported(f"a refusal takes {1e3 * each_s:.0f} ms: too long to repeat")
    of_numpy = each_s > SLOW_S and _gives_numpy(subject)
    key = (subject.consumer.name, subject.import_.name, begins)
    if of_numpy and (key in _tried or begins in known.of_numpy):
        raise Judged("the same refusal of another export's NumPy array was repeated before")
    found = lifetime.growth_of_calls(other, meters, _refused, few)
    if of_numpy:
        _tried.add(key)
        if not found:  # what leaves something is proved anew, lest the proof is lost with its case
            evidence["of_numpy"] = True
    if is_uncounted and not found:
        raise Unsupported(lifetime.UNCOUNTED)
    return found | other.made() if found else {}


def _seconds(convert: Callable[[], Any]) -> float:
    began = time.perf_counter()
    _refused(convert)
    return time.perf_counter() - began


def _gives_numpy(subject: Subject) -> bool:
    code = written(subject.export.code, "x", subject.spec.dtype, subject.spec.shape)
    given = attempt(compile_call(code, subject.namespace))
    return (type(given).__module__, type(given).__name__) == ("numpy", "ndarray")


def _refused(convert: Callable[[], Any]) -> None:
    if not isinstance(attempt(convert), Refusal):
        raise NotRefused("an array of another size is not refused")


class NotRefused(Exception):
    """A conversion that was refused works."""


class Judged(Exception):
    """What the refusal leaves behind was looked at before."""


def of_export(subject: Subject) -> dict[str, Any] | None:
    """How the producer refuses another device without a copy; None if the question is moot."""
    source, key = subject.source, (subject.producer.name, subject.export.name)
    device = OTHER_DEVICE.get(subject.spec.device)
    if device is None or not hasattr(source, "__dlpack__") or key in _tried:
        return None
    _tried.add(key)

    def ask(copy: bool | None) -> Any:
        return source.__dlpack__(max_version=VERSION, dl_device=device, copy=copy)

    without, maybe = attempt(lambda: ask(False)), attempt(lambda: ask(None))
    if not isinstance(without, Refusal) or isinstance(without.error, TypeError):
        return None  # a TypeError is that of an argument that it does not know
    if isinstance(maybe, Refusal) and words(maybe.error) == words(without.error):
        return None
    evidence = {"other_device": list(device), "error": kinds_of(without.error)}
    # Nothing was refused that could leave something behind.
    evidence |= {"words": words(without.error), "moot": True}
    return verdict("unknown", evidence, "the conversion works")
