"""The probes that come with dlprof, in the order of ``dlprof list``."""

from __future__ import annotations

from dlprof.probes.base import Probe
from dlprof.probes.cuda_core import CudaCore
from dlprof.probes.cupy import CuPy
from dlprof.probes.host import HOST
from dlprof.probes.jax import Jax
from dlprof.probes.list import List
from dlprof.probes.mlx import MLX
from dlprof.probes.mxnet import MXNet
from dlprof.probes.numba import Numba
from dlprof.probes.numpy import NumPy
from dlprof.probes.onnxruntime import OnnxRuntime
from dlprof.probes.polars import Polars
from dlprof.probes.pyarrow import PyArrow
from dlprof.probes.safetensors import Safetensors
from dlprof.probes.tensorflow import TensorFlow
from dlprof.probes.torch import Torch
from dlprof.probes.tvm_ffi import TvmFfi
from dlprof.probes.warp import Warp

BUILTIN: tuple[type[Probe], ...] = (
    NumPy,
    Torch,
    TensorFlow,
    Jax,
    CuPy,
    Numba,
    OnnxRuntime,
    MXNet,
    Safetensors,
    Warp,
    MLX,
    PyArrow,
    Polars,
    TvmFfi,
    CudaCore,
)

ALL: tuple[type[Probe], ...] = (*BUILTIN, *HOST, List)
"""The frameworks, and host memory and lists, which people load data into."""
