# ruff: noqa: PLW0108 - each lambda is a line of the trace
"""Conversions of arrays on a CUDA device, each with an idle queue and behind queued work.

    python waits_on_device.py FILE

Writes the time of each, and of the queued work, by this file's own clock: the truth
for ``test_trace_on_device.py``. Each lambda stands on a line of its own.
"""

import inspect
import json
import statistics
import sys
import time
from pathlib import Path

import cupy
import jax
import jax.numpy as jnp
import numpy as np
import torch
from numba import cuda

CALLS = 5
QUEUED = 20
GIB = 1 << 30

t = torch.ones(1024, 1024, device="cuda")
c = cupy.ones((1024, 1024), "float32")
n = cuda.to_device(np.ones((1024, 1024), "float32"))
j = jnp.ones((1024, 1024), "float32")
wide = jnp.ones((8192, 8192), "float32")
host = np.ones((1024, 1024), "float32")
big = torch.empty(GIB, device="cuda")


@jax.jit
def slow(x):  # few and long kernels: the host queues each by itself
    for _ in range(10):
        x = jnp.tanh(x @ x)
    return x[:1024, :1024]


@jax.jit
def fast(x):
    return x + 1


def queue_on_stream():
    """Work on the default stream: PyTorch, CuPy and Numba share it."""
    for _ in range(QUEUED):
        big.fill_(1.0)


def from_jax(is_busy):
    """An array that has not been read on the host: JAX caches its host copy."""
    made = slow(wide) if is_busy else fast(j)
    if not is_busy:
        made.block_until_ready()
    return made


ON_STREAM = [
    lambda: t.cpu(),
    lambda: t.to("cpu"),
    lambda: torch.from_numpy(host).cuda(),
    lambda: torch.tensor(host, device="cuda"),
    lambda: torch.as_tensor(host, device="cuda"),
    lambda: torch.tensor(host),
    lambda: cupy.asnumpy(c),
    lambda: c.get(),
    lambda: cupy.asarray(host),
    lambda: n.copy_to_host(),
    lambda: cuda.to_device(host),
    lambda: cupy.asarray(t),
    lambda: cupy.from_dlpack(t),
    lambda: torch.as_tensor(c, device="cuda"),
    lambda: torch.from_dlpack(c),
    lambda: cuda.as_cuda_array(t),
    lambda: cuda.as_cuda_array(c),
    lambda: torch.as_tensor(n, device="cuda"),
    lambda: cupy.asarray(n),
    lambda: jnp.from_dlpack(t),
]
OF_JAX = [
    lambda y: np.asarray(y),
    lambda y: jax.device_get(y),
    lambda y: torch.from_dlpack(y),
    lambda y: cupy.from_dlpack(y),
    lambda y: cupy.asarray(y),
]


def seconds(call, *arguments):
    begin = time.perf_counter()
    call(*arguments)
    return time.perf_counter() - begin


def settle():
    torch.cuda.synchronize()
    cuda.synchronize()


def main():
    found = []
    settle()
    queue_on_stream()
    queued = seconds(torch.cuda.synchronize)
    for call in ON_STREAM:
        idle, busy = [], []
        call()
        for _ in range(CALLS):
            settle()
            idle.append(seconds(call))
            settle()
            queue_on_stream()
            busy.append(seconds(call))
        settle()
        found.append((call, idle, busy, queued))
    from_jax(True).block_until_ready()
    queued = seconds(lambda: from_jax(True).block_until_ready())
    for call in OF_JAX:
        idle, busy = [], []
        call(from_jax(False))
        for _ in range(CALLS):
            settle()
            idle.append(seconds(call, from_jax(False)))
            settle()
            busy.append(seconds(call, from_jax(True)))
        settle()
        found.append((call, idle, busy, queued))
    lines = [
        {
            "line": call.__code__.co_firstlineno,
            "text": inspect.getsource(call).strip().rstrip(","),
            "idle_s": statistics.median(idle),
            "busy_s": statistics.median(busy),
            "queued_s": queued,
            "waits": sum(one - statistics.median(idle) > queued / 2 for one in busy),
        }
        for call, idle, busy, queued in found
    ]
    Path(sys.argv[1]).write_text(json.dumps(lines, indent=1), encoding="utf-8")


main()
