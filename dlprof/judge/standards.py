"""The standards of a conversion, as Markdown links."""

from __future__ import annotations

ARRAY_API = "https://data-apis.org/array-api/latest/API_specification/generated/array_api"
DLPACK = "https://dmlc.github.io/dlpack/latest/python_spec.html"
C_API = "https://dmlc.github.io/dlpack/latest/c_api.html"
FROM_DLPACK = f"[array API standard, from_dlpack]({ARRAY_API}.from_dlpack.html)"
ASARRAY = f"[asarray]({ARRAY_API}.asarray.html)"
EXPORT = f"[array API standard, \\_\\_dlpack\\_\\_]({ARRAY_API}.array.__dlpack__.html)"

ZERO_COPY = f"DLPack exchange is zero-copy where possible ([DLPack, semantics]({DLPACK}))."
SAME_DATA = f"The result of from_dlpack holds the data of its source ({FROM_DLPACK})."
LIKE_OTHERS = (
    "“Both `x` and `y` may continue to be used just like arrays created in other ways”"
    f" ([DLPack, semantics]({DLPACK}))."
)
SAME_DEVICE = (
    "“If `device` is `None` and `x` supports DLPack, the output array must be on the same device as"
    f" `x`” ({FROM_DLPACK})."
)
SAME_ORDER = (
    "NumPy keeps the order by default: “F & C order preserved, otherwise most similar order”"
    " ([numpy.array](https://numpy.org/doc/stable/reference/generated/numpy.array.html))."
)
DELETER = (
    "The consumer calls the producer's deleter when it no longer needs the data, and not before"
    f" ([DLPack, implementation]({DLPACK}))."
)
READ_ONLY = f"DLPack 1.0 has the flag `DLPACK_FLAG_BITMASK_READ_ONLY` ([DLPack, C API]({C_API}))."
JAX = "https://docs.jax.dev/en/latest/_autosummary"
QUOTES = {
    ("DLP011", "cuda-array-interface"): "The specification leaves it to the user: “The User code"
    " must preserve the lifetime of the object owning the data” ([CUDA Array Interface, lifetime"
    " management](https://nvidia.github.io/numba-cuda/user/cuda_array_interface.html)).",
    ("DLP018", "jax from_dlpack_copy"): "JAX says: “If copy=True then a copy is always performed”"
    f" ([from_dlpack]({JAX}/jax.dlpack.from_dlpack.html)).",
    ("DLP018", "jax device_put_copy"): "JAX says: “If False, `x` will be copied.”"
    f" ([device_put]({JAX}/jax.device_put.html)).",
    ("DLP018", "jax asarray_nocopy"): "JAX says: “If False, then error if a copy is necessary.”"
    f" ([asarray]({JAX}/jax.numpy.asarray.html)).",
    ("DLP018", "torch asarray_copy"): "PyTorch says: “If [...] a copy is requested then it will not"
    " share its memory with `obj`.”"
    " ([asarray](https://docs.pytorch.org/docs/stable/generated/torch.asarray.html)).",
    ("DLP020", "jax"): "JAX says about `device_put`: “This function is always asynchronous, i.e."
    " returns immediately without blocking the calling Python thread until any transfers are"
    f" completed” ([device_put]({JAX}/jax.device_put.html)). It does not forbid writes to the"
    " source.",
    ("DLP029", "jax"): "“If a jax Array is constructed from a dlpack buffer and the buffer is later"
    " modified in-place, it may lead to undefined behavior”"
    f" ([from_dlpack]({JAX}/jax.dlpack.from_dlpack.html)).",
}
"""By rule, and by protocol, consumer or import: what a document says about such a call."""
COPY = (
    f"With `copy=True`, the function must always copy. With `copy=False`, it must raise"
    f" `BufferError` or `ValueError` if it would have to copy ({FROM_DLPACK}; {ASARRAY})."
)
