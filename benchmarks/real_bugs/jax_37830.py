"""jax-ml/jax#37830: `jax.device_put(x, may_alias=False)` shares the memory of a NumPy array."""

import sys

try:
    import jax
    import numpy
except ImportError as error:
    print(error)
    sys.exit(2)

memory = numpy.zeros(1024, numpy.uint8)
start = -memory.ctypes.data % 64
x = memory[start : start + 400].view(numpy.float32)
try:
    y = jax.device_put(x, may_alias=False)
except TypeError as error:
    print("no may_alias here:", error)
    sys.exit(2)
y.block_until_ready()
x[0] = 7
shown = float(y[0])
print("after x[0] = 7 the result has y[0] =", shown)
sys.exit(shown == 7)
