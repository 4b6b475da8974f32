"""Values: did shape, dtype and every value survive the conversion?

The source holds a pattern that shows wrong strides and truncation
(:data:`dlprof.probes.base.PATTERNS`). Source and result are read back by their own frameworks and
compared bit for bit. It cannot tell for a call that leaves no array behind.
"""

from __future__ import annotations

from typing import Any

from dlprof.worker.foreign import UNKNOWN
from dlprof.worker.subject import Subject


def measure(subject: Subject) -> dict[str, Any]:
    """Verdict ``ok``, ``wrong`` or ``unknown`` with evidence."""
    if not subject.import_.returns_array:
        return unknown("the call leaves no array behind to compare")
    try:
        import numpy  # noqa: F401 - asked for here so that its absence is told in words
    except ImportError:
        return unknown("NumPy is not installed in the measured interpreter")
    source = subject.source
    result = subject.convert()
    subject.wait_for(result)
    seen: dict[str, list[Any]] = {
        "shape": [list(subject.producer.shape(source)), list(subject.consumer.shape(result))],
        "dtype": [subject.producer.dtype(source), subject.consumer.dtype(result)],
    }
    if UNKNOWN in seen["dtype"]:
        return unknown("nothing tells the dtype of source or result")
    changed: dict[str, Any] = {what: pair for what, pair in seen.items() if pair[0] != pair[1]}
    if "shape" not in changed:
        changed.update(_difference(subject, source, result, same_dtype="dtype" not in changed))
    writable = {
        "source": subject.producer.writable(source),
        "result": subject.consumer.writable(result),
    }
    evidence = {"changed": changed, "writable": writable}
    if not changed and subject.is_one_array and _is_constant(subject):
        reason = "all values of the source are equal, so that a wrong order would not show"
        return {"verdict": "unknown", "evidence": {**evidence, "reason": reason}}
    return {"verdict": "wrong" if changed else "ok", "evidence": evidence}


def _is_constant(subject: Subject) -> bool:
    import numpy

    values = _bits(numpy.ascontiguousarray(subject.producer.to_numpy(subject.source)).reshape(-1))
    return bool(values.size > 1 and (values == values[0]).all())


def unknown(reason: str) -> dict[str, Any]:
    return {"verdict": "unknown", "evidence": {"reason": reason}}


def _difference(subject: Subject, source: Any, result: Any, same_dtype: bool) -> dict[str, Any]:
    import numpy

    before = numpy.ascontiguousarray(subject.producer.to_numpy(source)).reshape(-1)
    after = numpy.ascontiguousarray(subject.consumer.to_numpy(result)).reshape(-1)
    for side, read in (("source", before), ("result", after)):
        if read.size != subject.spec.elements:
            raise ValueError(f"{read.size} values of the {side} were read back")
    if same_dtype:
        before, after = _bits(before), _bits(after)
    elif not _comparable(before, after):
        return {}
    unequal = before != after
    count = int(unequal.sum())
    if count == 0:
        return {}
    words = unequal.size // max(subject.spec.elements, 1)
    return {
        "values": {
            "different": count if words == 1 else int(unequal.reshape(-1, words).any(axis=1).sum()),
            "of": subject.spec.elements,
            "first_index": int(unequal.argmax()) // words,
        }
    }


def _bits(array: Any) -> Any:
    # Bit patterns, so that NaN equals NaN and -0.0 differs from 0.0.
    return array.view(f"uint{8 * min(array.dtype.itemsize, 8)}")


def _comparable(before: Any, after: Any) -> bool:
    # Bits of a dtype that NumPy lacks cannot be compared with numbers of another.
    return before.dtype.kind in "biufc" and after.dtype.kind in "biufc"
