"""Checks of a framework as the producer of arrays for us."""

from __future__ import annotations

import ctypes
import gc
import itertools
import os
import threading
from pathlib import Path
from typing import Any

from dlprof.conformance.check import (
    DEVICE,
    EXPORT,
    HEADER,
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
    CPU,
    DTYPES,
    EXT_DEV,
    NEW,
    OLD,
    READ_ONLY,
    USED,
    VERSION,
    Deleter,
    Taken,
    attempt,
    has_dtype,
    kept,
    kind_of,
    rename_capsule,
)
from dlprof.probes.capsule import capsule_name

LAYOUTS = ("C", "sliced", "F", "strided", "reversed", "broadcast", "scalar", "empty")
ROUNDS, LEAST_LEAK_BYTES = 64, 32 << 20
LAZY = ("conjugated", "negated", "swapped")
"""Arrays whose memory does not hold their values."""


def array_of(framework: Any, kind: str) -> Any:
    """An array of the framework; it may have no such arrays."""
    array, error = attempt(framework.make, kind)
    if error is not None:
        raise NotApplicable(f"it makes no {kind} array: {words(error)}")
    return array


def export(framework: Any, array: Any, **how: Any) -> tuple[Any, BaseException | None]:
    """The framework's capsule of an array, and what it raised."""
    if hasattr(array, "__dlpack__"):
        return attempt(array.__dlpack__, **how)
    if framework.to_dlpack is None:
        raise NotApplicable("it gives no array by DLPack")
    if how:
        raise NotApplicable("it gives capsules only, and takes no keywords")
    return attempt(framework.to_dlpack, array)


def exported(framework: Any, array: Any, **how: Any) -> Taken:
    """The array as we consume it, by the newest version if it knows versions."""
    for name in how:
        if isinstance(export(framework, array, **{name: None})[1], TypeError):
            raise NotApplicable(f"it does not know the keyword {name}")
    if hasattr(array, "__dlpack__") and "max_version" not in how:
        newest = {"max_version": VERSION}
        if not isinstance(attempt(array.__dlpack__, **newest)[1], TypeError):
            how |= newest
    capsule, error = export(framework, array, **how)
    if error is not None:
        raise Deviates(f"it refuses: {words(error)}")
    return Taken(capsule)


def object_of(framework: Any) -> Any:
    """An array of the framework that has the method ``__dlpack__``."""
    array = array_of(framework, "C")
    if not hasattr(array, "__dlpack__"):
        raise NotApplicable("its array has no __dlpack__")
    return array


# What can be asked


@check("producer", "should", f"{PYTHON}, Syntax", "An array has both methods of DLPack.")
def has_methods(framework: Any) -> None:
    array = array_of(framework, "C")
    missing = [name for name in ("__dlpack__", "__dlpack_device__") if not hasattr(array, name)]
    if missing:
        raise Deviates(f"its array has no {' and no '.join(missing)}")


@check("producer", "must", DEVICE, "The device is a pair of numbers; host memory is (1, 0).")
def device_pair(framework: Any) -> None:
    device = object_of(framework).__dlpack_device__()
    if not isinstance(device, tuple) or tuple(map(int, device)) != CPU:
        raise Deviates(f"the device is {device!r}")


@check("producer", "must", f"{EXPORT}, signature", "All four keywords are known.")
def knows_keywords(framework: Any) -> None:
    array = object_of(framework)
    asked = {"stream": None, "max_version": None, "dl_device": None, "copy": None}
    unknown = [
        name
        for name, value in asked.items()
        if isinstance(attempt(array.__dlpack__, **{name: value})[1], TypeError)
    ]
    if unknown:
        raise Deviates(f"it does not know {', '.join(unknown)}")


@check("producer", "must", f"{EXPORT}, Notes", "Without max_version the capsule is an old one.")
def old_by_default(framework: Any) -> None:
    capsule, error = export(framework, object_of(framework))
    if isinstance(error, BufferError):
        raise Refused(words(error))
    if error is not None or capsule_name(capsule) != OLD:
        raise Deviates(f"it gives {words(error) if error else capsule_name(capsule)!r}")


@check("producer", "should", f"{EXPORT}, max_version", "With max_version (1, 3) it is a new one.")
def new_if_asked(framework: Any) -> None:
    named(framework, (1, 3))


