"""jax-ml/jax#17784: `from_dlpack` gives a transposed array with wrong values and raises nothing.

The array forgets the layout of the memory. Old versions still print the right values, so the
script computes with the result. A refusal counts as mended.
"""

import sys

try:
    import jax
    import jax.dlpack
    import numpy
except ImportError as error:
    print(error)
    sys.exit(2)


def transposed(dtype: str) -> numpy.ndarray:
    """A transposed 3x2 array whose memory begins at a multiple of 64 bytes."""
    memory = numpy.zeros(256, numpy.uint8)
    start = -memory.ctypes.data % 64
    size = 6 * numpy.dtype(dtype).itemsize
    x = memory[start : start + size].view(dtype).reshape(2, 3)
    x[...] = numpy.arange(6).reshape(2, 3)
    return x.T


wrong = False
for dtype in ("int32", "float32", "int64"):
    x = transposed(dtype)
    try:
        y = numpy.asarray(jax.dlpack.from_dlpack(x) + 0)
    except (RuntimeError, TypeError, ValueError) as error:
        print(dtype, "refused:", type(error).__name__, str(error)[:80])
        continue
    print(dtype, "source", x.tolist(), "result + 0", y.tolist())
    wrong |= y.tolist() != x.tolist()
sys.exit(wrong)
