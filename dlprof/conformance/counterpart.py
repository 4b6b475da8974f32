"""Counterparts that follow the standards: a producer of capsules, and a reader of them.

Standard library only.
"""

from __future__ import annotations

import ctypes
import itertools
import math
import mmap
import operator
import struct
import threading
from collections.abc import Iterable
from typing import Any

from dlprof.probes.capsule import (
    Managed,
    ManagedVersioned,
    Tensor,
    capsule_name,
    capsule_pointer,
    new_capsule,
)

NEW = b"dltensor_versioned"
OLD = b"dltensor"
USED = {NEW: b"used_dltensor_versioned", OLD: b"used_dltensor"}
"""The name of each kind of capsule, before and after it is consumed."""
CPU, CUDA = 1, 2
KIND = CPU
"""The type of the device of all arrays."""
READ_ONLY = 1
COPIED = 2
EXT_DEV = 12
"""kDLExtDev is reserved for tests: no framework has it."""
KEYWORDS = ("stream", "max_version", "dl_device", "copy")
"""The keywords of ``__dlpack__``."""
MOST_CALLS = 9
VALUES = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
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
HALVES = {"float16": 2, "bfloat16": 4}
"""Type codes of the dtypes with 16 bits."""
LAZY = ("conjugated", "negated", "swapped")
"""Arrays whose memory does not hold their values."""

capsule_destructor = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object)(
    ("PyCapsule_GetDestructor", ctypes.pythonapi)
)
rename_capsule = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_SetName", ctypes.pythonapi)
)
# The deleter is this C function. It changes the first number of its argument. It runs in any
# thread, without the interpreter's lock, and with an exception pending.
step = ctypes.CDLL(None).rand_r
# A destructor that does nothing. A consumer may clear it, and not rename the capsule.
nothing = ctypes.cast(ctypes.CDLL(None).abs, ctypes.c_void_p)
forever = ctypes.PYFUNCTYPE(None, ctypes.py_object)(("Py_IncRef", ctypes.pythonapi))
"""Keep an object until the process ends: a framework may use it at the very end."""
Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def array_device() -> tuple[int, int]:
    """Return the device of all arrays, as ``__dlpack_device__`` says it."""
    return KIND, 0


def call_cuda(name: str, *arguments: Any) -> None:
    """Call the driver for the first CUDA device when all work is done."""
    driver, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
    driver.cuInit(0)
    driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    driver.cuCtxSetCurrent(context)
    driver.cuCtxSynchronize()
    if code := getattr(driver, name)(*arguments):
        raise RuntimeError(f"{name} fails with code {code}")