@check("producer", "should", f"{EXPORT}, Notes", "With max_version (2, 0) it is of version 1.")
def new_for_newer(framework: Any) -> None:
    named(framework, (2, 0))


def named(framework: Any, version: tuple[int, int]) -> None:
    """See that the capsule for a consumer of ``version`` is a new one of major version 1."""
    taken = exported(framework, object_of(framework), max_version=version)
    if taken.name != NEW or taken.managed.major != VERSION[0]:
        raise Deviates(f"the capsule is {taken.name!r}")
    taken.release()


@check("producer", "should", f"{EXPORT}, Notes", "With max_version (0, 8) it is not a new one.")
def old_for_older(framework: Any) -> None:
    capsule, error = export(framework, object_of(framework), max_version=(0, 8))
    if isinstance(error, TypeError):
        raise NotApplicable("it does not know the keyword max_version")
    if isinstance(error, BufferError):
        raise Refused(words(error))
    if error is not None or capsule_name(capsule) != OLD:
        raise Deviates(f"it gives {words(error) if error else capsule_name(capsule)!r}")


@check("producer", "must", f"{EXPORT}, signature", "The keywords work together.")
def keywords_together(framework: Any) -> None:
    array = object_of(framework)

    def is_taken(**how: Any) -> bool:
        return export(framework, array, max_version=VERSION, **how)[1] is None

    devices = [device for device in (None, CPU) if is_taken(dl_device=device)]
    copies = [copy for copy in (None, False, True) if is_taken(copy=copy)]
    if not devices or not copies:
        raise NotApplicable("it does not know all keywords")
    for version, device, copy in itertools.product(((1, 0), VERSION, (2, 0)), devices, copies):
        how = {"max_version": version, "dl_device": device, "copy": copy}
        capsule, error = export(framework, array, **how)
        if error is not None or Taken(capsule).values != framework.values(array):
            raise Deviates(f"{how} gives {words(error) if error else 'other values'}")


@check("producer", "must", f"{EXPORT}, stream", "On the CPU only a stream of None is accepted.")
def no_stream_on_cpu(framework: Any) -> None:
    if export(framework, object_of(framework), stream=1)[1] is None:
        raise Deviates("it accepts stream=1")


@check("producer", "must", f"{EXPORT}, dl_device", "The array's own device may be asked for.")
def own_device(framework: Any) -> None:
    taken = exported(framework, array_of(framework, "C"), dl_device=CPU)
    if (taken.tensor.device_type, taken.tensor.device_id) != CPU:
        raise Deviates(f"the tensor is on device type {taken.tensor.device_type}")
    taken.release()


@check("producer", "must", f"{EXPORT}, dl_device", "A device that is not known is a BufferError.")
def unknown_dl_device(framework: Any) -> None:
    _, error = export(framework, array_of(framework, "C"), dl_device=EXT_DEV)
    if isinstance(error, TypeError):
        raise NotApplicable("it does not know the keyword dl_device")
    if not isinstance(error, BufferError):
        raise Deviates(f"it gives {words(error) if error else 'a capsule'}")


# Copies and flags


@check("producer", "must", f"{EXPORT}, copy", "copy=True always copies.")
def copies(framework: Any) -> None:
    array = array_of(framework, "C")
    taken = exported(framework, array, copy=True)
    if taken.data == exported(framework, array).data:
        raise Deviates("the capsule has the memory of the array")
    if taken.values != framework.values(array):
        raise Deviates(f"the copy has the values {taken.values}")
    taken.release()


@check("producer", "must", f"{EXPORT}, copy", "A copy has the flag IS_COPIED.")
def copied_flag(framework: Any) -> None:
    array = array_of(framework, "C")
    if export(framework, array, max_version=VERSION, copy=True)[1] is not None:
        raise NotApplicable("it gives no versioned copies")
    taken = exported(framework, array, copy=True)
    if taken.name != NEW:
        raise NotApplicable("it gives no versioned capsule")
    if not taken.flags & COPIED:
        raise Deviates(f"the flags of a copy are {taken.flags}")
    taken.release()


@check("producer", "must", f"{EXPORT}, copy", "copy=False never copies.")
def never_copies(framework: Any) -> None:
    view(framework, copy=False)


