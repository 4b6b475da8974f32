"""Values: did shape, dtype and every value survive the conversion?

The source holds a pattern that shows wrong strides and truncation
(:data:`dlprof.probes.base.PATTERNS`). Source and result are read back by their own frameworks and
compared bit for bit. Where they agree, :mod:`dlprof.worker.aftermath` looks for what else the
conversion changed. It cannot tell for a call that leaves no array behind.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dlprof.probes.base import Probe
from dlprof.worker import aftermath, room
from dlprof.worker.elements import bits, read, unequal
from dlprof.worker.foreign import UNKNOWN
from dlprof.worker.subject import Subject

COPIES = 3
"""Source and result, as they are read back; and where they differ, which is as large at most."""
PART_BYTES = 16 << 20
"""Where there is no room for whole copies, parts of this size are compared: of as many bytes malloc
uses memory again, and of more it takes new pages each time."""


def measure(subject: Subject, again: bool = True) -> dict[str, Any]:
    """Verdict ``ok``, ``wrong`` or ``unknown`` with evidence.

    ``again`` says whether there is time for more conversions than one.
    """
    if not subject.import_.returns_array:
        return unknown("the call leaves no array behind to compare")
    try:
        import numpy  # noqa: F401 - asked for here so that its absence is told in words
    except ImportError:
        return unknown("NumPy is not installed in the measured interpreter")
    source = subject.source
    result = subject.convert()
    subject.wait_for(result)
    spec, producer, consumer = subject.spec, subject.producer, subject.consumer
    seen: dict[str, list[Any]] = {
        # Plain memory has neither; what the way in says is what was asked for.
        "shape": [_lengths(producer, source, spec.shape), _lengths(consumer, result)],
        "dtype": [producer.dtype(source) or spec.dtype, consumer.dtype(result)],
    }
    if UNKNOWN in seen["dtype"]:
        return unknown("nothing tells the dtype of source or result")
    changed: dict[str, Any] = {what: pair for what, pair in seen.items() if pair[0] != pair[1]}
    if "shape" not in changed:
        changed.update(_difference(subject, source, result, changed.get("dtype")))
    writable = {
        "source": subject.producer.writable(source),
        "result": subject.consumer.writable(result),
    }
    evidence = {"changed": changed, "writable": writable}
    if again and changed.keys() <= {"values"}:
        del result  # a buffer that is used again only when nobody holds it would be another
        found = aftermath.look(subject)
        # What a conversion wrote to its source looks like a wrong result of it.
        if not changed or "source" in found["changed"]:
            evidence |= found
            changed = found["changed"]
    if not changed and subject.is_one_array and _is_constant(subject):
        reason = "all values of the source are equal, so that a wrong order would not show"
        return {"verdict": "unknown", "evidence": {**evidence, "reason": reason}}
    return {"verdict": "wrong" if changed else "ok", "evidence": evidence}


def _lengths(probe: Probe, array: Any, otherwise: tuple[int, ...] | None = None) -> list[int]:
    shape = probe.shape(array)
    shape = otherwise if shape is None else shape
    if shape is None:
        raise TypeError(f"{probe.name} does not say the shape of its array")
    return list(shape)


def _is_constant(subject: Subject) -> bool:
    import numpy

    values = bits(numpy.ascontiguousarray(subject.producer.to_numpy(subject.source)).reshape(-1))
    return bool(values.size > 1 and (values == values[0]).all())


def unknown(reason: str) -> dict[str, Any]:
    return {"verdict": "unknown", "evidence": {"reason": reason}}


def _difference(
    subject: Subject, source: Any, result: Any, dtypes: tuple[str, str] | None
) -> dict[str, Any]:
    different, first = 0, None
    for start, before, after in _parts(subject, source, result):
        differ = unequal(before, after, dtypes)
        count = int(differ.sum())
        different += count
        if count and first is None:
            first = start + int(differ.argmax())
    if not different:
        return {}
    return {"values": {"different": different, "of": subject.spec.elements, "first_index": first}}


def _parts(subject: Subject, source: Any, result: Any) -> Iterator[tuple[int, Any, Any]]:
    """Index of the first element, source and result, one-dimensional on the host.

    Arrays are read back whole where their copies fit into memory, and else in parts along
    their first axis.
    """
    spec = subject.spec
    rows = spec.shape[0] if spec.shape else 1
    if room.fits(COPIES * spec.size_bytes) or not hasattr(result, "__getitem__"):
        step = rows
        room.check_more(COPIES * spec.size_bytes)
    else:
        step = max(1, PART_BYTES * rows // max(spec.size_bytes, 1))
        room.check_more(COPIES * spec.size_bytes * step // rows)
    for begin in range(0, max(rows, 1), max(step, 1)):
        end = min(begin + step, rows)
        whole = end - begin >= rows
        elements = spec.elements if whole else spec.elements // rows * (end - begin)
        before = read(subject.producer, source, spec, None if whole else (begin, end))
        after = read(subject.consumer, result, spec, None if whole else (begin, end))
        for side, values in (("source", before), ("result", after)):
            if values.size != elements:
                raise ValueError(f"{values.size} values of the {side} were read back")
        yield begin * (spec.elements // max(rows, 1)), before, after
