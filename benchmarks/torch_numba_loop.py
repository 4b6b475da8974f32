"""Measure the host time of a torch tensor passed to a Numba kernel in a loop (simulated device).

    torch_numba_loop.py PYTHON

PYTHON is an interpreter that has torch's CUDA build and Numba. Kernels take 1 µs there, so a loop
never waits for them. Each time is the smallest of nine loops of 300 calls.
"""

import os
import subprocess
import sys

from dlprof.simulated.environment import on_simulated_device, variables

PROGRAM = """
import time
import numpy, torch
from importlib.metadata import version
from numba import cuda
print("torch", torch.__version__, "numba-cuda", version("numba-cuda"))

@cuda.jit
def kernel(a):
    a[0] = 1

x = torch.from_numpy(numpy.arange(65536, dtype="float32")).cuda()
array = cuda.as_cuda_array(x)
launch = kernel[32, 256]
calls = {
    "launch(x)": lambda: launch(x),
    "launch(cuda.as_cuda_array(x))": lambda: launch(cuda.as_cuda_array(x)),
    "launch(array), converted before the loop": lambda: launch(array),
    "cuda.as_cuda_array(x)": lambda: cuda.as_cuda_array(x),
    "cuda.as_cuda_array(x, sync=False)": lambda: cuda.as_cuda_array(x, sync=False),
}
for name, call in calls.items():
    times = []
    for _ in range(9):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(300):
            call()
        times.append((time.perf_counter() - begin) / 300)
    print(f"{name:42} {min(times) * 1e6:6.1f} us")
"""


def main() -> int:
    python = sys.argv[1]
    asked = {**os.environ, **variables(1), "DLPROF_SIMULATED_KERNEL_NS": "1000"}
    environment = on_simulated_device(asked, python)
    command = [python, "-W", "ignore", "-c", PROGRAM]
    return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
