"""Checks of a framework as the consumer of our arrays."""

from __future__ import annotations

import ctypes
import enum
import gc
import threading
import time
from typing import Any

from dlprof.conformance.check import (
    EXPORT,
    HEADER,
    IMPORT,
    PYTHON,
    Deviates,
    NotApplicable,
    Refused,
    Unknown,
    check,
    words,
)
from dlprof.conformance.counterpart import (
    COPIED,
    DTYPES,
    EXT_DEV,
    NEW,
    OLD,
    PADDED,
    READ_ONLY,
    USED,
    VALUES,
    Source,
    attempt,
    has_dtype,
)
from dlprof.probes.capsule import capsule_name

PATIENCE_S = 2.0


def imported(framework: Any, source: Source, **how: Any) -> tuple[Any, BaseException | None]:
    """The framework's array of our source, and what the framework raised."""
    needs_import(framework)
    if framework.takes_objects:
        if attempt(framework.from_dlpack, Source())[1] is not None:
            raise NotApplicable("it refuses every object, see takes-objects")
        return attempt(framework.from_dlpack, source, **how)
    if how:
        raise NotApplicable("it takes capsules only, and no keywords")
    name = source.names[0] if kind_taken(framework) == NEW else OLD
    if name not in source.names:
        raise NotApplicable("it takes no versioned capsules")
    return attempt(framework.from_dlpack, source.capsule(name))


def needs_import(framework: Any) -> None:
    if framework.from_dlpack is None:
        raise NotApplicable("it takes no array by DLPack")


def kind_taken(framework: Any) -> bytes:
    """The newest kind of capsule that a framework takes which takes capsules only."""
    error = attempt(framework.from_dlpack, Source().capsule(NEW))[1]
    return NEW if error is None else OLD


def arrives(framework: Any, source: Source, may_refuse: bool = False, **how: Any) -> Any:
    """The framework's array of our source, with our shape and values."""
    for name in how:
        if isinstance(imported(framework, Source(), **{name: None})[1], TypeError):
            raise NotApplicable(f"it does not know the keyword {name}")
    result, error = imported(framework, source, **how)
    if error is not None:
        if may_refuse:
            raise Refused(words(error))
        raise Deviates(f"it refuses: {words(error)}")
    if (shape := framework.shape(result)) != source.shape:
        raise Deviates(f"an array of shape {source.shape} becomes one of shape {shape}")
    if (found := framework.values(result)) != source.values:
        raise Deviates(f"the values {source.values} become {found}")
    return result


def is_refused(framework: Any, source: Source) -> BaseException:
    """What the framework says when it must not take our source."""
    result, error = imported(framework, source)
    if error is None:
        raise Deviates(f"it makes an array of shape {framework.shape(result)} of it")
    return error


def shares(framework: Any, result: Any, source: Source) -> bool:
    """Whether a change of our memory is seen in the result."""
    before = framework.values(result)
    source.overwrite(99.0)
    return bool(framework.values(result) != before)


def needs_versioned(framework: Any) -> None:
    """Flags and versions are in versioned capsules only."""
    source = Source()
    imported(framework, source)
    if NEW not in source.gave:
        raise NotApplicable("it asks for no versioned capsule")


def needs_objects(framework: Any) -> None:
    if not framework.takes_objects:
        raise NotApplicable("it takes capsules only, and asks nothing")


# What is asked of the producer


@check("consumer", "should", f"{PYTHON}, Syntax", "from_dlpack takes any object with both methods.")
def takes_objects(framework: Any) -> None:
    needs_import(framework)
    error = attempt(framework.from_dlpack, Source())[1]
    if error is not None:
        raise Deviates(f"it refuses an object: {words(error)}")


@check("consumer", "should", f"{PYTHON}, Implementation", "DLManagedTensorVersioned is taken.")
def takes_versioned(framework: Any) -> None:
    needs_import(framework)
    if framework.takes_objects:
        arrives(framework, Source(names=(NEW,)))
    elif kind_taken(framework) != NEW:
        raise Deviates("it refuses a versioned capsule")


@check("consumer", "should", f"{PYTHON}, Implementation", "The old DLManagedTensor is taken, too.")
def takes_legacy(framework: Any) -> None:
    arrives(framework, Source(names=(OLD,)))


@check("consumer", "may", f"{EXPORT}, Notes", "A producer that knows no keyword is asked again.")
def asks_again_without_keywords(framework: Any) -> None:
    needs_objects(framework)
    arrives(framework, Source(keywords=()))


