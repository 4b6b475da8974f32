"""pytorch#194877: ``torch.as_tensor`` of a CUDA array leaves Python objects behind at each call.

https://github.com/pytorch/pytorch/issues/194877
"""

import gc
import sys
from collections.abc import Callable

import cupy
import torch

CALLS = 200


def blocks_per_call(convert: Callable[[], object]) -> float:
    """Blocks of Python's memory that a call leaves behind."""
    for _ in range(CALLS):
        convert()
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(CALLS):
        convert()
    gc.collect()
    return (sys.getallocatedblocks() - before) / CALLS


print(f"torch {torch.__version__}, CuPy {cupy.__version__}")
x = cupy.ones(1024, dtype="float32")
left = blocks_per_call(lambda: torch.as_tensor(x, device="cuda"))
of_dlpack = blocks_per_call(lambda: torch.from_dlpack(x))
print(f"blocks left by a call: {left:.1f} by as_tensor, {of_dlpack:.1f} by from_dlpack")
sys.exit(2 if of_dlpack > 0.5 else int(left > 0.5))
