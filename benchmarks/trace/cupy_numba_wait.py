"""CuPy and Numba on one device: a copy to the host that waits, and one that does not."""

import cupy
import numpy as np
from numba import cuda

x = cupy.zeros(1 << 20, "float32")
y = cupy.zeros(1 << 24, "float32")


def idle():
    cupy.cuda.Device().synchronize()
    return cupy.asnumpy(x)


def behind_a_queue():
    for _ in range(20):
        y[:] = 1.0
    return cupy.asnumpy(x)


def to_numba():
    return cuda.as_cuda_array(x)


for _ in range(10):
    idle()
    behind_a_queue()
    to_numba()
print(np.float32(0).dtype, x.shape)
