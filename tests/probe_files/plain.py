"""A framework of plain ctypes memory that follows DLPack and the array API standard.

``fault`` names the one check of ``dlprof conformance`` that it violates; empty: none. Some faults
name a check and a dtype: it violates that check for this dtype alone. With
``crashes-at-drop`` the process ends when an array on foreign memory is dropped.
"""

import ctypes
import itertools
import math
import os
import struct
import threading
from pathlib import Path

from dlprof.conformance import counterpart
from dlprof.conformance.counterpart import NEW, OLD, USED, Deleter, rename_capsule
from dlprof.probes.base import Export, Import, Probe, Protocol, Unsupported
from dlprof.probes.capsule import (
    Managed,
    ManagedVersioned,
    Tensor,
    capsule_name,
    capsule_pointer,
    new_capsule,
)

fault = os.environ.get("PLAIN_FAULT", "")
VERSION = (1, 3)
DTYPES = {name: (code, bits, 1, form) for name, (code, bits, form) in counterpart.DTYPES.items()}
DTYPES |= {"float16": (2, 16, 1, "e"), "bfloat16": (4, 16, 1, "H")}
NAMES = {value[:3]: name for name, value in DTYPES.items()}


class Table(ctypes.Structure):
    _fields_ = (
        *(("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("previous", ctypes.c_void_p)),
        *((name, ctypes.c_void_p) for name in ("allocate", "give", "take", "lend", "stream")),
    )


is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)
Destructor = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
kept = []
held = {}


class Owner:
    """Calls the deleter when the last array is gone."""

    def __init__(self, managed, address):
        self.managed, self.address, self.thread = managed, address, threading.get_ident()

    def __del__(self):
        if fault == "crashes-at-drop":
            os.abort()
        leaks = fault == "deleter-once"
        leaks |= fault == "dropped-in-thread" and threading.get_ident() != self.thread
        if self.managed.deleter and not leaks:
            Deleter(self.managed.deleter)(self.address)


class Block:
    """Memory of this framework; its contents change when it is freed."""

    def __init__(self, size):
        self.memory = ctypes.create_string_buffer(size + 64)
        self.address = -(-ctypes.addressof(self.memory) // 64) * 64

    def __del__(self):
        ctypes.memset(self.memory, 0x55, len(self.memory))


class Array:
    device = "cpu"

    def __init__(self, owner, address, shape, strides, dtype="float32", kind=""):
        self.owner, self.address, self.shape, self.strides = owner, address, shape, strides
        self.dtype, self.kind = dtype, kind

    def addresses(self):
        item = DTYPES[self.dtype][1] // 8
        for index in itertools.product(*map(range, self.shape)):
            steps = zip(index, self.strides, strict=True)
            yield self.address + item * sum(i * step for i, step in steps)

    def tolist(self):
        form, found = "=" + DTYPES[self.dtype][3], []
        for at in self.addresses():
            parts = struct.unpack(form, ctypes.string_at(at, struct.calcsize(form)))
            value = complex(*parts) if len(parts) > 1 else parts[0]
            found.append(-value if self.kind == "negated" else value)
        return found

    def reshape(self, _):
        return self

    def copy(self):
        return make(self.tolist(), self.shape, self.dtype)

    def __dlpack_device__(self):
        return (2, 0) if fault == "device-pair" else (1, 0)

    def __dlpack__(  # noqa: C901, PLR0912 - a branch for each fault
        self, *, stream=None, max_version=None, dl_device=None, copy=None
    ):
        if stream is not None and fault != "no-stream-on-cpu":
            raise ValueError("the CPU has no streams")
        if dl_device not in (None, (1, 0)) and fault != "unknown-dl-device":
            raise BufferError("no such device")
        if dl_device and fault == "own-device":
            raise BufferError("no device")
        if self.kind in ("masked", "negated"):
            if fault == "refusal-type":
                raise ValueError("no such memory")
            if fault != "lazy-values":
                raise BufferError("its memory does not hold its values")
        if fault == f"refusal-type-{self.dtype}":
            raise SystemError("no such dtype")
        if fault == f"copies-{self.dtype}" and copy:
            raise SystemError("no copy")
        together = ("keywords-together", f"keywords-together-{self.dtype}")
        if fault in together and copy and dl_device:
            raise SystemError("not both")
        flags, source = 0, self
        if (copy and fault != "copies") or (copy is False and fault == "never-copies"):
            source, flags = self.copy(), 0 if fault == "copied-flag" else 2
        if copy is None and fault == "gives-view":
            source = self.copy()
        if self.kind == "readonly" and fault != "read-only-flag":
            flags |= 1
        name = NEW if max_version and max_version[0] >= 1 else OLD
        name = {"old-by-default": NEW, "new-if-asked": OLD}.get(fault, name)
        if fault == "new-for-newer" and max_version == (2, 0):
            raise BufferError("too new")
        return source.capsule(name, flags)

    def tensor(self):
        ndim, lengths = len(self.shape), (ctypes.c_int64 * len(self.shape))(*self.shape)
        steps = (ctypes.c_int64 * ndim)(*self.strides)
        kept.append((lengths, steps))
        null, kind = ctypes.POINTER(ctypes.c_int64)(), ctypes.POINTER(ctypes.c_int64)
        data = self.address if 0 not in self.shape or fault == "empty-is-null" else None
        offset = 4 if fault == "layouts" else 0
        wrong = {"gives-dtypes": "bool", "gives-half-dtypes": "bfloat16"}
        code = 1 if wrong.get(fault) == self.dtype else DTYPES[self.dtype][0]
        return Tensor(
            *(data, 1, 0, ndim, code, *DTYPES[self.dtype][1:3], ctypes.cast(lengths, kind)),
            null if fault == "fills-strides" else ctypes.cast(steps, kind),
            offset,
        )

    def managed(self, name=NEW, flags=0):
        tensor = self.tensor()

        def delete(address):
            held.pop(address, None)
            is_main = threading.current_thread() is threading.main_thread()
            if fault == "deleter-in-thread" and not is_main:
                os.abort()

        deleter = Deleter(delete)
        kept.append(deleter)
        pointer = ctypes.cast(deleter, ctypes.c_void_p).value
        made = (
            ManagedVersioned(*VERSION, None, pointer, flags, tensor)
            if name == NEW
            else Managed(tensor, None, pointer)
        )
        address = ctypes.addressof(made)
        kept.append(made)
        if fault != "keeps-memory":
            held[address] = self.owner
        return made, address

    def capsule(self, name, flags):
        made, address = self.managed(name, flags)

        def destroy(dying):
            drops = is_valid(dying, name) and fault != "dropped-capsule"
            if drops or fault == "dropped-used-capsule":
                Deleter(made.deleter)(address)

        destructor = Destructor(destroy)
        kept.append(destructor)
        return new_capsule(address, name, ctypes.cast(destructor, ctypes.c_void_p))


class WithoutKeywords(Array):
    def __dlpack__(self):
        return Array.__dlpack__(self)


class WithoutMethods:
    def __init__(self, array):
        self.array, self.dtype = array, array.dtype

    def reshape(self, _):
        return self.array


def compact(shape):
    strides, step = [], 1
    for length in reversed(shape):
        strides.insert(0, step)
        step *= length
    return tuple(strides)


def make(values, shape, dtype="float32", strides=None, start=0, kind=""):
    form = "=" + DTYPES[dtype][3]
    parts = [(one.real, one.imag) if len(form) > 2 else (one,) for one in values]
    raw = b"".join(struct.pack(form, *one) for one in parts)
    block = Block(len(raw))
    ctypes.memmove(block.address, raw, len(raw))
    address = block.address + start * struct.calcsize(form)
    kind_of_array = WithoutKeywords if fault == "knows-keywords" else Array
    made = kind_of_array(block, address, shape, strides or compact(shape), dtype, kind)
    return WithoutMethods(made) if fault == "has-methods" else made


def make_large(shape):
    block = Block(4 * shape[0] * shape[1])
    return Array(block, block.address, shape, compact(shape))


def capsule_from(x, copy):
    """Return the capsule of an object, and whether the call had the keyword copy."""
    if not hasattr(x, "__dlpack__"):
        raise (TypeError if fault == "no-methods" else AttributeError)("it has no __dlpack__")
    device = (1, 0) if fault in ("asks-for-device", "unknown-device") else x.__dlpack_device__()
    if device[0] != 1 or (fault == "device-enum" and type(device[0]) is not int):
        raise (ValueError if fault == "device-error" else BufferError)("no such device")
    how = {} if fault in ("asks-with-max-version", "takes-versioned") else {"max_version": VERSION}
    how |= {"stream": 1} if fault == "asks-for-no-stream" else {}
    how |= {} if copy is None or fault in ("copy-true", "copy-false") else {"copy": copy}
    if fault == "exchange-major-2" and hasattr(type(x), "__dlpack_c_exchange_api__"):
        raise BufferError("it used a table of another version")
    try:
        return x.__dlpack__(**how), "copy" in how
    except TypeError:
        if fault.startswith("asks-again"):
            raise
        return x.__dlpack__(), fault == "copy-true-without-keyword"


def from_dlpack(x, /, **how):  # noqa: C901, PLR0912 - a branch for each fault
    device, copy = how.get("device"), how.get("copy")
    if how and fault == "knows-import-keywords":
        raise TypeError("no keywords")
    if fault == "takes-objects":
        raise TypeError("capsules only")
    if device and fault == "device-keyword":
        raise BufferError("no device")
    capsule, asked = capsule_from(x, copy)
    name = capsule_name(capsule) if type(capsule).__name__ == "PyCapsule" else None
    if name == b"something" and fault == "other-name":
        return make([1.0], (1,))
    if name in USED.values() and fault == "consumed-twice":
        return make([1.0], (1,))
    if name not in USED:
        raise BufferError("no capsule of DLPack")
    if name == {"takes-legacy": OLD, "takes-versioned": NEW}.get(fault):
        raise BufferError("no such capsule")
    address = capsule_pointer(capsule, NEW if name == NEW else OLD)
    managed = (ManagedVersioned if name == NEW else Managed).from_address(address)
    major, flags = (managed.major, managed.flags) if name == NEW else (1, 0)
    if major > 1 and fault != "major-version-2":
        raise BufferError("another version")
    if flags & 1 and fault == "read-only-taken":
        raise BufferError("a flag")
    if not managed.deleter and fault == "deleter-null":
        raise BufferError("no deleter")
    try:
        array = array_of(managed.tensor, name, flags)
    except BufferError:
        if fault == "deleter-of-refused":
            Deleter(managed.deleter)(address)
        raise
    array.owner = Owner(managed, address)
    if fault == "own-array" and isinstance(x, Array):
        return make([1.0], (1,))
    if fault == "clears-destructor":  # in place of the name, as nanobind in MLX does
        ctypes.pythonapi.PyCapsule_SetDestructor(ctypes.py_object(capsule), None)
    elif fault != "renames-capsule":
        rename_capsule(capsule, USED[NEW if name == NEW else OLD])
    if fault == "deleter-waits":
        Deleter(managed.deleter)(address)
        managed.deleter = None
    if fault == "reuses-memory" or (copy and not asked and fault != "copy-true"):
        return array.copy()
    return array.copy() if fault == "copy-false" and copy is False else array


def from_capsule(capsule):
    class Holder:
        def __dlpack_device__(self):
            return 1, 0

        def __dlpack__(self, **_):
            return capsule

    return from_dlpack(Holder())


def to_capsule(array):
    return array.__dlpack__()


def array_of(tensor, name=NEW, flags=0):  # noqa: C901 - a branch for each fault
    ndim = tensor.ndim
    shape = tuple(tensor.shape[:ndim]) if ndim else ()
    dtype = tensor.code, tensor.bits, tensor.lanes
    if fault in ("unknown-code", "float4-of-8-bits") and dtype not in NAMES:
        dtype = (2, 32, 1)
    if fault == "lanes-4":
        dtype = (*dtype[:2], 1)
    if fault == "half-dtypes" and dtype[0] == 4:
        dtype = (1, 16, 1)
    if dtype not in NAMES or (fault == "takes-dtypes" and dtype[0] == 6):
        raise BufferError("no such dtype")
    size = math.prod(shape)
    if size > 1 << 40 and fault != "size-overflow":
        raise BufferError("too large")
    if not size and fault == "empty-null":
        shape, ndim = (0,), 1
    data = tensor.data or 0
    if data % 64 and fault == "alignment-4":
        raise BufferError("not aligned")
    strides = tuple(tensor.strides[:ndim]) if tensor.strides and ndim else compact(shape)
    if not tensor.strides and ndim and fault == f"null-strides{'-legacy' * (name == OLD)}":
        strides = (1, 2)
    if not ndim and fault == "scalar-null":
        shape, strides = (1,), (1,)
    wrong = {"fortran-strides": (1, 2), "row-gaps": (5, 1), "negative-strides": (-3, 1)}
    wrong |= {"zero-strides": (0, 1)}
    if wrong.get(fault) == strides:
        strides = compact(shape)
    if fault == "idle-strides" and 1 in shape and strides != compact(shape):
        raise BufferError("not contiguous")
    offset = 0 if fault == "byte-offset" else tensor.byte_offset
    kind = "readonly" if flags & 1 and fault != "read-only-stays" else ""
    return Array(None, data + offset, shape, strides, NAMES[dtype], kind)


# The C exchange API


Out = ctypes.POINTER(ctypes.c_void_p)


def give(array, out):
    made, address = array.managed()
    if fault == "exchange-gives":
        made.tensor.byte_offset = 4
    out[0] = address
    return 0


def take(address, out):
    if fault == "exchange-takes":
        return -1
    managed = ManagedVersioned.from_address(address)
    array = array_of(managed.tensor)
    array.owner = Owner(managed, address)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(array))
    out[0] = id(array)
    return 0


def lend(array, out):
    out[0] = array.tensor()
    return 0


def stream(kind, number, out):
    out[0] = None
    return 0


def allocate(prototype, out, context, set_error):
    like = prototype[0]
    name = NAMES.get((like.code, like.bits, like.lanes))
    if name is None or fault == "exchange-allocates":
        set_error(context, b"BufferError", b"no such dtype")
        return -1
    shape = tuple(like.shape[: like.ndim])
    out[0] = make([0] * math.prod(shape), shape, name).managed()[1]
    return 0


SetError = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)
CALLBACKS = (
    ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.POINTER(Tensor), Out, ctypes.c_void_p, SetError)(
        allocate
    ),
    ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, Out)(give),
    ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, Out)(take),
    ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(Tensor))(lend),
    ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int32, Out)(stream),
)
TABLE = Table(*VERSION, None, *(ctypes.cast(one, ctypes.c_void_p) for one in CALLBACKS))
NO_TABLE = Table(2, 0)


