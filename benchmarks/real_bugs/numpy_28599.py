"""numpy/numpy#28599: the result of `numpy.from_dlpack` is read-only, whatever the source is."""

import sys

try:
    import numpy
except ImportError as error:
    print(error)
    sys.exit(2)

x = numpy.zeros(1)
try:
    x.__dlpack__(max_version=(1, 0))
except (AttributeError, TypeError) as error:
    print("no versioned DLPack, so nothing says that the source is writable:", error)
    sys.exit(2)
y = numpy.from_dlpack(x)
print("source writable", x.flags.writeable, "result writable", y.flags.writeable)
sys.exit(not y.flags.writeable)
