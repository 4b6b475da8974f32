"""Does a write to the source right after ``jnp.array(x)`` change the copy? Without dlprof."""

import sys

import jax
import jax.numpy as jnp
import numpy

TRIES = 60
torn = {"jnp.array": 0, "jnp.asarray": 0}
for name, convert in (("jnp.array", jnp.array), ("jnp.asarray", jnp.asarray)):
    for _ in range(TRIES):
        x = numpy.ones(4 << 20, dtype="float32")
        y = convert(x)
        x.fill(7)
        copied = y.unsafe_buffer_pointer() != x.ctypes.data
        torn[name] += copied and bool((numpy.asarray(y) != 1).any())
    print(f"{name}: {torn[name]} of {TRIES} copies changed")
print(sys.version.split()[0], "numpy", numpy.__version__, "jax", jax.__version__)
