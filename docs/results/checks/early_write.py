"""Does a write to the source right after ``jnp.asarray(x)`` returned change the copy? No dlprof."""

import sys

import jax
import jax.numpy as jnp
import numpy

TRIES = 60
SIZES_MIB = (1, 16)
WAYS = {
    "jnp.array(x)": jnp.array,
    "jnp.array(x, copy=False)": lambda x: jnp.array(x, copy=False),
    "jnp.asarray(x)": jnp.asarray,
    "jnp.asarray(x, copy=True)": lambda x: jnp.asarray(x, copy=True),
    "jnp.asarray(x, copy=False)": lambda x: jnp.asarray(x, copy=False),
}


def torn(convert, mib):
    """Whether the copy holds what was written to the source after the call."""
    x = numpy.ones(mib << 18, dtype="float32")
    y = convert(x)
    x.fill(7)
    copied = y.unsafe_buffer_pointer() != x.ctypes.data
    return copied and bool((numpy.asarray(y) != 1).any())


for mib in SIZES_MIB:
    for name, convert in WAYS.items():
        changed = sum(torn(convert, mib) for _ in range(TRIES))
        print(f"{mib:2} MiB  {name:28} {changed:2} of {TRIES} copies changed")
print(sys.version.split()[0], "numpy", numpy.__version__, "jax", jax.__version__)
