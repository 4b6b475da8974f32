"""cupy#8801: ``cupy.from_dlpack`` kills the process if it does not know the dtype.

https://github.com/cupy/cupy/issues/8801
"""

import sys

import cupy
import torch

print(f"CuPy {cupy.__version__}, torch {torch.__version__}")
try:
    cupy.from_dlpack(torch.ones(4, dtype=torch.bfloat16, device="cuda"))
except (BufferError, NotImplementedError, RuntimeError, TypeError, ValueError) as refusal:
    print(f"{type(refusal).__name__}: {refusal}")
sys.exit(0)
