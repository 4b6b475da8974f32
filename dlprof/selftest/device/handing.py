"""A DLPack capsule of memory on the device, made with ctypes."""

from __future__ import annotations

import ctypes
from typing import Any

from dlprof.probes.capsule import Managed, new_capsule

CUDA = 2
"""``kDLCUDA`` of ``dlpack.h``."""
NAME = b"dltensor"
KINDS = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
"""Codes of ``dlpack.h`` by the kinds of NumPy's dtypes."""


class Handed:
    """What the capsules of one array point to: valid as long as this lives.

    It has no deleter, which the specification allows: the array owns all of it.
    """

    def __init__(
        self, address: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: Any
    ) -> None:
        lengths = ctypes.c_int64 * len(shape)
        self._shape, self._strides = lengths(*shape), lengths(*strides)
        self._managed = Managed()
        tensor = self._managed.tensor
        tensor.data = address
        tensor.device_type = CUDA
        tensor.ndim = len(shape)
        tensor.code = KINDS[dtype.kind]
        tensor.bits = 8 * dtype.itemsize
        tensor.lanes = 1
        tensor.shape = ctypes.cast(self._shape, ctypes.POINTER(ctypes.c_int64))
        tensor.strides = ctypes.cast(self._strides, ctypes.POINTER(ctypes.c_int64))

    def capsule(self) -> Any:
        return new_capsule(ctypes.addressof(self._managed), NAME, None)
