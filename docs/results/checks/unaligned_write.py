"""Is a copy that JAX makes of memory that is not aligned torn by a write after the call? No dlprof."""

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
    "numpy.ones(n)": lambda: numpy.ones(ELEMENTS, "float32"),
    "numpy.ones(n + 4)[4:]": lambda: numpy.ones(ELEMENTS + 4, "float32")[4:],
}
WAYS = {
    "jnp.array({})": jnp.array,
    "jnp.asarray({})": jnp.asarray,
    "jnp.asarray({}, copy=True)": lambda x: jnp.asarray(x, copy=True),
    "jax.device_put({})": jax.device_put,
    "jax.dlpack.from_dlpack({})": jax.dlpack.from_dlpack,
    "jnp.from_dlpack({})": jnp.from_dlpack,
    "jnp.from_dlpack({}, copy=True)": lambda x: jnp.from_dlpack(x, copy=True),
}


def tried(make, convert):
    """Whether the copy holds what was written to the source after the call, if it is one."""
    source = make()
    x = numpy.from_dlpack(source) if isinstance(source, torch.Tensor) else source
    given = source if convert in FROM_DLPACK else x
    y = convert(given)
    if isinstance(source, torch.Tensor):
        source.fill_(2)
    else:
        source.fill(2)
    where = f"at {x.ctypes.data % 64} mod 64"
    if y.unsafe_buffer_pointer() == x.ctypes.data:
        return f"view {where}"
    return f"{'torn' if (numpy.asarray(y) == 2).any() else 'whole'} {where}"


FROM_DLPACK = {convert for way, convert in WAYS.items() if "from_dlpack" in way}

for way, convert in WAYS.items():
    for source, make in SOURCES.items():
        seen = [tried(make, convert) for _ in range(TRIES)]
        counts = ", ".join(f"{seen.count(word)} {word}" for word in sorted(set(seen)))
        x = "x" if "torch" not in source or convert in FROM_DLPACK else "x.numpy()"
        print(f"{way.format(x):36} x = {source:22}: {counts}")
versions = ("numpy", numpy.__version__, "torch", torch.__version__, "jax", jax.__version__)
print(sys.version.split()[0], *versions)
