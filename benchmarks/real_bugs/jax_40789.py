"""jax-ml/jax#40789: `jnp.from_dlpack` refuses a read-only NumPy array, which can be exported.

JAX calls `__dlpack__` without `max_version`, so NumPy cannot mark the export as read-only.
"""

import sys

try:
    import jax.numpy as jnp
    import numpy
except ImportError as error:
    print(error)
    sys.exit(2)

x = numpy.arange(3.0)
x.flags.writeable = False
try:
    x.__dlpack__(max_version=(1, 0))
except (TypeError, BufferError) as error:
    print("this NumPy cannot export a read-only array:", error)
    sys.exit(2)
try:
    y = jnp.from_dlpack(x)
except BufferError as error:
    print("refused:", error)
    sys.exit(1)
print("result", y)
sys.exit(0)
