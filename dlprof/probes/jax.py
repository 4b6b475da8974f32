"""JAX: immutable arrays on the host and on CUDA devices; everything is asynchronous."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dlprof.probes.base import (
    ANY_DEVICE,
    ARRAY,
    BITS,
    BUFFER,
    CAPSULE,
    CPU,
    CUDA,
    CUDA_ARRAY,
    DLPACK,
    LIST,
    NATIVE,
    NUMPY,
    ArraySpec,
    Export,
    Import,
    Probe,
    copies,
    corners,
    flat,
    numbers,
    views,
    without_strides,
)


class Jax(Probe):
    name = "jax"
    module = "jax"
    distributions = ("jax",)
    also = ("jaxlib",)
    setup = "import jax\nimport jax.numpy as jnp\nimport numpy"
    variables = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    devices = ANY_DEVICE
    immutable = True
    missing = without_strides(
        "jax has no strided arrays", readonly="jax arrays are never writable; use layout C"
    )
    settings = {
        "64-bit flag": "jax.config.jax_enable_x64",
        "default device": "jax.config.jax_default_device",
        "NaN checks": "jax.config.jax_debug_nans",
    }
    narrows = {
        "int64": "int32",
        "uint64": "uint32",
        "float64": "float32",
        "complex128": "complex64",
    }
    narrows_why = "JAX keeps 64-bit dtypes after jax.config.update('jax_enable_x64', True)."
    array_type = "jax._src.array.ArrayImpl"
    exports = (
        Export("dlpack", DLPACK, "{x}"),
        Export("to_dlpack", CAPSULE, "jax.dlpack.to_dlpack({x})"),
        Export("dlpack_capsule", CAPSULE, "{x}.__dlpack__()"),
        Export("array", ARRAY, "{x}"),
        Export("asarray", NUMPY, "numpy.asarray({x})"),
        Export("asarray_copy", NUMPY, "numpy.array({x})", promise="copy"),
        Export("device_get", NUMPY, "jax.device_get({x})"),
        Export("cuda_array", CUDA_ARRAY, "{x}", CUDA),
        Export("itself", NATIVE, "{x}"),
    )
    imports = (
        Import("from_dlpack", (DLPACK, CAPSULE), "jax.dlpack.from_dlpack({x})"),
        copies("from_dlpack_copy", (DLPACK,), "jax.dlpack.from_dlpack({x}, copy=True)"),
        views("from_dlpack_nocopy", (DLPACK,), "jax.dlpack.from_dlpack({x}, copy=False)"),
        copies(
            "from_dlpack_to_cpu",
            (DLPACK,),
            "jax.dlpack.from_dlpack({x}, device=jax.devices('cpu')[0])",
            CUDA,
            result_device="cpu",
        ),
        Import("numpy_from_dlpack", (DLPACK, CAPSULE), "jnp.from_dlpack({x})"),
        copies("numpy_from_dlpack_copy", (DLPACK,), "jnp.from_dlpack({x}, copy=True)"),
        views("numpy_from_dlpack_nocopy", (DLPACK,), "jnp.from_dlpack({x}, copy=False)"),
        Import("asarray", (ARRAY, CUDA_ARRAY, NUMPY), "jnp.asarray({x})"),
        views("asarray_nocopy", (ARRAY, CUDA_ARRAY, NUMPY), "jnp.asarray({x}, copy=False)"),
        copies("asarray_copy", (ARRAY, CUDA_ARRAY, NUMPY), "jnp.asarray({x}, copy=True)"),
        copies("array", (ARRAY, CUDA_ARRAY, NUMPY), "jnp.array({x})"),
        Import("array_nocopy", (ARRAY, CUDA_ARRAY, NUMPY), "jnp.array({x}, copy=False)"),
        copies("asarray_list", (NATIVE,), "jnp.asarray({x})", producers=LIST),
        copies("array_list", (NATIVE,), "jnp.array({x})", producers=LIST),
        copies("array_first", (NATIVE,), "jnp.asarray(numpy.array({x}))", producers=LIST),
        copies("stack", (NATIVE,), "jnp.stack({x})", producers=LIST),
        Import("polars_to_jax", (NATIVE,), "{x}.to_jax()", CPU, producers=("polars",)),
        views("warp_to_jax", (NATIVE,), "warp.to_jax({x})", CPU, producers=("warp",)),
        Import("frombuffer", (BUFFER,), "jnp.frombuffer({x}, dtype='{dtype}').reshape({shape})"),
        Import("device_put", (NUMPY,), "jax.device_put({x})"),
        copies("device_put_copy", (NUMPY,), "jax.device_put({x}, may_alias=False)"),
        Import("device_put_alias", (NUMPY,), "jax.device_put({x}, may_alias=True)"),
    )

    def create(self, spec: ArraySpec) -> str:
        self.check_spec(spec)  # XLA allocates at multiples of 64 bytes
        # Committed to its device: a jitted function would take it to the default device otherwise.
        return (
            f"with jax.default_device(jax.devices('{spec.device}')[0]):\n"
            f"    x = {flat(spec, values)}\n"
            f"    x = jax.device_put(x.reshape({spec.shape}), jax.devices('{spec.device}')[0])"
        )

    def ready(self, device: str) -> None:
        import jax

        jax.devices(device)

    def pointer(self, array: Any) -> int | None:
        return int(array.unsafe_buffer_pointer()) or None

    def to_numpy(self, array: Any) -> Any:
        import numpy as np

        # A copy on the device first: JAX keeps the host copy of an array and would show that. And
        # the host may see other values than the device has (jax#17784).
        host = np.array(array.copy())
        bits = BITS.get(str(self.dtype(array)))
        return host if bits is None else host.view(bits)

    def device(self, array: Any) -> str:
        if array.sharding.memory_kind in ("pinned_host", "unpinned_host"):
            return "cpu"  # whatever device may read it
        platform = next(iter(array.devices())).platform
        return "cuda" if platform == "gpu" else str(platform)

    def wait(self, device: str) -> str:
        return "{x}.block_until_ready()"

    def use(self, device: str) -> str:
        return "jnp.add({x}, 1)"

    def idioms(self, device: str, dtype: str) -> Mapping[str, str]:
        return {
            "values": "numpy.array({x}.copy())",  # JAX keeps the host copy of {x} itself
            "address": "{x}.unsafe_buffer_pointer()",
            "shape": "{x}.shape",
            "dtype": "str({x}.dtype)",
            "memory": f"jax.devices('{device}')[0].memory_stats()['bytes_in_use']",
        }

    def queue_setup(self, spec: ArraySpec) -> str:
        return _QUEUE_SETUP[spec.device]

    def enqueue(self, spec: ArraySpec) -> str | None:
        return _ENQUEUE[spec.device]


def values(elements: int, spec: ArraySpec) -> str:
    """Return source text of ``elements`` values, one-dimensional or in the shape of ``spec``."""
    if spec.corners:
        host = f"{corners(spec.dtype).text(elements)}.view('{spec.dtype}')"
        # NumPy reshapes them: JAX would compile that for each dtype and shape.
        return f"jnp.array({host}{f'.reshape({spec.shape})' * (elements == spec.elements)})"
    pattern = numbers(spec)
    index = f"jnp.arange({elements})"
    if spec.is_integer:
        text = replace(pattern, offset=0).text(index, elements)
        # A Python int beyond 32 bits is an error in JAX; a NumPy scalar is narrowed as arrays are.
        return f"(({text}).astype('{spec.dtype}') + numpy.{spec.dtype}({int(pattern.offset)}))"
    return f"({pattern.text(index, elements)}).astype('{spec.dtype}')"


# The load is independent of the size and dtype of x, and its values stay within 2, which XLA
# cannot know, so y has to wait for it.
#
# On the CPU one compiled loop, because JAX blocks the caller with more than 32 calls in flight;
# with arithmetic besides the cosine, because XLA counts only that and runs cheap operations in
# the caller's thread. On CUDA one call for each unit, because XLA asks the device at each turn
# of a loop whether to go on, which blocks the caller; and of 32 calls, as many as may wait
# there too, each is of many products, so that 3 ms or more are in each.
_QUEUE_SETUP = {
    "cpu": """\
@jax.jit
def jax_queue(x, work):
    z = jax.lax.fori_loop(0, work, lambda _, z: jnp.cos(z) - z / 2, jnp.arange(8192.0))
    return jnp.where(z[0] > 4, jnp.zeros_like(x), x)
""",
    "cuda": """\
jax_many = jax.jit(lambda z: [z := jnp.cos(z @ z) for _ in range(64)][-1])
jax_end = jax.jit(lambda x, z: jnp.where(z[0, 0] > 4, jnp.zeros_like(x), x))
""",
}
_ENQUEUE = {
    "cpu": "y = jax_queue(x, work)\n",
    "cuda": """\
jax_load = jnp.ones((2048, 2048), device=next(iter(x.devices())))
for _ in range(work):
    jax_load = jax_many(jax_load)
y = jax_end(x, jax_load)
""",
}
