"""Documented copies that are views, and documented views that copy; without dlprof.

Each check prints what the documentation says and what a write shows. Needs numpy, torch, jax and
onnxruntime; runs on the CPU.
"""

import ctypes
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy
import onnxruntime
import torch


def aligned(length: int) -> numpy.ndarray:
    """float32 numbers at a 64-byte boundary: JAX copies anything else."""
    memory = numpy.zeros(4 * length + 64, dtype="uint8")
    start = -memory.ctypes.data % 64
    return memory[start : start + 4 * length].view("float32")


def shows_a_write(source: numpy.ndarray, result_address: int) -> bool:
    """Whether a write into the source appears at the result's address."""
    source[0] = 77.0
    return ctypes.c_float.from_address(result_address).value == 77.0


def report(what: str, documented: str, is_view: bool) -> None:
    print(f"{what:62} documented: {documented:5} is a {'view' if is_view else 'copy'}")


x = aligned(1 << 20)
y = jax.dlpack.from_dlpack(x, copy=True)
report(
    "jax.dlpack.from_dlpack(numpy, copy=True)", "copy", shows_a_write(x, y.unsafe_buffer_pointer())
)

t = torch.zeros(1 << 20)
y = jax.dlpack.from_dlpack(t, copy=True)
report(
    "jax.dlpack.from_dlpack(torch, copy=True)",
    "copy",
    shows_a_write(t.numpy(), y.unsafe_buffer_pointer()),
)

x = aligned(1 << 20)
y = jax.device_put(x, may_alias=False)
report(
    "jax.device_put(numpy, may_alias=False)", "copy", shows_a_write(x, y.unsafe_buffer_pointer())
)

x = aligned(1 << 20)
y = jnp.asarray(x, copy=False).block_until_ready()
report("jnp.asarray(numpy, copy=False)", "view", shows_a_write(x, y.unsafe_buffer_pointer()))

x = aligned(1 << 20)
value = onnxruntime.OrtValue.ortvalue_from_numpy(x)
y = torch.asarray(value, copy=True)
report("torch.asarray(OrtValue, copy=True)", "copy", shows_a_write(x, y.data_ptr()))

x = aligned(1 << 20)
x.flags.writeable = False
value = onnxruntime.OrtValue.ortvalue_from_numpy(x)
print(
    f"OrtValue.ortvalue_from_numpy(read-only).numpy() is writable: {value.numpy().flags.writeable}"
)

print(
    "torch.asarray(jax array of shape (4, 8)).shape:", tuple(torch.asarray(jnp.ones((4, 8))).shape)
)
print(
    "torch.asarray(memoryview of shape (4, 8)).shape:",
    tuple(torch.asarray(memoryview(numpy.ones((4, 8), dtype="float32"))).shape),
)

crash = "import numpy, torch; torch.from_dlpack(numpy.arange(8.0)[::-1])"
ended = subprocess.run([sys.executable, "-c", crash], capture_output=True, text=True, check=False)
print(
    "torch.from_dlpack(numpy with a negative stride) ends with",
    ended.returncode,
    (ended.stderr.strip().splitlines() or [""])[-1][:120],
)

print(
    sys.version.split()[0],
    *(f"{m.__name__} {m.__version__}" for m in (numpy, torch, jax, onnxruntime)),
)
