"""Checks of a framework as the producer of arrays for us: its capsules and their deleters."""

from __future__ import annotations

import ctypes
import gc
import itertools
import os
import struct
from functools import partial
from pathlib import Path
from typing import Any

from dlprof.conformance.check import (
    DELETER,
    DEVICE,
    EXPORT,
    HEADER,
    PYTHON,
    READ_ONLY_FLAG,
    SEVERITIES,
    NotApplicable,
    Refused,
    Unknown,
    Violated,
    arrays,
    check,
    exports,
    halves,
    immutable,
    keyword,
    lazy_arrays,
    methods,
    on_host,
    raises,
    versioned_copies,
    versioned_exports,
)
from dlprof.conformance.counterpart import (
    COPIED,
    DTYPES,
    EXT_DEV,
    HALVES,
    KEYWORDS,
    LAZY,
    NEW,
    OLD,
    READ_ONLY,
    USED,
    Deleter,
    array_device,
    attempt,
    available_dtypes,
    contents,
    elements,
    export_newest,
    first_address,
    forever,
    in_thread,
    lengths,
    read,
    rename_capsule,
)
from dlprof.probes.capsule import ManagedVersioned, capsule_name

must, should, may = (partial(check, "producer", word) for word in SEVERITIES)
LAYOUTS = ("C", "sliced", "F", "strided", "reversed", "broadcast", "scalar", "empty", "cube")
UNUSUAL = (
    *("conjugated", "negated", "swapped", "masked", "requires-grad", "structured", "datetime"),
    *("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"),
    *("float8_e8m0fnu", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz"),
)
"""Arrays of other properties and dtypes than the standard's."""
ROUNDS, LEAST_LEAK_BYTES = 64, 32 << 20


def exported(framework: Any, x: Any, **keywords: Any) -> Any:
    """Return the contents of the newest capsule of an array, which must not be refused."""
    try:
        return contents(export_newest(framework, x, **keywords))
    except Exception as error:
        raise Violated("it refuses") from error


def unversioned(x: Any, **keywords: Any) -> None:
    """See that an array gives an old capsule, or a BufferError."""
    try:
        capsule = x.__dlpack__(**keywords)
    except BufferError as error:
        raise Refused("it refuses") from error
    except Exception as error:
        raise Violated("it raises") from error
    if capsule_name(capsule) != OLD:
        raise Violated(f"it gives {capsule_name(capsule)!r}")


def versioned(x: Any, **keywords: Any) -> Any:
    """Return the contents of an array's capsule, which must be versioned."""
    try:
        capsule = x.__dlpack__(**keywords)
    except Exception as error:
        raise Violated("it refuses") from error
    if capsule_name(capsule) != NEW:
        raise Violated(f"the capsule is {capsule_name(capsule)!r}")
    return contents(capsule)


def consumed(framework: Any, x: Any) -> Any:
    """Return the contents of a capsule that we have consumed: its deleter is ours to call."""
    managed = exported(framework, x)
    rename_capsule(managed.capsule, USED[capsule_name(managed.capsule)])
    return managed


def delete(managed: Any) -> None:
    """Call the deleter, without the interpreter's lock, as C code may do."""
    if managed.deleter:
        Deleter(managed.deleter)(ctypes.addressof(managed))


# Methods and keywords


@should(f"{PYTHON}, Syntax", "An array has both methods of DLPack.", arrays("C"))
def has_methods(framework: Any) -> None:
    x = framework.make("C")
    missing = [name for name in ("__dlpack__", "__dlpack_device__") if not hasattr(x, name)]
    if missing:
        raise Violated(f"its array has no {' and no '.join(missing)}")


@must(DEVICE, "The device is a pair of numbers; (1, 0) on the host, (2, 0) on CUDA.", methods)
def device_pair(framework: Any) -> None:
    x = framework.make("C")
    device = x.__dlpack_device__()
    if not isinstance(device, tuple) or tuple(map(int, device)) != array_device():
        raise Violated(f"the device is {device!r}")


@must(f"{EXPORT}, signature", "All four keywords are known.", methods)
def knows_keywords(framework: Any) -> None:
    x = framework.make("C")
    errors = {name: attempt(x.__dlpack__, **{name: None})[1] for name in KEYWORDS}
    unknown = [name for name, error in errors.items() if isinstance(error, TypeError)]
    if unknown:
        raise Violated(f"it does not know {', '.join(unknown)}")


@must(f"{EXPORT}, Notes", "Without max_version the capsule is unversioned.", methods)
def old_by_default(framework: Any) -> None:
    unversioned(framework.make("C"))


@should(
    f"{EXPORT}, max_version",
    "max_version (1, 3) gives a versioned capsule.",
    keyword("max_version"),
)
def new_if_asked(framework: Any) -> None:
    versioned(framework.make("C"), max_version=(1, 3))


@should(f"{EXPORT}, Notes", "max_version (2, 0) gives version 1.", keyword("max_version"))
def new_for_newer(framework: Any) -> None:
    major = versioned(framework.make("C"), max_version=(2, 0)).major
    if major != 1:
        raise Violated(f"the capsule is of version {major}")


@must(
    f"{EXPORT}, signature",
    "The keywords work together.",
    *map(keyword, ("max_version", "dl_device", "copy")),
)
def keywords_together(framework: Any) -> None:
    for kind in ("C", "empty", *available_dtypes(framework)):
        x, error = attempt(framework.make, kind)
        if error is not None or attempt(x.__dlpack__)[1] is not None:
            continue
        form = DTYPES[kind][2] if kind in DTYPES else "f"
        # A refusal of one keyword alone is a deviation of another check.
        alone: Any = [{"dl_device": array_device()}, {"copy": False}, {"copy": True}]
        valid = [args for args in alone if not attempt(x.__dlpack__, max_version=(1, 3), **args)[1]]
        devices = [None, *(args["dl_device"] for args in valid if "dl_device" in args)]
        copies = [None, *(args["copy"] for args in valid if "copy" in args)]
        newest = ((0, 0), (1, 0), (1, 3), (2, 0))
        for version, device, copy in itertools.product(newest, devices, copies):
            keywords = {"max_version": version, "dl_device": device, "copy": copy}
            capsule, error = attempt(x.__dlpack__, **keywords)
            if version == (0, 0) and isinstance(error, BufferError):
                continue
            if error is not None:
                raise Violated(f"it refuses {kind} with {keywords}") from error
            if elements(contents(capsule), form) != framework.values(x):
                raise Violated(f"{kind} with {keywords} has other values")


@must(f"{EXPORT}, stream", "On the CPU only a stream of None is accepted.", on_host, methods)
def no_stream_on_cpu(framework: Any) -> None:
    if attempt(framework.make("C").__dlpack__, stream=1)[1] is None:
        raise Violated("it accepts stream=1")


@must(f"{EXPORT}, dl_device", "The array's own device may be asked for.", keyword("dl_device"))
def own_device(framework: Any) -> None:
    tensor = exported(framework, framework.make("C"), dl_device=array_device()).tensor
    if (tensor.device_type, tensor.device_id) != array_device():
        raise Violated(f"the tensor is on device {tensor.device_id} of type {tensor.device_type}")


@must(f"{EXPORT}, dl_device", "An unknown device raises BufferError.", keyword("dl_device"))
def unknown_dl_device(framework: Any) -> None:
    raises(BufferError, framework.make("C").__dlpack__, dl_device=(EXT_DEV, 0))


# Copies and flags


@must(f"{EXPORT}, copy", "copy=True always copies.", keyword("copy"))
def copies(framework: Any) -> None:
    names = available_dtypes(framework)
    refused, why = [], None
    for name in names:
        x = framework.make(name)
        array, error = attempt(export_newest, framework, x)
        if error is not None:
            continue  # that is a deviation of another check
        copy, error = attempt(export_newest, framework, x, copy=True)
        if error is not None:
            refused.append(name)
            why = error
        elif contents(copy).tensor.data == contents(array).tensor.data:
            raise Violated(f"the capsule of {name} has the memory of the array")
        elif elements(contents(copy), DTYPES[name][2]) != framework.values(x):
            raise Violated(f"the copy of {name} has other values")
    if refused:
        refused_names = "" if refused == names else f" {', '.join(refused)}"
        raise Violated(f"it refuses{refused_names}") from why


@must(f"{EXPORT}, copy", "A copy has the flag IS_COPIED.", versioned_copies)
def copied_flag(framework: Any) -> None:
    flags = versioned(framework.make("C"), max_version=(1, 3), copy=True).flags
    if not flags & COPIED:
        raise Violated(f"the flags of a copy are {flags}")


@must(f"{EXPORT}, copy", "copy=False never copies.", keyword("copy"))
def never_copies(framework: Any) -> None:
    same_memory(framework, copy=False)


@must(f"{EXPORT}, copy", "Without copy, memory is reused where possible.", exports)
def gives_view(framework: Any) -> None:
    same_memory(framework)


def same_memory(framework: Any, **keywords: Any) -> None:
    """See that two capsules share memory and are not marked as copies."""
    x = framework.make("C")
    first, second = (exported(framework, x, **keywords) for _ in range(2))
    if first_address(first) != first_address(second):
        raise Violated("two capsules of one array have different memory")
    if isinstance(first, ManagedVersioned) and first.flags & COPIED:
        raise Violated("the flag IS_COPIED is set, and the memory is not copied")


@must(READ_ONLY_FLAG, "Read-only arrays set the flag.", arrays("readonly"), versioned_exports)
def read_only_flag(framework: Any) -> None:
    has_read_only_flag(framework, "readonly")


@should(READ_ONLY_FLAG, "Immutable arrays set the flag.", immutable, versioned_exports)
def immutable_flag(framework: Any) -> None:
    has_read_only_flag(framework, "C")


def has_read_only_flag(framework: Any, kind: str) -> None:
    """See that the capsule of an array says that it is read-only."""
    flags = exported(framework, framework.make(kind)).flags
    if not flags & READ_ONLY:
        raise Violated(f"its flags are {flags}")


# Memory and types


@must(f"{HEADER}, DLTensor", "Shape, strides and offset give the values.", exports)
def layouts(framework: Any) -> None:
    wrong = []
    for kind in LAYOUTS:
        x, refusal = attempt(framework.make, kind)
        if refusal is None:
            capsule, refusal = attempt(export_newest, framework, x)
        if refusal is not None:
            continue
        managed = contents(capsule)
        if tuple(lengths(managed)) != framework.shape(x):
            wrong.append(f"{kind} has the shape {lengths(managed)}")
        elif elements(managed) != framework.values(x):
            wrong.append(f"{kind} has the values {elements(managed)}")
    if wrong:
        raise Violated("; ".join(wrong))


@must(f"{HEADER}, DLTensor.strides", "From 1.2 on, strides are not NULL.", versioned_exports)
def fills_strides(framework: Any) -> None:
    managed = exported(framework, framework.make("C"))
    if managed.minor < 2:  # noqa: PLR2004
        raise NotApplicable("it gives no capsule of version 1.2 or newer")
    if not managed.tensor.strides:
        raise Violated("the strides are NULL")


@should(f"{HEADER}, DLTensor.data", "An empty array has NULL data.", exports, arrays("empty"))
def empty_is_null(framework: Any) -> None:
    if exported(framework, framework.make("empty")).tensor.data:
        raise Violated("the data pointer is not NULL")


@must(f"{HEADER}, DLDataType", "Each dtype has its type code, bits and 1 lane.", exports)
def gives_dtypes(framework: Any) -> None:
    wrong = []
    for name in available_dtypes(framework):
        code, bits, form = DTYPES[name]
        x = framework.make(name)
        capsule, error = attempt(framework.export, x)
        if error is not None:
            wrong.append(f"{name} is refused ({type(error).__name__})")
            continue
        managed = contents(capsule)
        found = managed.tensor.code, managed.tensor.bits, managed.tensor.lanes
        if found != (code, bits, 1):
            wrong.append(f"{name} has code, bits and lanes {found}")
        elif elements(managed, form) != framework.values(x):
            wrong.append(f"{name} has the values {elements(managed, form)}")
    if wrong:
        raise Violated("; ".join(wrong))


@must(f"{HEADER}, DLDataTypeCode", "float16 and bfloat16 have 16 bits.", exports, halves)
def gives_half_dtypes(framework: Any) -> None:
    for name in available_dtypes(framework, HALVES):
        capsule, error = attempt(framework.export, framework.make(name))
        if error is not None:
            raise Refused(f"it refuses {name}") from error
        tensor = contents(capsule).tensor
        if (tensor.code, tensor.bits) != (HALVES[name], 16):
            raise Violated(f"{name} has the code {tensor.code} and {tensor.bits} bits")


@must(EXPORT, "Memory that does not hold the values is not exported.", lazy_arrays)
def lazy_values(framework: Any) -> None:
    for kind in LAZY:
        try:
            x = framework.make(kind)
            capsule = framework.export(x)
        except Exception:  # noqa: BLE001, S112 - it has no such arrays, or refuses them
            continue
        numbers = struct.unpack("ff", read(first_address(contents(capsule)), 8))
        found = complex(*numbers) if kind == "conjugated" else numbers[0]
        if found != framework.values(x)[0]:
            raise Violated(f"{kind}: the memory begins with {found} for {framework.values(x)[0]}")


@should(f"{EXPORT}, Raises", "What DLPack cannot describe is refused with BufferError.", exports)
def refusal_type(framework: Any) -> None:
    errors = []
    for kind in (*LAYOUTS, *DTYPES, *UNUSUAL):
        x, error = attempt(framework.make, kind)
        if error is None:
            _, error = attempt(framework.export, x)
            if error is not None and not isinstance(error, BufferError):
                errors.append(f"{kind}: {type(error).__name__}: {error}")
    if errors:
        raise Violated("; ".join(errors))


# Deleters


@must(f"{PYTHON}, Implementation", "A dropped capsule calls its deleter once.", exports)
def dropped_capsule(framework: Any) -> None:
    capsule, calls = watched(framework)
    del capsule
    gc.collect()
    if len(calls) > 1:
        raise Violated(f"the deleter is called {len(calls)} times")
    # The destructor may call the function itself, and not by the pointer in the tensor.
    if not calls and (leaked := leak_bytes(framework)) > LEAST_LEAK_BYTES:
        raise Violated(f"{ROUNDS} dropped capsules of 1 MiB leave {leaked >> 20} MiB behind")


def leak_bytes(framework: Any) -> int:
    """Return the growth of the process over many dropped capsules of 1 MiB each."""
    for turn in range(2 * ROUNDS):
        framework.export(framework.make("large"))
        if turn == ROUNDS - 1:
            before = resident_bytes()
    gc.collect()
    return resident_bytes() - before


def resident_bytes() -> int:
    try:
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    except OSError as error:
        raise Unknown("the memory of the process cannot be read") from error
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


@must(f"{PYTHON}, Implementation", "A consumed capsule calls no deleter.", exports)
def dropped_used_capsule(framework: Any) -> None:
    capsule, calls = watched(framework)
    rename_capsule(capsule, USED[capsule_name(capsule)])
    del capsule
    gc.collect()
    if calls:
        raise Violated("the capsule calls the deleter of a tensor that we own")


def watched(framework: Any) -> tuple[Any, list[int]]:
    """Return a capsule whose deleter notes its calls, and passes them on."""
    managed = exported(framework, framework.make("C"))
    original = managed.deleter
    calls: list[int] = []

    def note(address: int) -> None:
        calls.append(address)
        if original:
            Deleter(original)(address)

    deleter = Deleter(note)
    forever(deleter)
    managed.deleter = ctypes.cast(deleter, ctypes.c_void_p)
    return managed.capsule, calls


@must(DELETER, "The memory lives until the deleter is called.", exports)
def keeps_memory(framework: Any) -> None:
    x = framework.make("C")
    values = framework.values(x)
    managed = consumed(framework, x)
    del x
    gc.collect()
    arrays = [framework.make("C") for _ in range(64)]
    del arrays
    if elements(managed) != values:
        raise Violated(f"after the array is gone, the values are {elements(managed)}")


@must(f"{PYTHON}, Implementation", "The deleter takes the lock that it needs.", exports)
def deleter_in_thread(framework: Any) -> None:
    x = framework.make("C")
    managed = consumed(framework, x)
    in_thread(lambda: delete(managed))