@check(
    "consumer", "should", f"{EXPORT}, Notes", "A producer that knows only stream is asked again."
)
def asks_again_with_stream(framework: Any) -> None:
    needs_objects(framework)
    arrives(framework, Source(keywords=("stream",)))


@check("consumer", "must", f"{EXPORT}, signature", "Arguments are the four keywords, by name.")
def asks_by_keyword(framework: Any) -> None:
    needs_objects(framework)
    for positional, how in calls(framework):
        if positional or set(how) - {"stream", "max_version", "dl_device", "copy"}:
            raise Deviates(f"it calls __dlpack__ with {positional} {how}")


@check("consumer", "must", f"{EXPORT}, stream", "The stream is None on the CPU.")
def asks_for_no_stream(framework: Any) -> None:
    needs_objects(framework)
    for positional, how in calls(framework):
        if positional or how.get("stream") is not None:
            raise Deviates(f"it calls __dlpack__ with {positional} {how}")


@check("consumer", "should", f"{EXPORT}, max_version", "The consumer says its newest version.")
def asks_with_max_version(framework: Any) -> None:
    needs_objects(framework)
    asked = [how.get("max_version") for _, how in calls(framework)]
    if not any(isinstance(one, tuple) and len(one) == len(("major", "minor")) for one in asked):
        raise Deviates(f"it calls __dlpack__ with max_version {asked}")


@check("consumer", "should", f"{PYTHON}, Syntax", "The consumer asks for the device of the array.")
def asks_for_device(framework: Any) -> None:
    needs_objects(framework)
    source = Source()
    arrives(framework, source)
    if "__dlpack_device__" not in source.asked:
        raise Deviates("it never calls __dlpack_device__")


def calls(framework: Any) -> list[Any]:
    """Positional and keyword arguments of each call of ``__dlpack__`` for one import."""
    source = Source()
    arrives(framework, source)
    return [one for one in source.asked if one != "__dlpack_device__"]


# Versions and flags


@check("consumer", "must", f"{HEADER}, DLPackVersion", "A newer major version is not used.")
def major_version_2(framework: Any) -> None:
    needs_versioned(framework)
    source = Source(version=(2, 0))
    is_refused(framework, source)
    released(source)


@check("consumer", "should", f"{HEADER}, DLPackVersion", "A newer minor version is used.")
def minor_version_99(framework: Any) -> None:
    needs_versioned(framework)
    arrives(framework, Source(version=(1, 99)))


@check("consumer", "must", f"{HEADER}, READ_ONLY", "A read-only tensor stays read-only.")
def read_only_stays(framework: Any) -> None:
    needs_versioned(framework)
    result, error = imported(framework, Source(flags=READ_ONLY))
    if error is not None:
        raise NotApplicable("it refuses read-only tensors")
    if framework.writable(result):
        raise Deviates("its array says that it is writable")


@check("consumer", "should", f"{EXPORT}, Notes", "A read-only tensor is taken, not refused.")
def read_only_taken(framework: Any) -> None:
    needs_versioned(framework)
    arrives(framework, Source(flags=READ_ONLY))


@check("consumer", "must", f"{HEADER}, IS_COPIED", "A copy of the producer is taken as others are.")
def copied_taken(framework: Any) -> None:
    needs_versioned(framework)
    arrives(framework, Source(flags=COPIED))


@check("consumer", "must", f"{HEADER}, SUBBYTE_TYPE_PADDED", "Packed and padded elements differ.")
def padded_differs(framework: Any) -> None:
    needs_versioned(framework)
    # Four elements in 2 bytes if packed, in 4 bytes if padded.
    sources = [Source((0.0,), (4,), dtype=(17, 4, 1), flags=flag) for flag in (0, PADDED)]
    results = [imported(framework, source) for source in sources]
    errors = [error for _, error in results if error is not None]
    if errors:
        raise Refused(words(errors[0]))
    (packed, _), (padded, _) = results
    for source in sources:
        ctypes.memset(source.block, 0x21, len(source.block))
    if framework.values(packed) == framework.values(padded):
        raise Deviates("it reads the same elements of packed and of padded memory")


# Memory and layout


@check("consumer", "must", f"{HEADER}, DLTensor.byte_offset", "The data begin at the offset.")
def byte_offset(framework: Any) -> None:
    arrives(framework, Source((-1.0,) * 16 + VALUES, start=16))


