"""The changes of docs/results/atlas.md that concern torch, by hand, without dlprof.

``python atlas_torch_changes.py`` prints a line for each question. A write to the source shows if
the result is a view. What may end the process is asked in a child.
"""

import os
import signal
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import torch

warnings.simplefilter("ignore")
print("numpy", np.__version__, "torch", torch.__version__.partition("+")[0], "jax", jax.__version__)


def pointer(array):
    """The address of the first element."""
    if isinstance(array, torch.Tensor):
        return array.data_ptr()
    if isinstance(array, np.ndarray):
        return array.ctypes.data
    return array.unsafe_buffer_pointer()


def word(convert, source):
    """``view``, ``copy``, or the error."""
    try:
        result = convert(source)
    except Exception as error:  # any framework's own
        return f"refused ({type(error).__name__})"
    return "view" if pointer(result) == pointer(source) else "copy"


def in_child(convert, source):
    """As :func:`word`, or ``crash``."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        signal.alarm(20)
        os.write(write, word(convert, source).encode())
        os._exit(0)
    os.close(write)
    _, status = os.waitpid(child, 0)
    return os.read(read, 100).decode() if status == 0 else "crash"


def tensor(offset=0, dtype=torch.float32):
    """A tensor of 6x10 that begins ``offset`` elements behind a multiple of 64 bytes."""
    memory = torch.zeros(4096, dtype=torch.float32)
    begin = -memory.data_ptr() % 64 // 4 + offset
    found = memory[begin : begin + 60].view(6, 10)
    return found if dtype == found.dtype else found.to(dtype)


FLOAT8 = torch.float8_e4m3fn
ways = [
    ("numpy torch.from_dlpack(x)", torch.from_dlpack, np.zeros((6, 10), "float32")),
    (
        "numpy torch.from_dlpack(x, copy=True)",
        lambda x: torch.from_dlpack(x, copy=True),
        np.zeros((6, 10), "float32"),
    ),
    (
        "numpy torch.from_dlpack(x, copy=False)",
        lambda x: torch.from_dlpack(x, copy=False),
        np.zeros((6, 10), "float32"),
    ),
    ("numpy reversed torch.from_dlpack(x)", torch.from_dlpack, np.zeros((6, 10), "f4")[::-1]),
    (
        "numpy reversed torch.from_dlpack(x, copy=True)",
        lambda x: torch.from_dlpack(x, copy=True),
        np.zeros((6, 10), "f4")[::-1],
    ),
    ("torch numpy.from_dlpack(x)", np.from_dlpack, tensor()),
    ("torch numpy.from_dlpack(x, copy=True)", lambda x: np.from_dlpack(x, copy=True), tensor()),
    ("torch numpy.from_dlpack(x, copy=False)", lambda x: np.from_dlpack(x, copy=False), tensor()),
    ("torch numpy.array(x, copy=False)", lambda x: np.array(x, copy=False), tensor()),
    ("torch numpy.asarray(x, copy=True)", lambda x: np.asarray(x, copy=True), tensor()),
    ("torch torch.from_dlpack(x, copy=True)", lambda x: torch.from_dlpack(x, copy=True), tensor()),
    (
        "torch torch.from_dlpack(x, copy=False)",
        lambda x: torch.from_dlpack(x, copy=False),
        tensor(),
    ),
    ("torch torch.from_dlpack(x) float8", torch.from_dlpack, tensor(dtype=FLOAT8)),
    ("torch jax.dlpack.from_dlpack(x) float8", jax.dlpack.from_dlpack, tensor(dtype=FLOAT8)),
    ("torch jax.device_put(x.numpy())", lambda x: jax.device_put(x.numpy()), tensor()),
    (
        "torch jax.device_put(x.numpy(), may_alias=False)",
        lambda x: jax.device_put(x.numpy(), may_alias=False),
        tensor(),
    ),
    (
        "jax torch.from_dlpack(jax.dlpack.to_dlpack(x))",
        lambda x: torch.from_dlpack(jax.dlpack.to_dlpack(x)),
        jnp.zeros((6, 10)),
    ),
    ("jax torch.from_dlpack(x)", torch.from_dlpack, jnp.zeros((6, 10))),
    (
        "jax jax.dlpack.from_dlpack(x, copy=True)",
        lambda x: jax.dlpack.from_dlpack(x, copy=True),
        jnp.zeros((6, 10)),
    ),
    (
        "jax jax.dlpack.from_dlpack(jax.dlpack.to_dlpack(x))",
        lambda x: jax.dlpack.from_dlpack(jax.dlpack.to_dlpack(x)),
        jnp.zeros((6, 10)),
    ),
    ("jax jnp.asarray(numpy.asarray(x))", lambda x: jnp.asarray(np.asarray(x)), jnp.zeros((6, 10))),
]
for name, convert, source in ways:
    ask = in_child if "reversed" in name else word
    print(f"{name}: {ask(convert, source)}")

for name, convert in (
    ("jax.dlpack.from_dlpack(x)", jax.dlpack.from_dlpack),
    ("jax.dlpack.from_dlpack(x, copy=True)", lambda x: jax.dlpack.from_dlpack(x, copy=True)),
    ("jax.dlpack.from_dlpack(x, copy=False)", lambda x: jax.dlpack.from_dlpack(x, copy=False)),
    (
        "jax.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(x))",
        lambda x: jax.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(x)),
    ),
    ("jnp.asarray(x.numpy())", lambda x: jnp.asarray(x.numpy())),
):
    print(f"torch {name}: aligned {word(convert, tensor())}, off {word(convert, tensor(1))}")
