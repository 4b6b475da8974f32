"""Values: did shape, dtype and every value survive, and did the conversion change anything else?

Source and result are read back by their own frameworks and compared bit for bit, the result first:
a read at once shows whether its values are there. A difference that is gone a moment later is
``unfinished``.

If they agree, further conversions of new arrays of 64 KiB at most follow: in another thread, of
other values while a first result is held, and of a source that was written meanwhile. Other data is
made at once after one: it takes the memory that a result has lost. Nothing is written before its
results were waited for: a write could tear an unfinished copy.

A user's own statement may do more than convert. In ``torch.from_numpy(df['a'].to_numpy())[0]`` the
column is compared with the tensor, and the array in between tells whether it may be written.

Verdicts: ``ok``, ``wrong``, ``unknown``.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from dlprof.device.cuda import device_ordinal
from dlprof.probes.base import BITS, CONTIGUOUS, ROOTS, ArraySpec, Probe, Unsupported
from dlprof.probes.generic import UNKNOWN, is_array
from dlprof.protocol.messages import NO_ARRAY, unknown, verdict
from dlprof.protocol.statement import ARRAY, steps
from dlprof.worker import memory
from dlprof.worker.refusal import Refusal, attempt
from dlprof.worker.source_text import compile_call
from dlprof.worker.subject import Subject

COPIES = 3
"""Host copies that a comparison needs: source, result, and where they differ."""
FINISHED_S = 0.25
"""A copy that other threads make has come to its end by then."""
LARGEST_BYTES = 64 << 10
"""Arrays are read seven times. PyTorch uses several threads at 256 KiB, which took 25 ms while
other programs kept the processors."""
OWN_LARGEST_BYTES = 64 << 20
"""A user's own array is read four times, and cannot be made smaller."""
RING = 16
"""This many later results, or blocks of other data, are held with the first."""
FILLED, FILLED_BYTES = 0xA5, 1 << 20
CONTROLS = 2
TIMES = "mM"
"""Kinds of NumPy's times, which compare across units."""
CUDA_DEVICE = 2  # kDLCUDA
WRITTEN = 1
"""The framework's write puts this everywhere, as the ``write`` of a reproducer does."""


def measure(subject: Subject) -> dict[str, Any]:
    """Return the verdict on the values, after one conversion and after further ones."""
    if not subject.import_.returns_array:
        return unknown(NO_ARRAY)
    result = subject.convert()
    subject.wait_for(result)
    source, result, read_only = _converted(subject, result)
    # Plain memory has no dtype. The import says what was asked for.
    found_dtypes = subject.producer.dtype(source), subject.consumer.dtype(result)
    dtypes = [dtype or subject.spec.dtype for dtype in found_dtypes]
    if UNKNOWN in dtypes:  # NumPy's times have none of dlprof's dtypes
        sides = subject.producer.to_numpy(source), subject.consumer.to_numpy(result)
        dtypes = [side.dtype.name for side in sides]
        if not {side.dtype.kind for side in sides} <= {*TIMES}:
            return unknown("nothing tells the dtype of source or result")
    changed = _compare(subject, source, result, dtypes)
    evidence = {"changed": changed, **_properties(subject, source, result)}
    if read_only:
        evidence["writable"] |= {"source": False, "read_only": read_only}
    if changed.keys() <= {"values"}:
        del result  # a framework may reuse a buffer once nothing holds it
        found = _look_further(subject)
        # A value that the conversion wrote to its source looks like a wrong result.
        if not changed or "source" in found["changed"]:
            evidence |= found
    if not evidence["changed"] and subject.is_one_array:
        elements = bits(read_elements(subject.producer, subject.source, subject.spec))
        if elements.size > 1 and (elements == elements[0]).all():
            reason = "all values of the source are equal, so that a wrong order would not show"
            return verdict("unknown", evidence, reason)
    return verdict("wrong" if evidence["changed"] else "ok", evidence)


