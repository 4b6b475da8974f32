"""cupy#7820: on a stream of its own, ``x.get(out=…)`` returns before the copy is done.

https://github.com/cupy/cupy/issues/7820
"""

import sys

import cupy
import cupyx
import numpy

print(f"CuPy {cupy.__version__}")
sleep = cupy.RawKernel('extern "C" __global__ void s(long n) {while (n--) __nanosleep(1000);}', "s")
x = cupy.asarray(numpy.ones(1 << 18, "float32"))
out = cupyx.empty_pinned(x.shape, "float32")
with cupy.cuda.Stream(non_blocking=True) as stream:
    x.get(out=out)  # the first use compiles
    stream.synchronize()
    out[:] = 0
    sleep((1,), (1,), (200_000,))
    x.get(out=out)
    seen = out.copy()
    stream.synchronize()
print(f"read after the call: {seen[0]}, and at the end: {out[0]}")
sys.exit(int(bool((seen != out).any())))