def new_memory() -> int:
    """Return the address of a page on the device, which stays until the process ends."""
    if KIND == CPU:
        memory = mmap.mmap(-1, 4096)
        forever(memory)
        return ctypes.addressof(ctypes.c_char.from_buffer(memory))
    address = ctypes.c_uint64()
    call_cuda("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(4096))
    return address.value


def read(address: int, size: int) -> bytes:
    if KIND == CPU:
        return ctypes.string_at(address, size)
    found = ctypes.create_string_buffer(size)
    call_cuda("cuMemcpyDtoH_v2", found, ctypes.c_uint64(address), ctypes.c_size_t(size))
    return found.raw


def write(address: int, data: bytes) -> None:
    if KIND == CPU:
        ctypes.memmove(address, data, len(data))
    elif data:
        call_cuda("cuMemcpyHtoD_v2", ctypes.c_uint64(address), data, ctypes.c_size_t(len(data)))


class Source:
    """An array with a standard ``__dlpack__``, which notes the arguments of each call.

    The dtype is type code, bits and lanes. The data begin ``shift`` bytes after a page. Without
    ``strides`` their pointer is NULL. Without ``numbers`` the data pointer is NULL. If ``only`` is
    given, every capsule has this name. Keywords outside ``keywords`` raise a TypeError.
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
        device: int = 0,
        byte_offset: int = 0,
        shift: int = 0,
        only: bytes = b"",
        keywords: tuple[str, ...] = KEYWORDS,
    ) -> None:
        self.data = new_memory()
        write(self.data, struct.pack(f"{len(numbers)}{form}", *numbers))
        device = device or KIND
        lengths, steps = (
            (ctypes.c_int64 * len(sizes))(*sizes) if sizes else None for sizes in (shape, strides)
        )
        data = self.data + shift if numbers else None
        self.tensor = Tensor(data, device, 0, len(shape), *dtype, lengths, steps, byte_offset)
        self.deleter = ctypes.cast(deleter, ctypes.c_void_p)
        self.version, self.flags, self.only, self.keywords = version, flags, only, keywords
        self.device: tuple[Any, int] = device, 0
        self.capsules: list[Any] = []
        self.calls: list[tuple[Any, dict[str, Any]]] = []
        forever(self)

    def capsule(self, name: bytes) -> Any:
        managed = (
            ManagedVersioned(*self.version, None, self.deleter, self.flags, self.tensor)
            if name == NEW
            else Managed(self.tensor, None, self.deleter)
        )
        self.capsules.append(
            (new_capsule(ctypes.addressof(managed), name, nothing), managed, bytes(managed)[:4])
        )
        return self.capsules[-1][0]

    def __dlpack_device__(self) -> tuple[Any, int]:
        self.calls.append(("__dlpack_device__", {}))
        return self.device

    def __dlpack__(self, *positional: Any, **keywords: Any) -> Any:
        self.calls.append((positional, keywords))
        if unknown := set(keywords).difference(self.keywords):
            raise TypeError(f"__dlpack__ has no keywords {unknown}")
        return self.standard(**keywords)

    def standard(self, *, max_version: Any = None, **_: Any) -> Any:
        newest = NEW if max_version and max_version[0] >= 1 else OLD
        return self.capsule(self.only or newest)


def deletions(source: Source) -> int:
    """Return how often deleters were called: each call changes the first number."""
    count = 0
    for _, managed, was in source.capsules:
        number = ctypes.c_uint32.from_buffer_copy(was)
        while bytes(number) != bytes(managed)[:4] and count < MOST_CALLS:
            step(ctypes.byref(number))
            count += 1
    return count


def contents(capsule: Any) -> Any:
    """Return the structure of an unused capsule; it keeps the capsule."""
    name = capsule_name(capsule)
    kind = ManagedVersioned if name == NEW else Managed
    managed: Any = kind.from_address(capsule_pointer(capsule, name))
    managed.capsule = capsule
    return managed


def first_address(managed: Any) -> int:
    """Return the address of the first element."""
    return int((managed.tensor.data or 0) + managed.tensor.byte_offset)


def lengths(managed: Any) -> list[int]:
    return list(managed.tensor.shape[: managed.tensor.ndim])


def elements(managed: Any, form: str = "f") -> list[Any]:
    """Return the elements in row-major order, read by the strides."""
    shape, ndim = lengths(managed), managed.tensor.ndim
    strides = managed.tensor.strides[:ndim] if managed.tensor.strides else None
    strides = strides or [math.prod(shape[axis + 1 :]) for axis in range(ndim)]
    found, item = [], struct.calcsize(form)
    for index in itertools.product(*map(range, shape)):
        address = first_address(managed) + item * sum(map(operator.mul, index, strides))
        parts = struct.unpack(form, read(address, item))
        found.append(complex(*parts) if len(parts) > 1 else parts[0])
    return found


def attempt(call: Any, *arguments: Any, **keywords: Any) -> tuple[Any, BaseException | None]:
    """Return the result of a call, and its error."""
    try:
        return call(*arguments, **keywords), None
    except Exception as error:  # noqa: BLE001 - a framework's refusal is an answer
        return None, error


def export_newest(framework: Any, x: Any, **keywords: Any) -> Any:
    """Return a capsule of the newest version that the framework knows."""
    try:
        return framework.export(x, max_version=(1, 3), **keywords)
    except TypeError:
        return framework.export(x, **keywords)


def in_thread(work: Any) -> None:
    """Call ``work`` in another thread."""
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def available_dtypes(framework: Any, names: Iterable[str] = DTYPES) -> list[str]:
    """Return the names of the dtypes that the framework's arrays have."""
    attempts = {name: attempt(framework.make, name) for name in names}
    return [
        name
        for name, (x, error) in attempts.items()
        if error is None and attempt(framework.dtype, x)[0] == name
    ]
