"""microsoft/onnxruntime#24071: `numpy.asarray` of an OrtValue is an object array of no dimension.

OrtValue has neither `__array__` nor `__dlpack__`, and `numpy.asarray` accepts any object.
"""

import sys

try:
    import numpy
    import onnxruntime
except ImportError as error:
    print(error)
    sys.exit(2)

x = numpy.ones((2, 3), numpy.float32)
y = onnxruntime.OrtValue.ortvalue_from_numpy(x)
result = numpy.asarray(y)
print("numpy.asarray:", result.dtype, result.shape)
broken = result.dtype != x.dtype or result.shape != x.shape
try:
    result = numpy.from_dlpack(y)
    print("numpy.from_dlpack:", result.dtype, result.shape)
except AttributeError as error:
    print("numpy.from_dlpack:", error)
    broken = True
sys.exit(broken)