def _compare(subject: Subject, source: Any, result: Any, dtypes: Sequence[str]) -> dict[str, Any]:
    """Return what the conversion changed: shape, dtype or values."""
    spec, is_own = subject.spec, subject.is_one_array
    told = subject.producer.shape(source), subject.consumer.shape(result)
    shapes = [list(spec.shape if shape is None else shape) for shape in told]
    is_cast = is_own and dtypes[0] != dtypes[1]
    pairs: dict[str, Any] = {"shape": shapes, "dtype": dtypes}
    named = attempt(lambda: tuple(map(int, result.__dlpack_device__())))
    address = attempt(lambda: subject.consumer.pointer(result))
    if not isinstance(named, Refusal) and named[0] == CUDA_DEVICE and isinstance(address, int):
        pairs["device"] = f"cuda:{device_ordinal(address)}", f"cuda:{named[1]}"
    changed: dict[str, Any] = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
    before, after = ([length for length in shape if length != 1] for shape in shapes)
    is_alike = "shape" not in changed or (before == after and "dtype" not in changed)
    if is_alike and not (is_cast and dtypes[1] in BITS):  # NumPy lacks it
        changed.update(_difference(subject, source, result, changed.get("dtype"), is_cast))
        if changed.keys() == {"values"}:
            time.sleep(FINISHED_S)
            if not _difference(subject, source, result, None, is_cast):
                changed = {"unfinished": changed["values"]}
    parts = steps(subject.code) if changed and is_own else ()
    if changed and is_own and (subject.import_.arrays > 1 or not parts):
        raise Unsupported(
            "the statement uses several arrays, or one more than once: it may compute"
        )
    is_at_home = _library(source) == _library(result)
    if parts and parts[-1].is_own and is_at_home and "values" in changed:
        del changed["values"]
        if not changed:
            raise Unsupported("an operator or a method of the array may compute")
    return changed


def _converted(subject: Subject, result: Any) -> tuple[Any, Any, str]:
    """Return the array that a user's statement converts, and what it converts it to.

    These are the last part that the array's own operators and methods make, and the first of the
    result's library. A function may make a wrong array. The third is the text of a read-only NumPy
    array in between, if any.
    """
    source, read_only = subject.source, ""
    owner, other = _library(source), _library(result)
    for text, is_own in steps(subject.code)[:-1] if subject.is_one_array else ():
        array = attempt(compile_call(text, subject.namespace), BaseException)
        if isinstance(array, Refusal) or not is_array(array):
            continue
        if _library(array) == other != owner:
            return source, array, read_only
        if _library(array) == owner and is_own:
            source = array
        flags = getattr(array, "flags", None)
        if text != ARRAY and getattr(flags, "writeable", True) is False:
            read_only = read_only or text
    return source, result, read_only


def _library(array: Any) -> str:
    root = str(getattr(type(array), "__module__", "")).partition(".")[0]
    return ROOTS.get(root, root)


def _properties(subject: Subject, source: Any, result: Any) -> dict[str, Any]:
    """Return evidence of source and result other than their values."""
    writable = {
        "source": subject.producer.writable(source),
        "result": subject.consumer.writable(result),
        "immutable": subject.consumer.immutable,
    }
    evidence: dict[str, Any] = {"writable": writable}
    orders = [memory_order(side) for side in (source, result)]
    is_plain = subject.spec.layout in ("F", *CONTIGUOUS) and subject.spec.elements
    if is_plain and None not in orders:
        evidence["orders"] = orders
    strides = [element_strides(side) for side in (source, result)]
    if strides[0] and strides[1] and strides[0] != strides[1]:
        evidence["strides"] = strides
    properties = subject.consumer.properties(result)
    dropped = [name for name in subject.producer.properties(source) if name not in properties]
    if dropped:
        evidence["dropped"] = dropped
    return evidence


def different(subject: Subject) -> dict[str, Any]:
    """Compare the values of a new conversion with the source; empty if they agree."""
    result = subject.convert()
    subject.wait_for(result)
    return _difference(subject, subject.source, result, None)


def memory_order(array: Any) -> str | None:
    """``F`` or ``C`` of an array of two axes that says its strides."""
    strides = getattr(array, "strides", None) or getattr(array, "stride", None)
    strides = strides() if callable(strides) else strides
    if strides is None or len(strides) != 2 or 1 in tuple(array.shape):  # noqa: PLR2004 - rows and columns
        return None
    return "F" if strides[0] < strides[1] else "C"