@check("producer", "must", f"{EXPORT}, copy", "Without copy, memory is reused where possible.")
def gives_view(framework: Any) -> None:
    view(framework)


def view(framework: Any, **how: Any) -> None:
    """See that two capsules have one memory, and do not say that it is a copy."""
    array = array_of(framework, "C")
    first, second = exported(framework, array, **how), exported(framework, array, **how)
    if first.data != second.data:
        raise Deviates("two capsules of one array have different memory")
    if first.flags & COPIED:
        raise Deviates("the flag IS_COPIED is set, and the memory is not copied")
    first.release()
    second.release()


@check("producer", "must", f"{HEADER}, READ_ONLY", "A read-only array has the flag READ_ONLY.")
def read_only_flag(framework: Any) -> None:
    taken = exported(framework, array_of(framework, "readonly"))
    if taken.name != NEW:
        raise NotApplicable("it gives no versioned capsule")
    if not taken.flags & READ_ONLY:
        raise Deviates(f"the flags of a read-only array are {taken.flags}")


@check(
    "producer", "should", f"{HEADER}, READ_ONLY", "An array that nothing can write has the flag."
)
def immutable_flag(framework: Any) -> None:
    if not framework.is_immutable:
        raise NotApplicable("its arrays can be written")
    taken = exported(framework, array_of(framework, "C"))
    if taken.name != NEW:
        raise NotApplicable("it gives no versioned capsule")
    if not taken.flags & READ_ONLY:
        raise Deviates(f"the flags of an immutable array are {taken.flags}")


# Memory and types


@check("producer", "must", f"{HEADER}, DLTensor", "Shape, strides and offset give the values.")
def layouts(framework: Any) -> None:
    wrong = []
    for kind in LAYOUTS:
        array, error = attempt(framework.make, kind)
        if error is not None:
            continue
        taken, error = attempt(exported, framework, array)
        if error is not None:
            continue
        if taken.shape != framework.shape(array):
            wrong.append(f"{kind} has the shape {taken.shape}")
        elif taken.values != framework.values(array):
            wrong.append(f"{kind} has the values {taken.values}")
    if wrong:
        raise Deviates("; ".join(wrong))


@check("producer", "must", f"{HEADER}, DLTensor.strides", "From 1.2 on, strides are not NULL.")
def fills_strides(framework: Any) -> None:
    taken = exported(framework, array_of(framework, "C"))
    if taken.name != NEW or (taken.managed.major, taken.managed.minor) < (1, 2):
        raise NotApplicable("it gives no capsule of version 1.2 or newer")
    if not taken.tensor.strides:
        raise Deviates("the strides are NULL")


@check("producer", "should", f"{HEADER}, DLTensor.data", "An array without elements has NULL data.")
def empty_is_null(framework: Any) -> None:
    taken = exported(framework, array_of(framework, "empty"))
    if taken.tensor.data:
        raise Deviates("the data pointer is not NULL")


@check(
    "producer", "must", f"{HEADER}, DLDataType", "Each dtype has its type code, bits and 1 lane."
)
def gives_dtypes(framework: Any) -> None:
    wrong = []
    for name, dtype in DTYPES.items():
        if not has_dtype(framework, name):
            continue
        array = framework.make(name)
        capsule, error = export(framework, array)
        if error is not None:
            wrong.append(f"{name} is refused ({words(error)})")
            continue
        taken = Taken(capsule)
        if taken.dtype != dtype:
            wrong.append(f"{name} has code, bits and lanes {taken.dtype}")
        elif taken.values != framework.values(array):
            wrong.append(f"{name} has the values {taken.values}")
    if wrong:
        raise Deviates("; ".join(wrong))


@check(
    "producer", "must", f"{EXPORT}, Raises", "Memory that does not hold the values is not given."
)
def lazy_values(framework: Any) -> None:
    given = 0
    for kind in LAZY:
        array, error = attempt(framework.make, kind)
        if error is not None:
            continue
        given += 1
        capsule, error = export(framework, array)
        if error is None and (found := Taken(capsule).values) != framework.values(array):
            raise Deviates(f"{kind}: the capsule has {found[:3]} for {framework.values(array)[:3]}")
    if not given:
        raise NotApplicable("its arrays always hold their values")


