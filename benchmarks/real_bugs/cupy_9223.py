"""cupy#9223: a kernel of Numba does not take a CuPy array.

https://github.com/cupy/cupy/issues/9223
"""

import sys

import cupy
from numba import cuda

print(f"CuPy {cupy.__version__}")


@cuda.jit
def kernel(x: object) -> None:
    pass


try:
    kernel[1, 1](cupy.ones(4))
except RuntimeError as refusal:
    print(refusal)
    sys.exit(1)
