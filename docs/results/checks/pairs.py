"""Check by hand what dlprof finds in six pairs on the CPU; needs no dlprof.

For each conversion: does the result lie where the source does, what does a call take (median of
repeats of ``timeit``), and, for JAX, what share of a queued job of 200 ms does a call take behind it.
"""

import platform
import statistics
import sys
import time
import timeit
from importlib.metadata import version

import jax
import jax.numpy as jnp
import numpy
import torch

N = 1024 * 1024


def made(offset):
    """A megapixel of float32 whose first element lies ``offset`` bytes off a 128-byte boundary."""
    memory = numpy.zeros(4 * N + 256, "uint8")
    start = -memory.ctypes.data % 128 + offset
    return memory[start : start + 4 * N].view("float32").reshape(1024, 1024)


def address(array):
    if isinstance(array, jax.Array):
        return array.block_until_ready().unsafe_buffer_pointer()
    return array.data_ptr() if isinstance(array, torch.Tensor) else array.ctypes.data


def ready(array):
    return array.block_until_ready() if isinstance(array, jax.Array) else array


def show(title, codes, x, job=None):
    print(f"\n{title}")
    names = {"jax": jax, "jnp": jnp, "numpy": numpy, "torch": torch, "x": x, "ready": ready}
    for code in codes:
        try:
            where = "view" if address(eval(code, names)) == address(x) else "copy"
        except Exception as refusal:
            print(f"  {code:50} refused: {str(refusal).splitlines()[0][:60]}")
            continue
        timer = timeit.Timer(f"ready({code})", globals=names)
        loops = max(1, timer.autorange()[0] // 4)
        each = statistics.median(timer.repeat(7, loops)) / loops
        share = f"  {behind(code, names, job):5.2f} of a queued job" if job else ""
        print(f"  {code:50} {where}  {each * 1e6:9.2f} us{share}")


def behind(code, names, job):
    call = eval(f"lambda x: {code}", names)
    shares = []
    for _ in range(3):
        begun = time.perf_counter()
        job().block_until_ready()
        whole = time.perf_counter() - begun
        queued = job()
        begun = time.perf_counter()
        call(queued)
        shares.append((time.perf_counter() - begun) / whole)
        queued.block_until_ready()
    return statistics.median(shares)


def job_of(x):
    """A job of about 200 ms that ends with an array like ``x``."""

    @jax.jit
    def run(x, turns):
        busy = jax.lax.fori_loop(0, turns, lambda _, z: jnp.sin(z) + 0.5, jnp.arange(4096.0))
        return x + busy[0] * 0

    turns, took = 1, 0.0
    run(x, 1).block_until_ready()
    while took < 0.2:
        turns *= 2
        begun = time.perf_counter()
        run(x, turns).block_until_ready()
        took = time.perf_counter() - begun
    return lambda: run(x, round(turns * 0.2 / took))


INTO_JAX = (
    "jax.dlpack.from_dlpack(x)",
    "jax.dlpack.from_dlpack(x, copy=True)",
    "jnp.from_dlpack(x, copy=True)",
    "jnp.asarray(x)",
    "jnp.asarray(x, copy=True)",
    "jnp.asarray(x, copy=False)",
)
FROM_NUMPY = (
    "jax.device_put(x)",
    "jax.device_put(x, may_alias=True)",
    "jax.device_put(x, may_alias=False)",
)
INTO_NUMPY = (
    "numpy.asarray(x)",
    "numpy.asarray(x, copy=False)",
    "numpy.from_dlpack(x)",
    "numpy.from_dlpack(x, copy=False)",
    "numpy.from_dlpack(x, device='cpu')",
    "jax.device_get(x)",
    "numpy.array(x)",
    "numpy.from_dlpack(x, copy=True)",
)

source = jnp.asarray(made(0), copy=True)
show("jax to numpy", INTO_NUMPY, source, job_of(source))
show("numpy to jax, 128-byte boundary", (*INTO_JAX, *FROM_NUMPY), made(0))
show("numpy to jax, 16 bytes off it", (*INTO_JAX, *FROM_NUMPY), made(16))
show(
    "torch to jax",
    (*INTO_JAX, "jax.device_put(x.numpy(), may_alias=False)"),
    torch.ones(1024, 1024),
)
show(
    "torch to torch",
    (
        "torch.asarray(x)",
        "torch.from_dlpack(x)",
        "torch.as_tensor(x.numpy())",
        "torch.tensor(x.numpy())",
    ),
    torch.ones(1024, 1024),
)
print(
    "\n"
    + " ".join(
        [platform.python_version(), *(f"{n} {version(n)}" for n in ("numpy", "torch", "jax"))]
    )
)
sys.exit(0)
