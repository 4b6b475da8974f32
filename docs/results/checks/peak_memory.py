"""How much memory does a conversion into JAX need at its peak, by where its source begins? No dlprof.

Each line is a process of its own: it asks the kernel for a new high-water mark of its memory,
converts an array of 40 MiB once, and reads the mark. Linux only.
"""

import subprocess
import sys

ONE = """
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy

ELEMENTS = 10 << 20
BYTES = 4 * ELEMENTS


def status(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def source(begins):
    if begins == "numpy.ones(n)":
        return numpy.ones(ELEMENTS, "float32")
    memory = numpy.zeros(BYTES + 128, "uint8")
    start = -memory.ctypes.data % 64 + int(begins)
    x = memory[start : start + BYTES].view("float32")
    x[:] = 1
    return x


x = source(sys.argv[2])
convert = eval("lambda x: " + sys.argv[1])
convert(numpy.ones(100, "float32")).block_until_ready()
Path("/proc/self/clear_refs").write_text("5")
before = status("VmRSS")
y = convert(x)
y.block_until_ready()
peak = (status("VmHWM") - before) / BYTES
kind = "view" if y.unsafe_buffer_pointer() == x.ctypes.data else "copy"
print(f"{kind} at {x.ctypes.data % 64:2} mod 64: peak of {peak:.2f} arrays beside the source")
"""
WAYS = (
    "jnp.asarray(x)",
    "jnp.asarray(x, copy=True)",
    "jnp.asarray(x, copy=False)",
    "jnp.array(x)",
    "jnp.array(x, copy=False)",
    "jnp.frombuffer(x, dtype='float32')",
    "jnp.from_dlpack(x, copy=True)",
    "jax.device_put(x)",
)
BEGINS = ("0", "16", "4", "numpy.ones(n)")

for way in WAYS:
    for begins in BEGINS:
        done = subprocess.run(
            [sys.executable, "-c", ONE, way, begins], capture_output=True, text=True, check=True
        )
        print(f"{way:34} {done.stdout.strip()}{'' if begins.isdigit() else f' ({begins})'}")
versions = "import sys, numpy, jax; print(sys.version.split()[0], 'numpy', numpy.__version__, 'jax', jax.__version__)"
subprocess.run([sys.executable, "-c", versions], check=True)
