"""Counterparts that follow the standards: a producer of capsules, and a reader of them.

Standard library only. The structures of ``dlpack.h`` 1.3 are the forms of :mod:`struct` below.
"""

from __future__ import annotations

import ctypes
import itertools
import math
import mmap
import operator
import struct
import threading
import types
from typing import Any

from dlprof.probes.capsule import capsule_name, capsule_pointer, new_capsule

NEW = b"dltensor_versioned"
OLD = b"dltensor"
USED = {NEW: b"used_dltensor_versioned", OLD: b"used_dltensor"}
"""The name of each kind of capsule, before and after it is consumed."""
READ_ONLY = 1
COPIED = 2
PADDED = 4
EXT_DEV = 12
"""kDLExtDev is reserved for tests: no framework has it."""
MOST_CALLS = 9
VALUES = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
TENSOR = "data device device_id ndim code bits lanes shape strides byte_offset"
FORMS = {
    NEW: ("IIPPQPiiiBBHPPQ", f"major minor context deleter flags {TENSOR}"),
    OLD: ("PiiiBBHPPQPP", f"{TENSOR} context deleter"),
}
DTYPES = {
    "int8": (0, 8, "b"),
    "int16": (0, 16, "h"),
    "int32": (0, 32, "i"),
    "int64": (0, 64, "q"),
    "uint8": (1, 8, "B"),
    "uint16": (1, 16, "H"),
    "uint32": (1, 32, "I"),
    "uint64": (1, 64, "Q"),
    "float32": (2, 32, "f"),
    "float64": (2, 64, "d"),
    "bool": (6, 8, "?"),
    "complex64": (5, 64, "ff"),
    "complex128": (5, 128, "dd"),
}
"""The dtypes of the array API standard: type code, bits and form of :mod:`struct`."""

LAZY = ("conjugated", "negated", "swapped")
"""Arrays whose memory does not hold their values."""

rename_capsule = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_SetName", ctypes.pythonapi)
)
# The deleter is this C function. It steps the first number of what it is given, and runs in any
# thread, without the interpreter's lock, and with an exception pending.
step = ctypes.CDLL(None).rand_r
forever = ctypes.PYFUNCTYPE(None, ctypes.py_object)(("Py_IncRef", ctypes.pythonapi))
"""Keep what a framework may use until the process ends, and while its interpreter ends."""


class Source:
    """An array with a standard ``__dlpack__``. The dtype is type code, bits and lanes.

    The data begin ``shift`` bytes after a page; no ``strides`` are a NULL pointer, and so are the
    data of no ``numbers``.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - the fields of dlpack.h
        self,
        numbers: tuple[Any, ...] = VALUES,
        form: str = "f",
        version: tuple[int, int] = (1, 3),
        flags: int = 0,
        deleter: Any = step,
        shape: tuple[int, ...] = (2, 3),
        strides: tuple[int, ...] = (3, 1),
        dtype: tuple[int, int, int] = (2, 32, 1),
        device: int = 1,
        byte_offset: int = 0,
        shift: int = 0,
    ) -> None:
        self.memory = mmap.mmap(-1, 4096)
        self.memory.write(struct.pack(f"{len(numbers)}{form}", *numbers))
        struct.pack_into(f"{len(shape + strides)}q", self.memory, 2048, *shape, *strides)
        self.data = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        at = self.data + 2048
        self.tensor = struct.pack(
            "PiiiBBHPPQ",
            *(bool(numbers) * (self.data + shift), device, 0, len(shape), *dtype),
            *(bool(shape) * at, bool(strides) * (at + 8 * len(shape)), byte_offset),
        )
        self.end = struct.pack("PP", 0, ctypes.cast(deleter, ctypes.c_void_p).value or 0)
        self.head = struct.pack("II", *version) + self.end + struct.pack("Q", flags)
        self.device: tuple[Any, int] = device, 0
        self.given: list[Any] = []
        forever(self)

    def capsule(self, name: bytes) -> Any:
        made = ctypes.create_string_buffer(
            self.head + self.tensor if name == NEW else self.tensor + self.end
        )
        self.given.append((new_capsule(ctypes.addressof(made), name, None), made, made.raw[:4]))
        return self.given[-1][0]

    def __dlpack_device__(self) -> tuple[Any, int]:
        return self.device

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: Any = None,
        dl_device: Any = None,
        copy: Any = None,
    ) -> Any:
        return self.capsule(NEW if max_version and max_version[0] >= 1 else OLD)


class Old(Source):
    """Gives the old DLManagedTensor only."""

    def __dlpack__(self, **_: Any) -> Any:
        return self.capsule(OLD)


class Recorder(Source):
    """Notes the arguments of each call of ``__dlpack__``."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[Any, Any]] = []

    def __dlpack__(self, *positional: Any, **how: Any) -> Any:
        self.asked.append((positional, how))
        return super().__dlpack__(**how)


def deletions(source: Source) -> int:
    """How often deleters were called: each call steps the first number of what it deletes."""
    count = 0
    for _, made, was in source.given:
        number = ctypes.c_uint32.from_buffer_copy(was)
        while bytes(number) != made.raw[:4] and count < MOST_CALLS:
            step(ctypes.byref(number))
            count += 1
    return count


def held_by(capsule: Any) -> Any:
    """The name of an unused capsule, and the fields of what it points to."""
    name = capsule_name(capsule)
    form, names = FORMS[name]
    address = capsule_pointer(capsule, name)
    found = struct.unpack(form, ctypes.string_at(address, struct.calcsize(form)))
    fields = dict(zip(names.split(), found, strict=True))
    return types.SimpleNamespace(name=name, address=address, **fields)


def flags_of(capsule: Any) -> int:
    """Of a versioned capsule."""
    return ctypes.c_uint64.from_address(capsule_pointer(capsule, NEW) + 24).value


def tensor_of(capsule: Any) -> Any:
    """The address of the DLTensor of an unused capsule."""
    name = capsule_name(capsule)
    return capsule_pointer(capsule, name) + (32 if name == NEW else 0)


def floats_of(held: Any, count: int = 8) -> list[float]:
    """So many numbers from the first element on."""
    return list((ctypes.c_float * count).from_address(held.data + held.byte_offset))


def numbers_at(address: int, count: int) -> list[int]:
    return list((ctypes.c_int64 * count).from_address(address)) if address and count else []


def values_of(held: Any, form: str = "f") -> list[Any]:
    """The elements in row-major order, read by the strides."""
    shape, strides = (numbers_at(at, held.ndim) for at in (held.shape, held.strides))
    strides = strides or [math.prod(shape[axis + 1 :]) for axis in range(held.ndim)]
    found, item = [], struct.calcsize(form)
    for index in itertools.product(*map(range, shape)):
        at = held.data + held.byte_offset + item * sum(map(operator.mul, index, strides))
        parts = struct.unpack(form, ctypes.string_at(at, item))
        found.append(complex(*parts) if len(parts) > 1 else parts[0])
    return found


def attempt(call: Any, *arguments: Any, **how: Any) -> tuple[Any, BaseException | None]:
    """What a call returns, and what it raised."""
    try:
        return call(*arguments, **how), None
    except Exception as error:  # noqa: BLE001 - a framework's refusal is an answer
        return None, error


def in_thread(work: Any) -> None:
    """Call ``work`` in another thread."""
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def has_dtype(framework: Any, name: str) -> bool:
    """Whether the framework makes arrays of this dtype, and says so."""
    x, error = attempt(framework.make, name)
    return error is None and attempt(framework.dtype, x)[0] == name