def element_strides(array: Any) -> tuple[int, ...]:
    """Return the strides in elements; empty if the array does not tell them."""
    if hasattr(array, "stride"):
        return tuple(array.stride())
    strides, size = getattr(array, "strides", None), getattr(array, "itemsize", 0)
    return tuple(stride // size for stride in strides) if strides and size else ()


def _difference(
    subject: Subject,
    source: Any,
    result: Any,
    dtypes: Sequence[str] | None,
    is_cast: bool = False,
) -> dict[str, Any]:
    import numpy

    memory.check_more(COPIES * subject.spec.size_bytes)
    after = read_elements(subject.consumer, result, subject.spec)
    before = read_elements(subject.producer, source, subject.spec)
    if is_cast:
        if (before.dtype.kind in "fc") != (after.dtype.kind in "fc"):
            return {}  # integers may be scaled, and some floats are no integers
        if after.dtype.kind in "fc":
            before = before.astype(after.dtype)
        dtypes = before.dtype.name, after.dtype.name
    if before.size != after.size:
        raise ValueError(f"{after.size} values of the result were read back")
    differ = unequal(before, after, dtypes)
    if is_cast and after.dtype.kind in "fc":  # torch rounds a double twice on the way to a half
        limits = numpy.finfo(after.dtype)
        differ &= ~numpy.isclose(before, after, 2 * limits.eps, limits.tiny, equal_nan=True)
    masked: Any = getattr(source, "mask", None)  # the value of a masked element is no data
    if hasattr(masked, "reshape") and differ.size == masked.size:  # pandas has a method mask
        differ &= ~masked.reshape(-1)
    if not differ.any():
        return {}
    return {"values": {"different": int(differ.sum()), "of": before.size}}


# Elements on the host


def host_copy(subject: Subject, array: Any, probe: Probe) -> Any:
    """Copy all elements of a source or a result to the host."""
    import numpy

    values = numpy.array(read_elements(probe, array, subject.spec))
    if values.size != subject.spec.elements:
        raise Unsupported(f"{values.size} values of the result were read back")
    return values


def count_different(before: Any, after: Any) -> dict[str, int]:
    """Count the elements that differ; empty if none does."""
    if before.dtype != after.dtype:
        raise Unsupported(f"{before.dtype} cannot be compared with {after.dtype}")
    count = int(unequal(before, after).sum())
    return {"different": count, "of": int(before.size)} if count else {}


def read_elements(probe: Probe, array: Any, spec: ArraySpec) -> Any:
    """Return the elements, one-dimensional; may be a view of the array."""
    import numpy

    values = probe.to_numpy(array)
    if probe.dtype(array) is not None:
        return numpy.ascontiguousarray(values).reshape(-1)
    # Plain memory, or Python's numbers.
    return values.view(spec.dtype) if values.dtype == "uint8" else values.astype(spec.dtype).ravel()


def unequal(before: Any, after: Any, dtypes: Sequence[str] | None = None) -> Any:
    """Return which elements differ: by their bits, or as numbers if there are two ``dtypes``."""
    import numpy

    elements = before.size
    if dtypes is None:
        before, after = bits(before), bits(after)
    elif (before.dtype.name, after.dtype.name) != tuple(
        dtypes
    ) or before.dtype.kind not in f"biufc{TIMES}":
        # For a dtype that NumPy lacks these are its bits, which are no numbers of another dtype.
        return numpy.zeros(1, dtype=bool)
    differ = before != after
    if dtypes is not None:  # a NaN is still one
        differ &= ~((before != before) & (after != after))  # noqa: PLR0124
    words = max(1, differ.size // max(elements, 1))  # a complex number is two
    return differ if words == 1 else differ.reshape(-1, words).any(axis=1)


def bits(array: Any) -> Any:
    """Return bit patterns in the machine's byte order: NaN equals NaN, -0.0 differs from 0.0."""
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    return array.view(f"uint{8 * min(array.dtype.itemsize, 8)}")


# Further conversions


class Conversion(NamedTuple):
    """A result with its source, and the values that both had when it was made."""

    source: Any
    source_values: Any
    result: Any
    result_values: Any


def _look_further(subject: Subject) -> dict[str, Any]:
    """Return evidence: ``changed``, and how the array was made if it is another one."""
    changed: dict[str, Any] = {}
    looked = attempt(partial(_convert_further, subject, changed))  # a refusal is no change
    if changed and not isinstance(looked, Refusal) and looked.spec != subject.spec:
        return {"changed": changed} | looked.array_evidence()
    return {"changed": changed}


def _convert_further(subject: Subject, changed: dict[str, Any]) -> Subject:
    """Fill ``changed``; return the conversion, which may be a smaller one."""
    size = subject.spec.size_bytes
    if subject.spec.elements == 0 or (subject.is_one_array and size > OWN_LARGEST_BYTES):
        return subject
    if size > LARGEST_BYTES:
        subject = subject.of_bytes(LARGEST_BYTES)
    array = attempt(subject.make_another)  # the conversion may have written to the old source
    source = subject.source if isinstance(array, Refusal) else array
    first = _convert(subject, source, changed)
    if subject.spec.device == "cpu":
        if freed := _freed(subject, source):
            changed.clear()  # what was read from the source may be as wrong
            changed["freed"] = freed
        if not changed:
            _convert_in_thread(subject, first, changed)
    # No more for a user's own array: the text may share memory on purpose.
    if not (changed or subject.is_one_array):
        _convert_other_values(subject, first, changed)
    return subject


def _convert(subject: Subject, source: Any, changed: dict[str, Any]) -> Conversion:
    """Convert, and compare the source with what it was before."""
    producer = subject.producer
    before = host_copy(subject, source, producer)
    result = subject.converter(source)()
    subject.wait_for(result)
    if difference := count_different(before, host_copy(subject, source, producer)):
        changed["source"] = difference
    return Conversion(source, before, result, host_copy(subject, result, subject.consumer))


def _convert_in_thread(subject: Subject, first: Conversion, changed: dict[str, Any]) -> None:
    """Convert the source in a second thread. A refusal there is no change."""
    found: list[Any] = []

    def convert() -> None:
        result = subject.converter(first.source)()
        subject.wait_for(result)
        found.append(host_copy(subject, result, subject.consumer))

    thread = threading.Thread(target=attempt, args=(convert,))
    thread.start()
    thread.join()
    difference = found and count_different(first.result_values, found[0])
    if difference:
        again = _convert(subject, first.source, changed)  # the control, in the first thread
        if not count_different(first.result_values, again.result_values):
            changed["in_thread"] = difference


def _convert_other_values(subject: Subject, first: Conversion, changed: dict[str, Any]) -> None:
    """Convert other values while the first result is held, and then the first source with them."""
    producer, array = subject.producer, subject.make_another()
    if producer.write(array, WRITTEN) is NotImplemented:
        return
    written = host_copy(subject, array, producer)
    if not count_different(first.source_values, written) or _result_changed(subject, first):
        return  # the write changed nothing, or shows in the result of another source
    convert, wait, results = subject.converter(array), subject.waiter(), []
    for _ in range(RING):
        results.append(convert())
        wait(results[-1])
    overwritten = _result_changed(subject, first)
    source_now = host_copy(subject, first.source, producer)
    if overwritten and not count_different(first.source_values, source_now):
        changed["earlier_result"] = overwritten
        return
    del results
    if producer.write(first.source, WRITTEN) is NotImplemented:
        return
    result = subject.converter(first.source)()
    subject.wait_for(result)
    values = host_copy(subject, result, subject.consumer)
    was_right = not count_different(first.source_values, first.result_values)
    is_old = not count_different(first.result_values, values)
    missed = count_different(written, values)
    if was_right and is_old and missed:
        changed["after_write"] = missed


def _freed(subject: Subject, source: Any) -> dict[str, int]:
    """Return how many values of a result are lost if other data takes freed memory at once."""
    import numpy

    size = max(subject.spec.size_bytes, 1)
    convert, wait, lost = subject.converter(source), subject.waiter(), {}

    def read(most_blocks: int) -> Any:
        result = convert()
        wait(result)
        count = min(most_blocks, max(1, FILLED_BYTES // size))
        blocks = [numpy.full(size, FILLED, "uint8") for _ in range(count)]
        values = host_copy(subject, result, subject.consumer)
        del blocks
        return values

    for _ in range(CONTROLS):
        values = read(0)
        lost, control = (count_different(values, read(blocks)) for blocks in (RING, 0))
        # An allocator's own notes change a few values of freed memory, too.
        if lost.get("different", 0) <= 2 * control.get("different", 0):
            return {}
    return lost


def _result_changed(subject: Subject, first: Conversion) -> dict[str, int]:
    return count_different(first.result_values, host_copy(subject, first.result, subject.consumer))
