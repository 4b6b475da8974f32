"""Counterparts that follow the standards: a producer of capsules, and a consumer of them.

Standard library only: memory, structures and deleters are made with ctypes.
"""

from __future__ import annotations

import ctypes
import itertools
import math
import struct
from typing import Any

from dlprof.probes.capsule import (
    Managed,
    ManagedVersioned,
    Tensor,
    capsule_name,
    capsule_pointer,
    new_capsule,
)

VERSION = (1, 3)
READ_ONLY, COPIED, PADDED = 1, 2, 4
CPU = (1, 0)
EXT_DEV = (12, 0)
"""kDLExtDev is reserved for tests: no framework has it."""
FLOAT = (2, 32, 1)
VALUES = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
ALIGNMENT = 256
MOST_STEPS = 9
FORMATS = {
    **{(0, bits): form for bits, form in ((8, "b"), (16, "h"), (32, "i"), (64, "q"))},
    **{(1, bits): form for bits, form in ((8, "B"), (16, "H"), (32, "I"), (64, "Q"))},
    (2, 16): "e",
    (2, 32): "f",
    (2, 64): "d",
    (5, 64): "ff",
    (5, 128): "dd",
    (6, 8): "?",
}
"""Forms of :mod:`struct` by type code and bits."""
DTYPES = {
    **{f"int{bits}": (0, bits, 1) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": (1, bits, 1) for bits in (8, 16, 32, 64)},
    "float32": (2, 32, 1),
    "float64": (2, 64, 1),
    "bool": (6, 8, 1),
    "complex64": (5, 64, 1),
    "complex128": (5, 128, 1),
}
"""The dtypes of the array API standard as type code, bits and lanes."""
KEYWORDS = ("stream", "max_version", "dl_device", "copy")
NEW, OLD = b"dltensor_versioned", b"dltensor"
USED = {NEW: b"used_dltensor_versioned", OLD: b"used_dltensor"}
"""The name of each kind of capsule, before and after it is consumed."""

rename_capsule = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_SetName", ctypes.pythonapi)
)
# The C function that is the deleter of our tensors. It steps the first number of what it is given,
# and runs in any thread, without the interpreter's lock, and with an exception pending.
step = ctypes.CDLL(None).rand_r
Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
kept: list[Any] = []
"""Memory of our capsules: a framework may use it until the process ends."""


