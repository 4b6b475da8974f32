"""Each change of docs/results/atlas.md by hand, without dlprof: ``python atlas_changes.py``.

A write to the source shows if the result is a view. It prints one line for each question.
"""

import warnings

import jax
import jax.numpy as jnp
import numpy as np

warnings.simplefilter("ignore")
print("numpy", np.__version__, "jax", jax.__version__)


def at(offset):
    """An array of 6x10 float32 that begins ``offset`` bytes behind a multiple of 64."""
    memory = np.zeros(4096 + 128, "uint8")
    begin = -memory.ctypes.data % 64 + offset
    array = memory[begin : begin + 240].view("float32").reshape(6, 10)
    array[...] = np.arange(60).reshape(6, 10)
    return array


def word(convert, source):
    """``view``, ``copy``, or the error."""
    try:
        result = convert(source)
        before = np.array(result, copy=True)
    except Exception as error:  # any framework's own
        return f"refused ({type(error).__name__})"
    source[0, 0] += 1
    return "view" if np.array(result, copy=True)[0, 0] != before[0, 0] else "copy"


TO_JAX = {
    "jax.dlpack.from_dlpack(x)": jax.dlpack.from_dlpack,
    "jax.dlpack.from_dlpack(x, copy=True)": lambda x: jax.dlpack.from_dlpack(x, copy=True),
    "jax.dlpack.from_dlpack(x, copy=False)": lambda x: jax.dlpack.from_dlpack(x, copy=False),
    "jnp.asarray(x)": jnp.asarray,
    "jnp.array(x, copy=False)": lambda x: jnp.array(x, copy=False),
    "jax.device_put(x, may_alias=False)": lambda x: jax.device_put(x, may_alias=False),
    "jax.device_put(x, may_alias=True)": lambda x: jax.device_put(x, may_alias=True),
}
for name, convert in TO_JAX.items():
    print(f"{name}: aligned {word(convert, at(0))}, sliced {word(convert, at(4))}")

columns = at(0).reshape(-1).reshape((6, 10), order="F")
try:
    result = jax.dlpack.from_dlpack(columns)
    for name, values in (("y", np.asarray(result)), ("y.copy()", np.asarray(result.copy()))):
        same = "right" if (values == columns).all() else "wrong"
        print(f"y = jax.dlpack.from_dlpack(x), F order: {name} is {same}")
except Exception as error:
    print("jax.dlpack.from_dlpack(x), F order:", type(error).__name__)

source = jnp.arange(60, dtype="float32")
for copy in (True, False):
    try:
        found = np.from_dlpack(source, copy=copy)
        same = found.ctypes.data == source.unsafe_buffer_pointer()
        print(f"numpy.from_dlpack(x, copy={copy}):", "view" if same else "copy")
    except Exception as error:
        print(f"numpy.from_dlpack(x, copy={copy}): refused ({type(error).__name__})")
try:
    found = np.asarray(source, copy=False)
    same = found.ctypes.data == source.unsafe_buffer_pointer()
    print("numpy.asarray(x, copy=False):", "view" if same else "copy")
except Exception as error:
    print("numpy.asarray(x, copy=False): refused", type(error).__name__)

try:
    import torch

    def old(x):
        return jax.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(torch.from_numpy(x)))

    print("torch capsule into jax.dlpack.from_dlpack:", word(old, at(0)))
    for copy in (None, True, False):

        def ask(x, copy=copy):
            return jax.dlpack.from_dlpack(torch.from_numpy(x), copy=copy)

        words = f"aligned {word(ask, at(0))}, sliced {word(ask, at(4))}"
        print(f"torch into jax.dlpack.from_dlpack, copy={copy}: {words}")
except ImportError:
    pass