@check("consumer", "should", f"{HEADER}, DLTensor.data", "Data off 256 bytes are taken.")
def alignment_4(framework: Any) -> None:
    arrives(framework, Source(skew=4))


@check("consumer", "must", f"{HEADER}, DLTensor.strides", "Before 1.2, NULL strides are row-major.")
def null_strides(framework: Any) -> None:
    arrives(framework, Source(strides=False, version=(1, 1)))


@check(
    "consumer", "must", f"{HEADER}, DLTensor.strides", "In old capsules NULL strides are row-major."
)
def null_strides_legacy(framework: Any) -> None:
    if imported(framework, Source(names=(OLD,)))[1] is not None:
        raise NotApplicable("it takes no old capsules")
    arrives(framework, Source(strides=False, names=(OLD,)))


@check("consumer", "must", f"{HEADER}, DLTensor.strides", "Column-major strides are obeyed.")
def fortran_strides(framework: Any) -> None:
    arrives(framework, Source(strides=(1, 2)), may_refuse=True)


@check("consumer", "must", f"{HEADER}, DLTensor.strides", "Gaps between rows are skipped.")
def row_gaps(framework: Any) -> None:
    arrives(framework, Source((*VALUES, 7.0, 8.0), strides=(5, 1)), may_refuse=True)


@check("consumer", "must", f"{HEADER}, DLTensor.strides", "Negative strides go backwards.")
def negative_strides(framework: Any) -> None:
    arrives(framework, Source(strides=(-3, 1), start=3), may_refuse=True)


@check("consumer", "must", f"{HEADER}, DLTensor.strides", "A stride of zero repeats.")
def zero_strides(framework: Any) -> None:
    arrives(framework, Source(strides=(0, 1)), may_refuse=True)


@check(
    "consumer",
    "should",
    f"{HEADER}, DLTensor.strides",
    "The stride of an axis of length 1 is idle.",
)
def idle_strides(framework: Any) -> None:
    arrives(framework, Source(shape=(1, 6, 1), strides=(12345, 1, 7)))


@check("consumer", "must", f"{HEADER}, DLTensor.data", "An array without elements has NULL data.")
def empty_null(framework: Any) -> None:
    for shape in ((0,), (2, 0, 3)):
        arrives(framework, Source((), shape, data=False))


@check("consumer", "must", f"{HEADER}, DLTensor.shape", "A scalar has NULL shape and strides.")
def scalar_null(framework: Any) -> None:
    arrives(framework, Source((3.0,), ()))


@check("consumer", "should", f"{HEADER}, DLTensor.shape", "A size beyond memory is refused.")
def size_overflow(framework: Any) -> None:
    is_refused(framework, Source(shape=(1 << 40, 1 << 40)))


@check("consumer", "should", f"{HEADER}, DLTensor.ndim", "100 axes are taken or refused, no crash.")
def many_axes(framework: Any) -> None:
    result, error = imported(framework, Source((3.0,), (1,) * 100))
    if error is not None:
        raise Refused(words(error))
    if (shape := framework.shape(result)) != (1,) * 100:
        raise Deviates(f"the shape has {len(shape)} axes")


# Types and devices


@check("consumer", "must", "array API 2025.12, Data interchange", "Each dtype that it has arrives.")
def takes_dtypes(framework: Any) -> None:
    wrong = []
    for name, dtype in DTYPES.items():
        if name in framework.narrows or not has_dtype(framework, name):
            continue
        memory = (True, False, True) if name == "bool" else (1, 2, 3)
        result, error = imported(framework, Source(memory, (3,), dtype=dtype))
        if error is not None:
            wrong.append(f"{name} is refused ({words(error)})")
        elif (found := framework.dtype(result)) != name:
            wrong.append(f"{name} becomes {found}")
        elif framework.values(result) != list(memory):
            wrong.append(f"{name} has the values {framework.values(result)}")
    if wrong:
        raise Deviates("; ".join(wrong))


@check(
    "consumer", "must", f"{HEADER}, DLDataType.lanes", "An element has as many numbers as lanes."
)
def lanes_4(framework: Any) -> None:
    source = Source((*VALUES, 7.0, 8.0), (2,), dtype=(2, 32, 4))
    result, error = imported(framework, source)
    if error is not None:
        raise Refused(words(error))
    if framework.values(result) != list(source.memory):
        raise Deviates(f"2 elements of 4 lanes become the values {framework.values(result)}")


