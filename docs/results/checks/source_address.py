"""Does the address of an array decide how long a copy of its 4 MiB takes? No dlprof.

The array begins so many bytes behind a multiple of 2 MiB. All places take turns in one process, and
the copies go where each framework puts them. Run it three times: each process has its own heap.
"""

import statistics
import sys
import time
from importlib import import_module, metadata

import numpy

SIZE, HUGE = 4 << 20, 2 << 20
BEHIND = (0, 16, 64, 1024, 2048, 4032, 4096, 8192, 1 << 20)
TURNS, CALLS = 60, 5

room = numpy.ones(SIZE + 2 * HUGE, numpy.uint8)
start = -room.ctypes.data % HUGE


def placed(behind):
    begin = start + behind
    return room[begin : begin + SIZE].view(numpy.float32).reshape(1024, 1024)


def copies():
    """The copies of the frameworks that are installed."""
    yield "numpy.array(x)", numpy.array
    for name, copy in (
        ("torch", lambda torch: ("torch.tensor(x)", torch.tensor)),
        ("tensorflow", lambda tf: ("tf.constant(x)", tf.constant)),
        ("jax.numpy", lambda jnp: ("jnp.array(x)", lambda x: jnp.array(x).block_until_ready())),
    ):
        try:
            yield copy(import_module(name))
        except ImportError:
            continue


def timed_us(copy, x):
    found = []
    for _ in range(CALLS):
        begin = time.perf_counter_ns()
        result = copy(x)
        found.append(time.perf_counter_ns() - begin)
        del result
    return [taken / 1e3 for taken in found]


for name, copy in copies():
    arrays = {behind: placed(behind) for behind in BEHIND}
    found = {behind: [] for behind in BEHIND}
    for turn in range(TURNS):
        first = turn % len(BEHIND)
        for behind in (*BEHIND[first:], *BEHIND[:first]):
            found[behind] += timed_us(copy, arrays[behind])
    print(name)
    for behind, times in found.items():
        tenth = sorted(times)[len(times) // 10]
        print(
            f"  2 MiB k + {behind:7}: {statistics.median(times):4.0f} us, a tenth below {tenth:.0f}"
        )
print(
    sys.version.split()[0],
    *(
        f"{one.metadata['Name']} {one.version}"
        for one in metadata.distributions()
        if one.metadata["Name"] in ("numpy", "torch", "tensorflow", "tensorflow-cpu", "jax")
    ),
)
