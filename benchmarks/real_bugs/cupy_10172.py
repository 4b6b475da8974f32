"""cupy#10172: a negative stride in CuPy's capsule is a large positive number.

https://github.com/cupy/cupy/issues/10172
"""

import ctypes
import sys

import cupy


class Tensor(ctypes.Structure):
    """``DLTensor``, with which a legacy ``DLManagedTensor`` begins."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("dtype", ctypes.c_uint8 * 4),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)

print(f"CuPy {cupy.__version__}")
x = cupy.ones(4, dtype="float32")[::-1]
capsule = x.__dlpack__()
stride = Tensor.from_address(pointer_of(capsule, b"dltensor")).strides[0]
print(f"the stride is {stride}, and should be {x.strides[0] // x.itemsize}")
sys.exit(int(stride != x.strides[0] // x.itemsize))
