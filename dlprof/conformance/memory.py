"""Checks of a consumer: memory, layout, types and devices of our arrays."""

from __future__ import annotations

import enum
from functools import partial
from typing import Any

from dlprof.conformance.check import (
    DEVICE,
    HEADER,
    INTERCHANGE,
    PYTHON,
    SEVERITIES,
    NotApplicable,
    Refused,
    Violated,
    check,
    halves,
    objects,
    old_capsules,
    taking,
    versions,
)
from dlprof.conformance.consumer import arrives, holds, refuses
from dlprof.conformance.counterpart import (
    DTYPES,
    EXT_DEV,
    HALVES,
    OLD,
    VALUES,
    Source,
    array_device,
    attempt,
    available_dtypes,
)

must, should, may = (partial(check, "consumer", word) for word in SEVERITIES)


# Memory and layout


@must(f"{HEADER}, DLTensor.byte_offset", "The data begin at the offset.", taking)
def byte_offset(framework: Any) -> None:
    # An offset of 256 bytes keeps the alignment, which is another clause.
    source = Source((-1.0,) * 64 + VALUES, byte_offset=256)
    holds(framework, arrives(framework, source, Refused))


@should(f"{HEADER}, DLTensor.data", "Data that are not aligned to 256 bytes are taken.", taking)
def alignment_4(framework: Any) -> None:
    holds(framework, arrives(framework, Source((0.0, *VALUES), shift=4)))


@must(f"{HEADER}, DLTensor.strides", "Before 1.2, NULL strides are row-major.", versions)
def null_strides(framework: Any) -> None:
    holds(framework, arrives(framework, Source(version=(1, 1), strides=()), Refused))


@must(f"{HEADER}, DLTensor.strides", "In old capsules NULL strides are row-major.", old_capsules)
def null_strides_legacy(framework: Any) -> None:
    holds(framework, arrives(framework, Source(strides=(), only=OLD), Refused))


@must(f"{HEADER}, DLTensor.strides", "Column-major strides are obeyed.", taking)
def fortran_strides(framework: Any) -> None:
    x = arrives(framework, Source(strides=(1, 2)), Refused)
    holds(framework, x, (1.0, 3.0, 5.0, 2.0, 4.0, 6.0))


@must(f"{HEADER}, DLTensor.strides", "Gaps between rows are skipped.", taking)
def row_gaps(framework: Any) -> None:
    x = arrives(framework, Source((*VALUES, 7.0, 8.0), strides=(5, 1)), Refused)
    holds(framework, x, (1.0, 2.0, 3.0, 6.0, 7.0, 8.0))


@must(f"{HEADER}, DLTensor.strides", "Negative strides go backwards.", taking)
def negative_strides(framework: Any) -> None:
    # The first element lies 256 bytes after the page, with no byte_offset.
    x = arrives(framework, Source((0.0,) * 61 + VALUES, strides=(-3, 1), shift=256), Refused)
    holds(framework, x, (4.0, 5.0, 6.0, 1.0, 2.0, 3.0))


@must(f"{HEADER}, DLTensor.strides", "A stride of zero repeats.", taking)
def zero_strides(framework: Any) -> None:
    x = arrives(framework, Source(strides=(0, 1)), Refused)
    holds(framework, x, (1.0, 2.0, 3.0, 1.0, 2.0, 3.0))


@should(f"{HEADER}, DLTensor.strides", "The stride of an axis of length 1 is idle.", taking)
def idle_strides(framework: Any) -> None:
    x = arrives(framework, Source(shape=(1, 6, 1), strides=(12345, 1, 7)))
    holds(framework, x, shape=(1, 6, 1))


@must(f"{HEADER}, DLTensor.data", "An array without elements has NULL data.", taking)
def empty_null(framework: Any) -> None:
    shapes: Any = {(0,): (1,), (2, 0, 3): (0, 3, 1)}
    for shape, strides in shapes.items():
        x = arrives(framework, Source((), shape=shape, strides=strides), Refused)
        holds(framework, x, (), shape)


@must(f"{HEADER}, DLTensor.shape", "A scalar has NULL shape and strides.", taking)
def scalar_null(framework: Any) -> None:
    x = arrives(framework, Source((3.0,), shape=(), strides=()), Refused)
    holds(framework, x, (3.0,), ())


@should(f"{HEADER}, DLTensor.shape", "A size beyond memory is refused.", taking)
def size_overflow(framework: Any) -> None:
    refuses(framework, Source(shape=(1 << 40, 1 << 40), strides=(1 << 40, 1)))


# Types and devices


@must(INTERCHANGE, "Each dtype that it has arrives.", taking)
def takes_dtypes(framework: Any) -> None:
    wrong = []
    for name in available_dtypes(framework):
        if name in framework.narrows:
            continue
        code, bits, form = DTYPES[name]
        values = (True, False, True) if name == "bool" else (1, 2, 3)
        numbers = tuple(part for value in values for part in (value, 0)[: len(form)])
        fields: Any = {"dtype": (code, bits, 1), "shape": (3,), "strides": (1,)}
        x, error = attempt(framework.take, Source(numbers, form[0], **fields))
        if error is not None:
            wrong.append(f"{name} is refused ({type(error).__name__})")
        elif framework.dtype(x) != name:
            wrong.append(f"{name} becomes {framework.dtype(x)}")
        elif framework.values(x) != list(values):
            wrong.append(f"{name} has the values {framework.values(x)}")
    if wrong:
        raise Violated("; ".join(wrong))


@must(f"{HEADER}, DLDataTypeCode", "float16 and bfloat16 keep their type.", taking, halves)
def half_dtypes(framework: Any) -> None:
    for name in available_dtypes(framework, HALVES):
        x = arrives(framework, Source((0x3F80,) * 6, "H", dtype=(HALVES[name], 16, 1)), Refused)
        if framework.dtype(x) != name:
            raise Violated(f"{name} becomes {framework.dtype(x)}")


@must(f"{HEADER}, DLDataType.lanes", "An element has as many numbers as lanes.", taking)
def lanes_4(framework: Any) -> None:
    source = Source((*VALUES, 7.0, 8.0), shape=(2,), strides=(1,), dtype=(2, 32, 4))
    x = arrives(framework, source, Refused)
    if framework.values(x) != [*VALUES, 7.0, 8.0]:
        raise Violated(f"2 elements of 4 lanes become the values {framework.values(x)}")


@should(f"{HEADER}, DLPackVersion", "A type code that is not known is refused.", taking)
def unknown_code(framework: Any) -> None:
    refuses(framework, Source(dtype=(250, 32, 1)))


@must(f"{HEADER}, DLDataTypeCode", "A float4 that has not 4 bits is refused.", taking)
def float4_of_8_bits(framework: Any) -> None:
    refuses(framework, Source(dtype=(17, 8, 1)))


@should(f"{HEADER}, DLDevice", "Memory of a device that is not known is refused.", taking)
def unknown_device(framework: Any) -> None:
    for device in (EXT_DEV, 99):
        refuses(framework, Source(device=device))


@should(f"{PYTHON}, Semantics", "A device is refused with BufferError.", taking)
def device_error(framework: Any) -> None:
    _, error = attempt(framework.take, Source(device=EXT_DEV))
    if error is None:
        raise NotApplicable("it takes memory of an unknown device")
    if not isinstance(error, BufferError):
        raise Violated("it raises") from error


@must(DEVICE, "The device type may be an enum.", objects)
def device_enum(framework: Any) -> None:
    kind = enum.IntEnum("kind", {"OWN": array_device()[0]})
    source = Source()
    source.device = kind.OWN, 0
    holds(framework, arrives(framework, source))