def compact(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of row-major order, in elements."""
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


class Source:
    """An array of ours, and a producer that follows the standard where it is not told otherwise.

    ``memory`` are the numbers in memory, ``start`` the index of the first element there.
    ``byte_offset`` bytes lie before the memory, and ``skew`` bytes before ``data``. Strides of
    False are a NULL pointer, and so is ``data``. ``names`` are the kinds of capsules that it makes.
    """

    def __init__(
        self,
        memory: tuple[Any, ...] = VALUES,
        shape: tuple[int, ...] = (2, 3),
        strides: tuple[int, ...] | bool = True,
        dtype: tuple[int, int, int] = FLOAT,
        **edges: Any,
    ) -> None:
        self.memory, self.shape, self.dtype = memory, shape, dtype
        self.strides = compact(shape) if strides is True else strides
        self.edges = edges
        self.device: tuple[int, int] = edges.get("device", CPU)
        self.names = edges.get("names", (NEW, OLD))
        self.keywords = edges.get("keywords", KEYWORDS)
        self.asked: list[Any] = []
        """The arguments of each call of ``__dlpack__``, or the name of the other method."""
        self.capsules: list[Any] = []
        self.gave: list[bytes] = []
        self._managed: list[Any] = []
        self._dropped = 0
        self.tensor = self._tensor()

    def _tensor(self) -> Tensor:
        offset, start = self.edges.get("byte_offset", 0), self.edges.get("start", 0)
        code, bits, _ = self.dtype
        form = "=" + FORMATS.get((code, bits), "f")
        item = struct.calcsize(form)
        parts = [(one.real, one.imag) if code == 5 else (one,) for one in self.memory]  # noqa: PLR2004
        raw = b"".join(struct.pack(form, *one) for one in parts)
        size = offset + self.edges.get("skew", 0) + len(raw) + ALIGNMENT
        self.block = ctypes.create_string_buffer(size + ALIGNMENT)
        data = -(-ctypes.addressof(self.block) // ALIGNMENT) * ALIGNMENT + self.edges.get("skew", 0)
        ctypes.memmove(data + offset, raw, len(raw))
        self.address = data + offset + start * item
        ndim = len(self.shape)
        null = ctypes.POINTER(ctypes.c_int64)()
        lengths = (ctypes.c_int64 * ndim)(*self.shape) if ndim else null
        steps = (ctypes.c_int64 * ndim)(*self.strides) if self.strides and ndim else null
        kept.append((self.block, lengths, steps))
        return Tensor(
            data if self.edges.get("data", True) else None,
            *self.device,
            ndim,
            *self.dtype,
            ctypes.cast(lengths, ctypes.POINTER(ctypes.c_int64)),
            ctypes.cast(steps, ctypes.POINTER(ctypes.c_int64)),
            offset + start * item,
        )

    @property
    def values(self) -> list[Any]:
        """The elements in row-major order."""
        strides = self.strides if isinstance(self.strides, tuple) else compact(self.shape)
        start = self.edges.get("start", 0)
        indices = itertools.product(*map(range, self.shape))
        steps = [sum(i * step for i, step in zip(index, strides)) for index in indices]  # noqa: B905
        return [self.memory[start + step] for step in steps]

    def overwrite(self, value: float) -> None:
        """Change the first element in memory."""
        form = "=" + FORMATS[self.dtype[:2]]
        ctypes.memmove(self.address, struct.pack(form, value), struct.calcsize(form))

    def managed(self, name: bytes = NEW, flags: int = 0) -> int:
        """Address of a managed tensor of this array."""
        deleter = ctypes.cast(step, ctypes.c_void_p) if self.edges.get("deleter", True) else None
        if name == NEW:
            version = self.edges.get("version", VERSION)
            flags |= self.edges.get("flags", 0)
            made: Any = ManagedVersioned(*version, None, deleter, flags, self.tensor)
        else:
            made = Managed(self.tensor, None, deleter)
        kept.append(made)
        self.gave.append(name)
        first = ctypes.c_uint32.from_buffer(made)
        self._managed.append((first, first.value))
        return ctypes.addressof(made)

    def capsule(self, name: bytes, flags: int = 0) -> Any:
        """A new capsule. We keep it, and do in :meth:`drop` what its destructor would do: C code
        may destroy a capsule while an exception is pending, where no Python code can run.
        """
        capsule = new_capsule(self.managed(name, flags), name, None)
        self.capsules.append(capsule)
        return capsule

    def drop(self) -> None:
        """Let go of the capsules; of those that were not consumed, call the deleter."""
        self._dropped += sum(capsule_name(one) not in USED.values() for one in self.capsules)
        self.capsules.clear()

    @property
    def deleted(self) -> int:
        """Calls of the deleter."""
        return self._dropped + sum(steps(was, first.value) for first, was in self._managed)

    def __dlpack_device__(self) -> tuple[int, int]:
        self.asked.append("__dlpack_device__")
        return self.device

    def __dlpack__(self, *positional: Any, **how: Any) -> Any:
        self.asked.append((positional, how))
        unknown = set(how) - set(self.keywords)
        if positional or unknown:
            raise TypeError(f"__dlpack__() got an unexpected argument: {positional or unknown}")
        if "error" in self.edges:
            raise self.edges["error"]
        if how.get("dl_device") not in (None, self.device):
            raise BufferError("our array is on another device")
        if "returns" in self.edges:
            return self.edges["returns"]
        source = Source(self.memory, self.shape, self.strides, self.dtype, **self.edges)
        source = source if how.get("copy") else self
        wanted = NEW if (how.get("max_version") or (0,))[0] >= 1 else OLD
        name = wanted if wanted in self.names else self.names[0]
        if wanted == OLD and name == NEW:
            raise BufferError("our array needs a consumer of DLPack 1.0 or newer")
        return source.capsule(name, COPIED if how.get("copy") else 0)


def steps(first: int, now: int) -> int:
    """How often ``step`` was called on a number that was ``first``; at most :data:`MOST_STEPS`."""
    number, count = ctypes.c_uint32(first), 0
    while number.value != now and count < MOST_STEPS:
        step(ctypes.byref(number))
        count += 1
    return count


def kind_of(capsule: Any) -> bytes:
    """The name of an unconsumed capsule; the bytes live as long as the process."""
    name = capsule_name(capsule)
    if name not in USED:
        raise ValueError(f"no unconsumed capsule of DLPack: {name!r}")
    return NEW if name == NEW else OLD


class Taken:
    """A capsule of a framework, consumed as the specification says."""

    def __init__(self, capsule: Any) -> None:
        self.name = kind_of(capsule)
        address = capsule_pointer(capsule, self.name)
        kind: Any = ManagedVersioned if self.name == NEW else Managed
        self.managed = kind.from_address(address)
        self.address = address
        self.flags = self.managed.flags if self.name == NEW else 0
        self.tensor = self.managed.tensor
        rename_capsule(capsule, USED[self.name])

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.tensor.shape[: self.tensor.ndim])

    @property
    def dtype(self) -> tuple[int, int, int]:
        return self.tensor.code, self.tensor.bits, self.tensor.lanes

    @property
    def data(self) -> int:
        return int(self.tensor.data or 0) + int(self.tensor.byte_offset)

    @property
    def values(self) -> list[Any]:
        return values_of(self.tensor)

    def release(self) -> None:
        """Call the deleter, without the interpreter's lock, as C code may do."""
        if self.managed.deleter:
            Deleter(self.managed.deleter)(self.address)


def values_of(tensor: Any) -> list[Any]:
    """The elements in row-major order, read by the strides."""
    shape = tuple(tensor.shape[: tensor.ndim])
    strides = tuple(tensor.strides[: tensor.ndim]) if tensor.strides else compact(shape)
    form = "=" + FORMATS[tensor.code, tensor.bits]
    item, start = struct.calcsize(form), (tensor.data or 0) + tensor.byte_offset
    found = []
    for index in itertools.product(*map(range, shape)):
        at = start + item * sum(i * step for i, step in zip(index, strides))  # noqa: B905
        parts = struct.unpack(form, ctypes.string_at(at, item))
        found.append(complex(*parts) if len(parts) > 1 else parts[0])
    return found


def attempt(call: Any, *arguments: Any, **how: Any) -> tuple[Any, BaseException | None]:
    """What a call returns, and what it raised."""
    try:
        return call(*arguments, **how), None
    except Exception as error:  # noqa: BLE001 - a framework's refusal is an answer
        return None, error


def has_dtype(framework: Any, name: str) -> bool:
    """Whether the framework makes arrays of this dtype, and says so."""
    array, error = attempt(framework.make, name)
    return error is None and attempt(framework.dtype, array)[0] == name
