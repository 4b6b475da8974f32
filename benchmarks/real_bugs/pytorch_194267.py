"""pytorch/pytorch#194267: a copy that `copy=False` forbids raises ValueError, not BufferError.

The array API standard asks for BufferError. A tensor on the host is asked for on a CUDA device,
which needs no such device: the refusal comes first.
"""

import sys

try:
    import torch
except ImportError as error:
    print(error)
    sys.exit(2)

CUDA = 2
try:
    torch.ones(3).__dlpack__(dl_device=(CUDA, 0), copy=False)
except TypeError as error:
    print("no copy=False here:", error)
    sys.exit(2)
except BufferError as error:
    print("BufferError:", error)
    sys.exit(0)
except ValueError as error:
    print("ValueError:", error)
    sys.exit(1)
print("the tensor was exported without a copy to another device")
sys.exit(2)
