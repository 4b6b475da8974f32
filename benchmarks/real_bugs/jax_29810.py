"""jax-ml/jax#29810: `jnp.from_dlpack(x, copy=False)` copies if x is not 64-byte aligned."""

import sys

try:
    import jax.numpy as jnp
    import numpy
except ImportError as error:
    print(error)
    sys.exit(2)

memory = numpy.zeros(256, numpy.uint8)
start = -memory.ctypes.data % 64 + 16
x = memory[start : start + 40].view(numpy.float32)
try:
    y = jnp.from_dlpack(x, copy=False)
except TypeError as error:
    print("no copy=False here:", error)
    sys.exit(2)
except ValueError as error:  # what jax raises; the standard asks for BufferError
    print("refused:", error)
    sys.exit(0)
address = y.unsafe_buffer_pointer()
print(f"source at {x.ctypes.data:#x}, result at {address:#x}")
sys.exit(address != x.ctypes.data)
