"""Is a copy that JAX makes of PyTorch's memory torn if that memory is not aligned? No dlprof."""

import sys

import jax
import jax.numpy as jnp
import numpy
import torch

TRIES = 20
ELEMENTS = 4 << 20
SOURCES = {
    "torch.zeros(n)": lambda: torch.zeros(ELEMENTS),
    "torch.zeros(n + 1)[1:]": lambda: torch.zeros(ELEMENTS + 1)[1:],
}
WAYS = {
    "jnp.array(x.numpy())": lambda x: jnp.array(x.numpy()),
    "jnp.asarray(x.numpy())": lambda x: jnp.asarray(x.numpy()),
    "jnp.asarray(x.numpy(), copy=True)": lambda x: jnp.asarray(x.numpy(), copy=True),
}


def torn(make, convert):
    """Whether the copy holds what was written to the source after the call."""
    x = make()
    y = convert(x)
    x.fill_(1)
    copied = y.unsafe_buffer_pointer() != x.data_ptr()
    return copied and bool((numpy.asarray(y) != 0).any())


for way, convert in WAYS.items():
    for source, make in SOURCES.items():
        changed = sum(torn(make, convert) for _ in range(TRIES))
        print(f"{way:34} {source:24} {changed:2} of {TRIES} copies changed")
versions = ("numpy", numpy.__version__, "torch", torch.__version__, "jax", jax.__version__)
print(sys.version.split()[0], *versions)
