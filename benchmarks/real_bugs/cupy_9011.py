"""cupy#9011: ``x.toDlpack()`` gives a versioned capsule, which consumers of legacy ones refuse.

https://github.com/cupy/cupy/pull/9011
"""

import sys

import cupy

print(f"CuPy {cupy.__version__}")
capsule = cupy.ones(4).toDlpack()
print(capsule)
sys.exit(int("dltensor_versioned" in repr(capsule)))
