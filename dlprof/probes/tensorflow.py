"""TensorFlow: immutable tensors on the host and on CUDA devices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dlprof.probes import capsule
from dlprof.probes.base import (
    ANY_DEVICE,
    ARRAY,
    BITS,
    BUFFER,
    CAPSULE,
    CPU,
    CUDA,
    DLPACK,
    LIST,
    NATIVE,
    NUMPY,
    ArraySpec,
    Export,
    Import,
    Probe,
    Unsupported,
    copies,
    corners,
    flat,
    numbers,
    views,
    without_strides,
)

_DEVICES = {"cpu": "/CPU:0", "cuda": "/GPU:0"}


class TensorFlow(Probe):
    name = "tensorflow"
    aliases = ("tf",)
    module = "tensorflow"
    distributions = (
        *("tensorflow", "tensorflow-cpu", "tensorflow-intel", "tensorflow-macos"),
        *("tf-nightly", "tf-nightly-cpu"),
    )
    setup = "import numpy\nimport tensorflow as tf"
    # TensorFlow takes all GPU memory otherwise (tensorflow#6111).
    variables = {"TF_FORCE_GPU_ALLOW_GROWTH": "true", "TF_CPP_MIN_LOG_LEVEL": "2"}
    devices = ANY_DEVICE
    immutable = True
    missing = without_strides(
        "TensorFlow has no strided tensors",
        readonly="TensorFlow tensors are never writable; use layout C",
    )
    settings = {
        "eager execution": "tf.executing_eagerly()",
        "soft device placement": "tf.config.get_soft_device_placement()",
        "threads of an operation": "tf.config.threading.get_intra_op_parallelism_threads()",
        "operations at once": "tf.config.threading.get_inter_op_parallelism_threads()",
    }
    array_type = "tensorflow.__internal__.EagerTensor"
    exports = (
        Export("dlpack", DLPACK, "{x}"),
        Export("to_dlpack", CAPSULE, "tf.experimental.dlpack.to_dlpack({x})", promise="view"),
        Export("array", ARRAY, "{x}"),
        Export("memoryview", ARRAY, "memoryview({x})", CPU, "view"),
        Export("memoryview_cuda", ARRAY, "memoryview({x})", CUDA, "copy"),
        Export("numpy", NUMPY, "{x}.numpy()", promise="copy"),
        Export("asarray", NUMPY, "numpy.asarray({x})"),
        Export("asarray_memoryview", NUMPY, "numpy.asarray(memoryview({x}))", CPU, "view"),
    )
    imports = (
        views("from_dlpack", (CAPSULE,), "tf.experimental.dlpack.from_dlpack({x})"),
        views(
            "from_dlpack_object", (DLPACK,), "tf.experimental.dlpack.from_dlpack({x}.__dlpack__())"
        ),
        Import("convert_to_tensor", (ARRAY, NUMPY), "tf.convert_to_tensor({x})"),
        Import("constant", (ARRAY, NUMPY), "tf.constant({x})"),
        copies("convert_list", (NATIVE,), "tf.convert_to_tensor({x})", producers=LIST),
        copies("constant_list", (NATIVE,), "tf.constant({x})", producers=LIST),
        copies("array_first", (NATIVE,), "tf.constant(numpy.array({x}))", producers=LIST),
        copies("stack", (NATIVE,), "tf.stack({x})", producers=LIST),
        # It takes a string tensor, and only bytes become one.
        Import(
            "decode_raw",
            (BUFFER,),
            "tf.reshape(tf.io.decode_raw({x}, tf.{dtype}), {shape})",
            producers=("bytes",),
        ),
        Import("numpy_asarray", (ARRAY, NUMPY), "tf.experimental.numpy.asarray({x})"),
        Import("numpy_array", (ARRAY, NUMPY), "tf.experimental.numpy.array({x})"),
        Import(
            "numpy_array_nocopy", (ARRAY, NUMPY), "tf.experimental.numpy.array({x}, copy=False)"
        ),
    )

    def create(self, spec: ArraySpec) -> str:
        self.check_spec(spec)  # TensorFlow allocates at multiples of 64 bytes
        made = f"tf.reshape({flat(spec, values)}, {spec.shape})"
        return f"with tf.device('{_DEVICES[spec.device]}'):\n    x = {made}"

    def ready(self, device: str) -> None:
        import tensorflow as tf

        if device == "cuda" and not tf.config.list_physical_devices("GPU"):
            raise Unsupported("TensorFlow sees no GPU: list_physical_devices('GPU') is empty")

    def pointer(self, array: Any) -> int | None:
        import tensorflow as tf

        try:
            contents = capsule.read(tf.experimental.dlpack.to_dlpack(array))
        except tf.errors.InvalidArgumentError:  # a dtype that TensorFlow does not give to DLPack
            return None
        return (contents.address or None) if contents else None

    def to_numpy(self, array: Any) -> Any:
        import numpy as np
        import tensorflow as tf

        # A handle of its own: TensorFlow keeps the host copy of a GPU tensor with its handle.
        with tf.device(array.backing_device):
            host = np.array(tf.identity(array).numpy())
        bits = BITS.get(str(self.dtype(array)))
        return host if bits is None else host.view(bits)

    def device(self, array: Any) -> str:
        # Not array.device: tensors of int32 on a GPU live in host memory.
        return "cuda" if "GPU" in array.backing_device else "cpu"

    def wait(self, device: str) -> str:
        # Documented to return when the memory is ready. sync_devices() takes tens of
        # microseconds with nothing to wait for.
        return "tf.experimental.dlpack.to_dlpack({x})" if _queues(device) else ""

    def use(self, device: str) -> str:
        return "tf.add({x}, 1)"

    def idioms(self, device: str, dtype: str) -> Mapping[str, str]:
        found = {
            # A tensor of its own: TensorFlow keeps the host copy of a GPU tensor.
            "values": "{x}.numpy()" if device == "cpu" else "tf.identity({x}).numpy()",
            "shape": "tuple({x}.shape)",
            "dtype": "{x}.dtype.name",
        }
        if device == "cuda":
            found["memory"] = "tf.config.experimental.get_memory_info('GPU:0')['current']"
        elif dtype not in BITS:
            found["address"] = "numpy.asarray(memoryview({x})).ctypes.data"
        return found

    def queue_setup(self, spec: ArraySpec) -> str:
        return _QUEUE_SETUP[spec.device] if _queues(spec.device) else ""

    def enqueue(self, spec: ArraySpec) -> str | None:
        return _ENQUEUE[spec.device] if _queues(spec.device) else None


def values(elements: int, spec: ArraySpec) -> str:
    """Return source text of ``elements`` values, one-dimensional."""
    if spec.corners:
        return f"tf.constant({corners(spec.dtype).text(elements)}.view('{spec.dtype}'))"
    pattern = numbers(spec)
    # Many dtypes lack arithmetic in TensorFlow, so the values are made in 64 bits and then cast.
    wide = "int64" if spec.is_integer else "float64"
    index = f"tf.range({elements}, dtype=tf.{wide})"
    text = replace(pattern, times="").text(index, elements)
    if pattern.times:
        text = f"tf.cast({text}, 'complex128'){pattern.times}"
    return f"tf.cast({text}, '{spec.dtype}')"


def _queues(device: str) -> bool:
    import tensorflow as tf

    return device == "cuda" or not tf.config.experimental.get_synchronous_execution()


# The load is independent of the size and dtype of x. TensorFlow cannot know that the last test
# is never true, so y has to wait for it.
_QUEUE_SETUP = {
    "cpu": """\
@tf.function(autograph=False)
def tf_queue(x, work):
    loop = lambda z, i: (tf.cos(z), i + 1)
    z, _ = tf.while_loop(lambda z, i: i < work, loop, (tf.range(8192.0), 0))
    return tf.where(tf.reshape(z, [-1])[0] > 4, tf.zeros_like(x), x)
""",
    # A loop inside a function would ask the host before each turn. And a chain that only reads and
    # writes memory keeps the device busy for longer than it takes to queue, without cuBLAS.
    "cuda": """\
@tf.function(autograph=False)
def tf_many(z):
    for _ in range(32): z = tf.cos(z)
    return z
@tf.function(autograph=False)
def tf_end(x, z):
    return tf.where(z[0, 0] > 4, tf.zeros_like(x), x)
with tf.device('/GPU:0'): tf_start = tf.ones((8192, 8192))
""",
}
_ENQUEUE = {
    "cpu": "y = tf_queue(x, tf.constant(work))\n",
    "cuda": """\
tf_load = tf_start
for _ in range(work):
    tf_load = tf_many(tf_load)
y = tf_end(x, tf_load)
""",
}