class Exchange:
    """Return the attribute of the type."""

    def __get__(self, _, __):
        table = NO_TABLE if fault == "exchange-table" else TABLE
        return new_capsule(ctypes.addressof(table), b"dlpack_exchange_api", None)


Array.__dlpack_c_exchange_api__ = Exchange()


class Plain(Probe):
    name = "plain"
    module = "ctypes"
    distributions = ()
    setup = f"import sys\nsys.path.insert(0, {str(Path(__file__).parent)!r})\nimport plain"
    flags = ("masked", "negated")
    exports = (Export("dlpack", Protocol.DLPACK, "{x}"),)
    imports = (Import("from_dlpack", (Protocol.DLPACK,), "plain.from_dlpack({x})"),)

    def create(self, spec):
        code, shape = DTYPES.get(spec.dtype), spec.shape
        if code is None:
            raise Unsupported("no such dtype")
        if len(shape) > 1 and shape[0] > 3:
            return f"x = plain.make_large({shape})"
        values = [True, False] * 4 if spec.dtype == "bool" else list(range(1, 25))
        how = {
            "F": ", strides=(1, 2)",
            "strided": ", strides=(8, 2)",
            "reversed": ", strides=(-4, 1), start=4",
            "broadcast": ", strides=(0, 1)",
            "sliced": ", start=1",
        }.get(spec.layout, f", kind={spec.layout!r}")
        return f"x = plain.make({values}, {shape}, {spec.dtype!r}{how})"

    def idioms(self, device, dtype):
        found = {"values": "{x}", "shape": "{x}.shape", "dtype": "{x}.dtype"}
        write = {} if fault == "immutable-flag" else {"write": "pass"}
        return found | write | {"writable": "{x}.kind != 'readonly'"}


class Capsules(Plain):
    """The same framework, with functions that only take and return capsules."""

    name = "capsules"
    exports = (Export("to_capsule", Protocol.DLPACK_CAPSULE, "plain.to_capsule({x})"),)
    imports = (Import("from_capsule", (Protocol.DLPACK_CAPSULE,), "plain.from_capsule({x})"),)