@check(
    "consumer", "should", f"{HEADER}, DLPackVersion", "A type code that is not known is refused."
)
def unknown_code(framework: Any) -> None:
    is_refused(framework, Source(version=(1, 99), dtype=(250, 32, 1)))


@check("consumer", "must", f"{HEADER}, DLDataTypeCode", "A float4 that has not 4 bits is refused.")
def float4_of_8_bits(framework: Any) -> None:
    is_refused(framework, Source(dtype=(17, 8, 1)))


@check("consumer", "should", f"{HEADER}, DLDataType.bits", "A float of 24 bits is refused.")
def float_of_24_bits(framework: Any) -> None:
    is_refused(framework, Source(dtype=(2, 24, 1)))


@check(
    "consumer", "should", f"{HEADER}, DLDevice", "Memory of a device that is not known is refused."
)
def unknown_device(framework: Any) -> None:
    for device in (EXT_DEV, (99, 0)):
        is_refused(framework, Source(device=device))


@check("consumer", "should", f"{PYTHON}, Semantics", "The refusal of a device is a BufferError.")
def device_error(framework: Any) -> None:
    _, error = imported(framework, Source(device=EXT_DEV))
    if error is None:
        raise NotApplicable("it takes memory of an unknown device")
    if not isinstance(error, BufferError):
        raise Deviates(f"it raises {words(error)}")


@check(
    "consumer", "must", "array API 2025.12, __dlpack_device__", "The device type may be an enum."
)
def device_enum(framework: Any) -> None:
    needs_objects(framework)
    kind = enum.IntEnum("kind", {"CPU": 1})
    source = Source()
    source.device = (kind.CPU, 0)
    arrives(framework, source)


# Capsules and deleters


@check("consumer", "must", f"{PYTHON}, Syntax", "One object can be imported twice.")
def imported_twice(framework: Any) -> None:
    source = Source()
    first, second = arrives(framework, source), arrives(framework, source)
    if framework.values(first) != framework.values(second):
        raise Deviates("the two arrays differ")


@check("consumer", "must", f"{IMPORT}, Returns", "An array of its own has the same values.")
def own_array(framework: Any) -> None:
    needs_import(framework)
    array = framework.make("C")
    given = array if framework.takes_objects else framework.to_dlpack(array)
    result, error = attempt(framework.from_dlpack, given)
    if error is not None:
        raise Deviates(f"it refuses: {words(error)}")
    if (found := framework.values(result)) != framework.values(array):
        raise Deviates(f"the values are {found}")


@check("consumer", "must", f"{PYTHON}, Implementation", "A consumed capsule is renamed.")
def renames_capsule(framework: Any) -> None:
    capsule, _ = consumed(framework)
    if capsule_name(capsule) not in USED.values():
        raise Deviates(f"the capsule's name is still {capsule_name(capsule)!r}")


@check("consumer", "must", f"{PYTHON}, Implementation", "A capsule is consumed only once.")
def consumed_twice(framework: Any) -> None:
    capsule, _ = consumed(framework)
    given = Source(returns=capsule) if framework.takes_objects else capsule
    if attempt(framework.from_dlpack, given)[1] is None:
        raise Deviates("it makes a second array of a consumed capsule")


def consumed(framework: Any) -> tuple[Any, Any]:
    """A capsule that the framework has consumed, and its array."""
    needs_import(framework)
    source = Source()
    if framework.takes_objects:
        result = arrives(framework, source)
        return source.capsules[-1], result
    capsule = source.capsule(kind_taken(framework))
    return capsule, framework.from_dlpack(capsule)


@check("consumer", "must", f"{PYTHON}, Implementation", "A capsule of another name is not used.")
def other_name(framework: Any) -> None:
    needs_objects(framework)
    is_refused(framework, Source(returns=Source().capsule(b"something")))


@check("consumer", "must", f"{PYTHON}, Implementation", "What is no capsule is refused.")
def no_capsule(framework: Any) -> None:
    needs_objects(framework)
    is_refused(framework, Source(returns=None))


@check("consumer", "must", f"{HEADER}, deleter", "The deleter is called once, after the last use.")
def deleter_once(framework: Any) -> None:
    source = Source()
    arrives(framework, source)
    released(source)


@check("consumer", "must", f"{HEADER}, deleter", "The deleter is not called while memory is used.")
def deleter_waits(framework: Any) -> None:
    source = Source()
    result = arrives(framework, source)
    gc.collect()
    if source.deleted and shares(framework, result, source):
        raise Deviates("it calls the deleter, and its array still uses the memory")


