"""pytorch/pytorch#197532: `torch.asarray` asks the buffer protocol before `__dlpack__`.

So an int32 array of JAX, which has both, becomes a flat float32 tensor with other values. An
array that has only `__dlpack__` is refused with copy=False, although DLPack gives a view.
"""

import sys

try:
    import torch
except ImportError as error:
    print(error)
    sys.exit(2)


class OnlyDLPack:
    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor

    def __dlpack__(self, **options: object) -> object:
        return self.tensor.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.tensor.__dlpack_device__()


broken = False
try:
    y = torch.asarray(OnlyDLPack(torch.ones(3)), copy=False)
    print("only __dlpack__, copy=False:", y)
except ValueError as error:
    print("only __dlpack__, copy=False: refused:", error)
    broken = True
try:
    import jax.numpy as jnp
except ImportError:
    pass
else:
    x = jnp.arange(6, dtype="int32").reshape(2, 3)
    y = torch.asarray(x)
    print("jax int32 (2, 3):", y.dtype, tuple(y.shape), y.flatten()[:3].tolist())
    broken |= y.dtype != torch.int32 or tuple(y.shape) != (2, 3)
sys.exit(broken)
