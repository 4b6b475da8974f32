"""Warp reads a DLPack tensor from `data` on, and ignores `byte_offset`. No dlprof, no GPU.

Exits with 1 if the values are wrong, and with 0 if they are right.
"""

import ctypes
import sys

import numpy
import warp

BYTE_OFFSET = 40  # of DLTensor: data, device, ndim, dtype, shape, strides, byte_offset


class Sliced:
    """NumPy's [0, 1, …, 9] from the fifth element on: 16 bytes, told by `byte_offset`."""

    def __init__(self):
        self.memory = numpy.arange(10, dtype="float32")

    def __dlpack_device__(self):
        return self.memory[:5].__dlpack_device__()

    def __dlpack__(self, **keywords):
        capsule = self.memory[:5].__dlpack__(**keywords)
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        address = pointer(capsule, b"dltensor")
        ctypes.c_uint64.from_address(address + BYTE_OFFSET).value = 16
        return capsule


warp.init()
expected = [4.0, 5.0, 6.0, 7.0, 8.0]
found = warp.from_dlpack(Sliced()).numpy().tolist()
print("warp", warp.__version__, "expected", expected, "found", found)
sys.exit(found != expected)
