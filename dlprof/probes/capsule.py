"""Read a DLPack capsule with ctypes, without consuming it.

The structures are those of ``dlpack.h`` 1.3 (DLManagedTensor, DLManagedTensorVersioned). A consumer
renames the capsule that it consumes, and :func:`read` then gives None.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

FLAGS = {1: "read_only", 2: "is_copied", 4: "subbyte_padded"}
_DEVICES = (
    *("", "cpu", "cuda", "cuda_host", "opencl", "", "", "vulkan", "metal", "vpi", "rocm"),
    *("rocm_host", "ext_dev", "cuda_managed", "oneapi", "webgpu", "hexagon", "maia", "trainium"),
    *("tpu", "tpu_host", "ascend"),  # not released yet: dlpack#188 and after
)
DEVICES = {number: name for number, name in enumerate(_DEVICES) if name}
# In the order of their numbers. The names from float8 on are whole, without their bits.
CODES = (
    *("int", "uint", "float", "opaque", "bfloat", "complex", "bool"),
    *("float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz"),
    *("float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"),
    *("float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn"),
)


class Tensor(ctypes.Structure):
    """``DLTensor``."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class Managed(ctypes.Structure):
    """``DLManagedTensor``, to which a capsule named ``dltensor`` points."""

    _fields_ = (("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class ManagedVersioned(ctypes.Structure):
    """``DLManagedTensorVersioned``."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    )


@dataclass(frozen=True)
class Contents:
    """The tensor of a capsule; ``strides`` in elements, or None."""

    name: str
    version: str | None
    flags: tuple[str, ...]
    device: str
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    address: int


def _python(name: str, result: Any, *parameters: Any) -> Any:
    """Return a function of Python's C API.

    An attribute of ``ctypes.pythonapi`` is shared by the process: types that are set there would
    change the calls of a framework.
    """
    return ctypes.PYFUNCTYPE(result, *parameters)((name, ctypes.pythonapi))


capsule_name = _python("PyCapsule_GetName", ctypes.c_char_p, ctypes.py_object)
capsule_pointer = _python(
    "PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p
)
new_capsule = _python(
    "PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
)
# Capsules have no name in the language: the type of one is theirs.
_KIND = type(new_capsule(1, None, None))


def alignment(address: int) -> int:
    """Return the largest power of two up to 4096 that divides ``address``; 0 for NULL."""
    return min(address & -address, 4096)


def is_capsule(thing: object) -> bool:
    return type(thing) is _KIND


def read(capsule: object) -> Contents | None:
    """Return the contents of an unconsumed DLPack capsule; None for anything else."""
    if not is_capsule(capsule):
        return None
    name = capsule_name(capsule)
    if name not in (b"dltensor", b"dltensor_versioned"):
        return None
    kind = Managed if name == b"dltensor" else ManagedVersioned
    managed = kind.from_address(capsule_pointer(capsule, name))
    version: str | None = None
    flags: tuple[str, ...] = ()
    if kind is ManagedVersioned:
        version = f"{managed.major}.{managed.minor}"
        flags = tuple(word for bit, word in FLAGS.items() if managed.flags & bit)
    tensor = managed.tensor
    device = DEVICES.get(tensor.device_type, f"device type {tensor.device_type}")
    return Contents(
        name=name.decode(),
        version=version,
        flags=flags,
        device=f"{device}:{tensor.device_id}",
        dtype=_dtype(tensor.code, tensor.bits, tensor.lanes),
        shape=tuple(tensor.shape[: tensor.ndim]),
        strides=tuple(tensor.strides[: tensor.ndim]) if tensor.strides else None,
        address=(tensor.data or 0) + tensor.byte_offset,
    )


def _dtype(code: int, bits: int, lanes: int) -> str:
    kind = CODES[code] if code < len(CODES) else f"code{code}_"
    name = kind if kind == "bool" or "_e" in kind else f"{kind}{bits}"
    return name if lanes == 1 else f"{name}x{lanes}"