@check("producer", "should", f"{EXPORT}, Raises", "An array with a mask is not given without it.")
def mask(framework: Any) -> None:
    if export(framework, array_of(framework, "masked"))[1] is None:
        raise Deviates("the capsule has the masked elements, too")


@check("producer", "should", f"{EXPORT}, Raises", "What DLPack cannot describe is a BufferError.")
def refusal_type(framework: Any) -> None:
    others = []
    for kind in (*LAYOUTS, *LAZY, "masked", "requires-grad"):
        array, error = attempt(framework.make, kind)
        if error is not None:
            continue
        _, error = export(framework, array)
        if error is not None and not isinstance(error, BufferError):
            others.append(f"{kind}: {words(error)}")
    if others:
        raise Deviates("; ".join(others))


# Capsules and deleters


@check("producer", "must", f"{PYTHON}, Implementation", "A dropped capsule calls its deleter once.")
def dropped_capsule(framework: Any) -> None:
    capsule, calls = watched(framework)
    del capsule
    gc.collect()
    if len(calls) > 1:
        raise Deviates(f"the deleter is called {len(calls)} times")
    # The destructor may call the function itself, and not by the pointer in the tensor.
    if not calls and (leaked := leak_bytes(framework)) > LEAST_LEAK_BYTES:
        raise Deviates(f"{ROUNDS} dropped capsules of 1 MiB leave {leaked >> 20} MiB behind")


def leak_bytes(framework: Any) -> int:
    """How much more memory the process has after many dropped capsules of 1 MiB each."""
    for at in range(2 * ROUNDS):
        array = array_of(framework, "large")
        export(framework, array)
        del array
        if at == ROUNDS - 1:
            before = resident_bytes()
    gc.collect()
    return resident_bytes() - before


def resident_bytes() -> int:
    try:
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    except OSError as error:
        raise Unknown(f"the memory of the process cannot be read: {error}") from None
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


@check("producer", "must", f"{PYTHON}, Implementation", "A consumed capsule calls no deleter.")
def dropped_used_capsule(framework: Any) -> None:
    capsule, calls = watched(framework)
    rename_capsule(capsule, USED[kind_of(capsule)])
    del capsule
    gc.collect()
    if calls:
        raise Deviates("the capsule calls the deleter of a tensor that we own")


def watched(framework: Any) -> tuple[Any, list[int]]:
    """A capsule whose deleter notes its calls, and passes them on."""
    capsule, error = export(framework, array_of(framework, "C"))
    if error is not None:
        raise Deviates(f"it refuses: {words(error)}")
    name = kind_of(capsule)
    managed = Taken(capsule).managed
    rename_capsule(capsule, name)
    own, calls = managed.deleter, []

    def note(address: int) -> None:
        calls.append(address)
        if own:
            Deleter(own)(address)

    deleter = Deleter(note)
    kept.append(deleter)
    managed.deleter = ctypes.cast(deleter, ctypes.c_void_p).value
    return capsule, calls


@check("producer", "must", f"{HEADER}, deleter", "The memory lives until the deleter is called.")
def keeps_memory(framework: Any) -> None:
    array = array_of(framework, "C")
    values = framework.values(array)
    taken = exported(framework, array)
    del array
    gc.collect()
    others = [array_of(framework, "C") for _ in range(64)]
    del others
    if taken.values != values:
        raise Deviates(f"after the array is gone, the values are {taken.values}")
    taken.release()


@check("producer", "must", f"{PYTHON}, Implementation", "The deleter takes the lock that it needs.")
def deleter_in_thread(framework: Any) -> None:
    taken = exported(framework, array_of(framework, "C"))
    gc.collect()
    thread = threading.Thread(target=taken.release)
    thread.start()
    thread.join()


@check("producer", "must", f"{HEADER}, deleter", "Two capsules of one array are independent.")
def two_capsules(framework: Any) -> None:
    array = array_of(framework, "C")
    values = framework.values(array)
    first, second = exported(framework, array), exported(framework, array)
    first.release()
    del array
    gc.collect()
    if second.values != values:
        raise Deviates(f"after the first is released, the second has {second.values}")
    second.release()