@check("consumer", "must", f"{HEADER}, deleter", "A deleter of NULL is not called.")
def deleter_null(framework: Any) -> None:
    arrives(framework, Source(deleter=False))
    gc.collect()


@check("consumer", "must", f"{HEADER}, deleter", "A tensor that is refused is deleted once.")
def deleter_of_refused(framework: Any) -> None:
    source = Source(dtype=(250, 32, 1))
    if imported(framework, source)[1] is None:
        raise NotApplicable("it takes a tensor of an unknown type")
    released(source)


@check("consumer", "must", f"{PYTHON}, Implementation", "An array is dropped in any thread.")
def dropped_in_thread(framework: Any) -> None:
    source = Source()
    results = [arrives(framework, source)]
    in_thread(results.clear)
    released(source)


@check("consumer", "must", f"{PYTHON}, Implementation", "A capsule is consumed in any thread.")
def consumed_in_thread(framework: Any) -> None:
    arrives(framework, Source())
    source = Source()
    given = source if framework.takes_objects else source.capsule(kind_taken(framework))
    errors: list[Any] = []
    in_thread(lambda: errors.append(attempt(framework.from_dlpack, given)[1]))
    if errors[0] is not None:
        raise Deviates(f"it refuses: {words(errors[0])}")
    released(source)


def in_thread(work: Any) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def released(source: Source) -> None:
    """See that the deleter was called once for each capsule; a framework may need a moment."""
    source.drop()
    end = time.monotonic() + PATIENCE_S
    while source.deleted < len(source.gave) and time.monotonic() < end:
        gc.collect()
        time.sleep(0.01)
    if source.deleted != len(source.gave):
        raise Deviates(f"{len(source.gave)} capsules, and {source.deleted} calls of the deleter")


# Copies and errors


@check("consumer", "must", f"{IMPORT}, copy", "Without copy, memory is reused where possible.")
def reuses_memory(framework: Any) -> None:
    source = Source()
    if not shares(framework, arrives(framework, source), source):
        raise Deviates("it copies an aligned, contiguous, writable array")


@check("consumer", "must", f"{IMPORT}, signature", "The keywords device and copy are known.")
def knows_import_keywords(framework: Any) -> None:
    how = {"device": None, "copy": None}
    errors = {name: imported(framework, Source(), **{name: how[name]})[1] for name in how}
    unknown = [name for name, error in errors.items() if isinstance(error, TypeError)]
    if unknown:
        raise Deviates(f"it does not know {' and '.join(unknown)}")


@check("consumer", "must", f"{IMPORT}, copy", "copy=True always copies.")
def copy_true(framework: Any) -> None:
    source = Source()
    if shares(framework, arrives(framework, source, copy=True), source):
        raise Deviates("its array shares our memory")


@check("consumer", "must", f"{IMPORT}, copy", "copy=True copies if the producer cannot.")
def copy_true_without_keyword(framework: Any) -> None:
    source = Source(keywords=("stream", "max_version"))
    if shares(framework, arrives(framework, source, may_refuse=True, copy=True), source):
        raise Deviates("its array shares our memory")


@check("consumer", "must", f"{IMPORT}, copy", "copy=False never copies.")
def copy_false(framework: Any) -> None:
    source = Source()
    if not shares(framework, arrives(framework, source, copy=False), source):
        raise Deviates("its array does not share our memory")


@check("consumer", "must", f"{IMPORT}, device", "The array's own device may be asked for.")
def device_keyword(framework: Any) -> None:
    arrives(framework, Source(), device=None)
    device = getattr(arrives(framework, Source()), "device", None)
    if device is None:
        raise Unknown("its array has no attribute device")
    arrives(framework, Source(), device=device)


@check(
    "consumer", "must", f"{IMPORT}, Raises", "An object without the methods is an AttributeError."
)
def no_methods(framework: Any) -> None:
    needs_objects(framework)
    _, error = attempt(framework.from_dlpack, object())
    if not isinstance(error, AttributeError):
        raise Deviates(f"it raises {words(error) if error else 'nothing'}")


@check("consumer", "must", f"{IMPORT}, Raises", "The producer's exceptions are passed on.")
def passes_errors_on(framework: Any) -> None:
    needs_objects(framework)
    for raised in (BufferError("not by DLPack"), MemoryError("no memory")):
        error = is_refused(framework, Source(error=raised))
        if type(error) is not type(raised):
            raise Deviates(f"a {type(raised).__name__} becomes {words(error)}")
