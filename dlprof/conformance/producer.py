"""Checks of a framework as the producer of arrays for us."""

from __future__ import annotations

import ctypes
import itertools
from functools import partial
from typing import Any

from dlprof.conformance.check import (
    DEVICE,
    EXPORT,
    HEADER,
    PYTHON,
    SEVERITIES,
    NotApplicable,
    Refused,
    Violated,
    check,
)
from dlprof.conformance.counterpart import (
    COPIED,
    DTYPES,
    EXT_DEV,
    LAZY,
    NEW,
    OLD,
    READ_ONLY,
    USED,
    attempt,
    flags_of,
    has_dtype,
    held_by,
    numbers_at,
    rename_capsule,
    tensor_of,
    values_of,
)
from dlprof.conformance.needs import (
    arrays,
    export_keyword,
    exports,
    immutable,
    lazy_arrays,
    methods,
    versioned_copies,
    versioned_exports,
)
from dlprof.probes.capsule import capsule_name, capsule_pointer

must, should, may = (partial(check, "producer", word) for word in SEVERITIES)
LAYOUTS = ("C", "sliced", "F", "strided", "reversed", "broadcast", "scalar", "empty", "cube")
OTHERS = (
    *("conjugated", "negated", "swapped", "masked", "requires-grad", "structured", "datetime"),
    *("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"),
    *("float8_e8m0fnu", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz"),
)
"""Arrays of other properties and dtypes than the standard's."""
Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def exported(framework: Any, x: Any, **how: Any) -> Any:
    """A capsule of the newest version that the framework knows, which it must not refuse."""
    try:
        return framework.export(x, **framework.newest, **how)
    except Exception as error:
        raise Violated("it refuses") from error


def may_give(x: Any, **how: Any) -> Any:
    """A capsule of an array, which may be a BufferError instead."""
    try:
        return x.__dlpack__(**how)
    except BufferError as error:
        raise Refused("it refuses") from error
    except Exception as error:
        raise Violated("it raises") from error


def versioned(x: Any, version: tuple[int, int]) -> Any:
    """Return a versioned capsule of an array, which ``version`` must give."""
    try:
        capsule = x.__dlpack__(max_version=version)
    except Exception as error:
        raise Violated("it refuses") from error
    if capsule_name(capsule) != NEW:
        raise Violated(f"the capsule is {capsule_name(capsule)!r}")
    return capsule


def consumed(framework: Any, x: Any) -> Any:
    """What a capsule holds that we have consumed: its deleter is ours to call."""
    capsule = exported(framework, x)
    held = held_by(capsule)
    rename_capsule(capsule, USED[held.name])
    del capsule
    return held


def delete(held: Any) -> None:
    """Call the deleter, without the interpreter's lock, as C code may do."""
    if held.deleter:
        Deleter(held.deleter)(held.address)


# What can be asked


@should(f"{PYTHON}, Syntax", "An array has both methods of DLPack.", arrays("C"))
def has_methods(framework: Any) -> None:
    x = framework.make("C")
    missing = [name for name in ("__dlpack__", "__dlpack_device__") if not hasattr(x, name)]
    if missing:
        raise Violated(f"its array has no {' and no '.join(missing)}")


@must(DEVICE, "The device is a pair of numbers; host memory is (1, 0).", methods)
def device_pair(framework: Any) -> None:
    x = framework.make("C")
    device = x.__dlpack_device__()
    if not isinstance(device, tuple) or list(map(int, device)) != [1, 0]:
        raise Violated(f"the device is {device!r}")


@must(f"{EXPORT}, signature", "All four keywords are known.", methods)
def knows_keywords(framework: Any) -> None:
    x = framework.make("C")
    names = ("stream", "max_version", "dl_device", "copy")
    errors = {name: attempt(x.__dlpack__, **{name: None})[1] for name in names}
    unknown = [name for name, error in errors.items() if isinstance(error, TypeError)]
    if unknown:
        raise Violated(f"it does not know {', '.join(unknown)}")


@must(f"{EXPORT}, Notes", "Without max_version the capsule is unversioned.", methods)
def old_by_default(framework: Any) -> None:
    x = framework.make("C")
    capsule = may_give(x)
    if capsule_name(capsule) != OLD:
        raise Violated(f"it gives {capsule_name(capsule)!r}")


@should(
    f"{EXPORT}, max_version",
    "With max_version (1, 3) the capsule is versioned.",
    methods,
    export_keyword("max_version"),
)
def new_if_asked(framework: Any) -> None:
    versioned(framework.make("C"), (1, 3))


@should(
    f"{EXPORT}, Notes",
    "With max_version (2, 0) the capsule is of version 1.",
    methods,
    export_keyword("max_version"),
)
def new_for_newer(framework: Any) -> None:
    x = framework.make("C")
    capsule = versioned(x, (2, 0))
    major = ctypes.c_uint32.from_address(capsule_pointer(capsule, NEW)).value
    if major != 1:
        raise Violated(f"the capsule is of version {major}")


@should(
    f"{EXPORT}, Notes",
    "With max_version (0, 8) the capsule is unversioned.",
    methods,
    export_keyword("max_version"),
)
def old_for_older(framework: Any) -> None:
    x = framework.make("C")
    capsule = may_give(x, max_version=(0, 8))
    if capsule_name(capsule) != OLD:
        raise Violated(f"it gives {capsule_name(capsule)!r}")


@must(
    f"{EXPORT}, signature",
    "The keywords work together.",
    methods,
    *map(export_keyword, ("max_version", "dl_device", "copy")),
)
def keywords_together(framework: Any) -> None:
    for kind in ("C", "empty", *DTYPES):
        x, error = attempt(framework.make, kind)
        missing = kind in DTYPES and not has_dtype(framework, kind)
        if missing or error is not None or attempt(x.__dlpack__)[1] is not None:
            continue
        form = DTYPES[kind][2] if kind in DTYPES else "f"
        # What is refused alone is a deviation of another check.
        alone: Any = [{"dl_device": (1, 0)}, {"copy": False}, {"copy": True}]
        known = [how for how in alone if not attempt(x.__dlpack__, max_version=(1, 3), **how)[1]]
        devices = [None, *(how["dl_device"] for how in known if "dl_device" in how)]
        copies = [None, *(how["copy"] for how in known if "copy" in how)]
        versions = ((0, 0), (1, 0), (1, 3), (2, 0))
        for version, device, copy in itertools.product(versions, devices, copies):
            how = {"max_version": version, "dl_device": device, "copy": copy}
            capsule, error = attempt(x.__dlpack__, **how)
            if version == (0, 0) and isinstance(error, BufferError):
                continue
            if error is not None:
                raise Violated(f"it refuses {kind} with {how}") from error
            if values_of(held_by(capsule), form) != framework.values(x):
                raise Violated(f"{kind} with {how} has other values")


@must(f"{EXPORT}, stream", "On the CPU only a stream of None is accepted.", methods)
def no_stream_on_cpu(framework: Any) -> None:
    x = framework.make("C")
    try:
        x.__dlpack__(stream=1)
    except Exception:  # noqa: BLE001 - the clause names no type
        return
    raise Violated("it accepts stream=1")


@must(
    f"{EXPORT}, dl_device", "The array's own device may be asked for.", export_keyword("dl_device")
)
def own_device(framework: Any) -> None:
    x = framework.make("C")
    capsule = exported(framework, x, dl_device=(1, 0))
    tensor = tensor_of(capsule)
    kind, number = (ctypes.c_int32 * 2).from_address(tensor + 8)
    if (kind, number) != (1, 0):
        raise Violated(f"the tensor is on device {number} of type {kind}")


@must(
    f"{EXPORT}, dl_device",
    "A device that it cannot handle is refused with BufferError.",
    export_keyword("dl_device"),
)
def unknown_dl_device(framework: Any) -> None:
    x = framework.make("C")
    try:
        x.__dlpack__(dl_device=(EXT_DEV, 0))
    except BufferError:
        return
    except Exception as error:
        raise Violated("it raises") from error
    raise Violated("it gives a capsule")


# Copies and flags


@must(f"{EXPORT}, copy", "copy=True always copies.", export_keyword("copy"))
def copies(framework: Any) -> None:
    names = [name for name in DTYPES if has_dtype(framework, name)]
    refused, why = [], None
    for name in names:
        x = framework.make(name)
        array, error = attempt(framework.export, x, **framework.newest)
        if error is not None:
            continue  # that is a deviation of another check
        copy, error = attempt(framework.export, x, **framework.newest, copy=True)
        if error is not None:
            refused.append(name)
            why = error
        elif held_by(copy).data == held_by(array).data:
            raise Violated(f"the capsule of {name} has the memory of the array")
        elif values_of(held_by(copy), DTYPES[name][2]) != framework.values(x):
            raise Violated(f"the copy of {name} has other values")
    if refused:
        which = "" if refused == names else f" {', '.join(refused)}"
        raise Violated(f"it refuses{which}") from why


@must(f"{EXPORT}, copy", "A copy has the flag IS_COPIED.", versioned_copies)
def copied_flag(framework: Any) -> None:
    x = framework.make("C")
    capsule = x.__dlpack__(max_version=(1, 3), copy=True)
    flags = flags_of(capsule)
    if not flags & COPIED:
        raise Violated(f"the flags of a copy are {flags}")


@must(f"{EXPORT}, copy", "copy=False never copies.", export_keyword("copy"))
def never_copies(framework: Any) -> None:
    x = framework.make("C")
    first, second = (exported(framework, x, copy=False) for _ in range(2))
    same_memory(held_by(first), held_by(second))


@must(f"{EXPORT}, copy", "Without copy, memory is reused where possible.", exports)
def gives_view(framework: Any) -> None:
    x = framework.make("C")
    first, second = (exported(framework, x) for _ in range(2))
    same_memory(held_by(first), held_by(second))


def same_memory(first: Any, second: Any) -> None:
    """See that two capsules have one memory, and do not say that it is a copy."""
    if first.data + first.byte_offset != second.data + second.byte_offset:
        raise Violated("two capsules of one array have different memory")
    if first.name == NEW and first.flags & COPIED:
        raise Violated("the flag IS_COPIED is set, and the memory is not copied")


@must(
    f"{HEADER}, READ_ONLY",
    "A read-only array has the flag READ_ONLY.",
    arrays("readonly"),
    versioned_exports,
)
def read_only_flag(framework: Any) -> None:
    has_read_only_flag(framework, framework.make("readonly"))


@should(
    f"{HEADER}, READ_ONLY",
    "An array that nothing can write has the flag READ_ONLY.",
    immutable,
    versioned_exports,
)
def immutable_flag(framework: Any) -> None:
    has_read_only_flag(framework, framework.make("C"))


def has_read_only_flag(framework: Any, x: Any) -> None:
    """See that the capsule of an array says that it is read-only."""
    capsule = exported(framework, x)
    flags = flags_of(capsule)
    if not flags & READ_ONLY:
        raise Violated(f"its flags are {flags}")


# Memory and types


@must(f"{HEADER}, DLTensor", "Shape, strides and offset give the values.", exports)
def layouts(framework: Any) -> None:
    wrong = []
    for kind in LAYOUTS:
        x, refusal = attempt(framework.make, kind)
        if refusal is None:
            capsule, refusal = attempt(framework.export, x, **framework.newest)
        if refusal is not None:
            continue
        held = held_by(capsule)
        if tuple(numbers_at(held.shape, held.ndim)) != framework.shape(x):
            wrong.append(f"{kind} has the shape {numbers_at(held.shape, held.ndim)}")
        elif values_of(held) != framework.values(x):
            wrong.append(f"{kind} has the values {values_of(held)}")
    if wrong:
        raise Violated("; ".join(wrong))


@must(f"{HEADER}, DLTensor.strides", "From 1.2 on, strides are not NULL.", versioned_exports)
def fills_strides(framework: Any) -> None:
    x = framework.make("C")
    capsule = x.__dlpack__(max_version=(1, 3))
    held = held_by(capsule)
    if held.minor < 2:  # noqa: PLR2004
        raise NotApplicable("it gives no capsule of version 1.2 or newer")
    if not held.strides:
        raise Violated("the strides are NULL")


@should(
    f"{HEADER}, DLTensor.data", "An array without elements has NULL data.", exports, arrays("empty")
)
def empty_is_null(framework: Any) -> None:
    x = framework.make("empty")
    capsule = exported(framework, x)
    tensor = tensor_of(capsule)
    if ctypes.c_void_p.from_address(tensor).value:
        raise Violated("the data pointer is not NULL")


@must(f"{HEADER}, DLDataType", "Each dtype has its type code, bits and 1 lane.", exports)
def gives_dtypes(framework: Any) -> None:
    wrong = []
    for name, (code, bits, form) in DTYPES.items():
        if not has_dtype(framework, name):
            continue
        x = framework.make(name)
        capsule, error = attempt(framework.export, x)
        if error is not None:
            wrong.append(f"{name} is refused ({type(error).__name__})")
            continue
        held = held_by(capsule)
        if (held.code, held.bits, held.lanes) != (code, bits, 1):
            wrong.append(f"{name} has code, bits and lanes {held.code, held.bits, held.lanes}")
        elif values_of(held, form) != framework.values(x):
            wrong.append(f"{name} has the values {values_of(held, form)}")
    if wrong:
        raise Violated("; ".join(wrong))


@must(
    f"{HEADER}, DLDataTypeCode", "float16 and bfloat16 have their type code and 16 bits.", exports
)
def gives_half_dtypes(framework: Any) -> None:
    names = [name for name in ("float16", "bfloat16") if has_dtype(framework, name)]
    if not names:
        raise NotApplicable("it has neither of them")
    for name in names:
        capsule, error = attempt(framework.export, framework.make(name))
        if error is not None:
            raise Refused(f"it refuses {name}") from error
        held = held_by(capsule)
        if (held.code, held.bits) != ({"float16": 2, "bfloat16": 4}[name], 16):
            raise Violated(f"{name} has the code {held.code} and {held.bits} bits")


@must(EXPORT, "Memory that does not hold the values is not exported.", lazy_arrays)
def lazy_values(framework: Any) -> None:
    for kind in LAZY:
        try:
            x = framework.make(kind)
            capsule = framework.export(x)
        except Exception:  # noqa: BLE001, S112 - it has no such arrays, or refuses them
            continue
        tensor = tensor_of(capsule)
        data, offset = (ctypes.c_uint64.from_address(tensor + at).value for at in (0, 40))
        numbers = (ctypes.c_float * 2).from_address(data + offset)
        found = complex(*numbers) if kind == "conjugated" else numbers[0]
        if found != framework.values(x)[0]:
            raise Violated(f"{kind}: the memory begins with {found} for {framework.values(x)[0]}")


@should(
    f"{EXPORT}, Raises",
    "A masked array is not exported without its mask.",
    exports,
    arrays("masked"),
)
def mask(framework: Any) -> None:
    x = framework.make("masked")
    try:
        framework.export(x)
    except Exception:  # noqa: BLE001 - another clause is about the type
        return
    raise Violated("the capsule has the masked elements, too")


@should(f"{EXPORT}, Raises", "What DLPack cannot describe is refused with BufferError.", exports)
def refusal_type(framework: Any) -> None:
    others = []
    for kind in (*LAYOUTS, *DTYPES, *OTHERS):
        try:
            x = framework.make(kind)
        except Exception:  # noqa: BLE001, S112 - it has no such arrays
            continue
        try:
            framework.export(x)
        except BufferError:
            continue
        except Exception as error:  # noqa: BLE001 - this is what the clause forbids
            others.append(f"{kind}: {type(error).__name__}: {error}")
    if others:
        raise Violated("; ".join(others))
