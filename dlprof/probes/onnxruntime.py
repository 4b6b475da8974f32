"""ONNX Runtime: OrtValues on the host and on CUDA devices, contiguous and writable."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Mapping
from typing import Any, ClassVar

from dlprof.probes.base import (
    ANY_DEVICE,
    ARRAY,
    BITS,
    CAPSULE,
    CPU,
    CUDA,
    DLPACK,
    DTYPES,
    NATIVE,
    NUMPY,
    ArraySpec,
    Export,
    Import,
    Probe,
    Unsupported,
    copies,
    corners,
    numbers,
    views,
    without_strides,
)
from dlprof.probes.numpy import NumPy

_NAMES = {
    "float": "float32",
    "double": "float64",
    "float8e4m3fn": "float8_e4m3fn",
    "float8e5m2": "float8_e5m2",
    "float8e4m3fnuz": "float8_e4m3fnuz",
    "float8e5m2fnuz": "float8_e5m2fnuz",
}

# Dtypes that NumPy lacks: the number in onnx.TensorProto, the unsigned integer of the same
# width, and the bits of float32 values v that the dtype holds exactly, made from the bits of a
# NumPy dtype that has the same exponent bits.
_BITS = {
    "bfloat16": (16, "uint16", "v.view('uint32') >> 16"),
    "float8_e4m3fn": (17, "uint8", "(v / 256).astype('float16').view('uint16') >> 7"),
    "float8_e4m3fnuz": (18, "uint8", "(v / 128).astype('float16').view('uint16') >> 7"),
    "float8_e5m2": (19, "uint8", "v.astype('float16').view('uint16') >> 8"),
    "float8_e5m2fnuz": (20, "uint8", "(v * 2).astype('float16').view('uint16') >> 8"),
}


# A model that gives its input back, as onnx.helper writes it: one Identity node, float32 of any
# shape. The input's dtype is looked at when a session runs, not when an array is bound. An address
# says nothing of its dtype: ``kinds`` are the numbers of onnx.TensorProto.
_BINDING = """\
model = bytes.fromhex('080712003a2b0a100a017812017922084964656e74697479120167'
                      '5a090a017812040a02080162090a017912040a02080142040a00100d')
session = onnxruntime.InferenceSession(model, providers=onnxruntime.get_available_providers())
binding = session.io_binding()
kinds = {'float32': 1, 'uint8': 2, 'int8': 3, 'uint16': 4, 'int16': 5, 'int32': 6, 'int64': 7,
         'bool': 9, 'float16': 10, 'float64': 11, 'uint32': 12, 'uint64': 13, 'complex64': 14,
         'complex128': 15, 'bfloat16': 16, 'float8_e4m3fn': 17, 'float8_e4m3fnuz': 18,
         'float8_e5m2': 19, 'float8_e5m2fnuz': 20}
"""
_bound = functools.partial(Import, setup=_BINDING, returns_array=False)
_BIND_POINTER = (
    "binding.bind_input('x', '{device}', 0, kinds['{{dtype}}'], tuple({{x}}.shape), "
    "{{x}}.{pointer})"
)
_POINTERS = (
    ("torch", "cpu", "data_ptr()"),
    ("torch", "cuda", "data_ptr()"),
    ("cupy", "cuda", "data.ptr"),
)


class OnnxRuntime(Probe):
    name = "onnxruntime"
    aliases: ClassVar[tuple[str, ...]] = ("ort",)
    module = "onnxruntime"
    distributions: ClassVar[tuple[str, ...]] = (
        *("onnxruntime", "onnxruntime-gpu", "onnxruntime-training", "onnxruntime-directml"),
        *("onnxruntime-openvino", "ort-nightly", "ort-nightly-gpu"),
    )
    setup = "import numpy\nimport onnxruntime"
    devices: ClassVar[tuple[str, ...]] = ANY_DEVICE
    dtypes = (set(DTYPES) - set(BITS)) | set(_BITS)
    missing = without_strides(
        "onnxruntime has no strided values", readonly="onnxruntime has no read-only values"
    )
    array_type = "onnxruntime.OrtValue"
    exports: ClassVar[tuple[Export, ...]] = (
        Export("dlpack", DLPACK, "{x}", promise="view"),
        # The only way out by DLPack before OrtValue had __dlpack__.
        Export("to_dlpack", CAPSULE, "{x}._ortvalue.to_dlpack()", promise="view"),
        Export("array", ARRAY, "{x}", CPU),
        Export("numpy", NUMPY, "{x}.numpy()"),
    )
    imports: ClassVar[tuple[Import, ...]] = (
        views("from_dlpack", (DLPACK, CAPSULE), "onnxruntime.OrtValue.from_dlpack({x})"),
        # The only way in by DLPack before OrtValue had from_dlpack.
        Import(
            "from_dlpack_binding",
            (DLPACK,),
            "onnxruntime.OrtValue(onnxruntime.capi._pybind_state.OrtValue.from_dlpack({x}, False))",
        ),
        views(
            "ortvalue_from_numpy", (NUMPY,), "onnxruntime.OrtValue.ortvalue_from_numpy({x})", CPU
        ),
        copies(
            "ortvalue_from_numpy_cuda",
            (NUMPY,),
            "onnxruntime.OrtValue.ortvalue_from_numpy({x}, 'cuda', 0)",
            CUDA,
        ),
        _bound("bind_cpu_input", (NUMPY,), "binding.bind_cpu_input('x', {x})", CPU),
        _bound(
            "bind_ortvalue_input",
            (DLPACK, CAPSULE),
            "binding.bind_ortvalue_input('x', onnxruntime.OrtValue.from_dlpack({x}))",
        ),
        # A bare address: for contiguous arrays that outlive the run.
        *(
            _bound(
                f"bind_input_{producer}_{device}",
                (NATIVE,),
                _BIND_POINTER.format(device=device, pointer=pointer),
                (device,),
                producers=(producer,),
                layouts=("C", "aligned", "sliced", "readonly"),
            )
            for producer, device, pointer in _POINTERS
        ),
    )

    def create(self, spec: ArraySpec) -> str:
        self.check_spec(spec)  # onnxruntime allocates at multiples of 64 bytes
        if spec.layout != "sliced":
            return _contiguous(spec)
        # onnxruntime cannot slice its own values; users wrap a slice of a NumPy array.
        if spec.device != "cpu" or spec.dtype in _BITS:
            raise Unsupported("onnxruntime has no slices")
        return f"{NumPy().create(spec)}\nx = onnxruntime.OrtValue.ortvalue_from_numpy(x)"

    def ready(self, device: str) -> None:
        import numpy as np
        import onnxruntime

        onnxruntime.OrtValue.ortvalue_from_shape_and_type([1], np.uint8, device, 0)

    def pointer(self, array: Any) -> int | None:
        return int(array.data_ptr()) or None

    def to_numpy(self, array: Any) -> Any:
        import numpy as np
        import onnxruntime

        if self.dtype(array) not in _BITS:
            return np.array(array.numpy())
        number, bits, _ = _BITS[self.dtype(array)]
        shape = self.shape(array)
        host = onnxruntime.OrtValue.ortvalue_from_shape_and_type(shape, number, "cpu", 0)
        host.update_inplace(array)
        size = np.dtype(bits).itemsize * int(np.prod(shape))
        return np.frombuffer(ctypes.string_at(host.data_ptr(), size), bits).reshape(shape)

    def shape(self, array: Any) -> tuple[int, ...]:
        return tuple(array.shape())

    def dtype(self, array: Any) -> str:
        name = array.data_type().removeprefix("tensor(").removesuffix(")")
        return str(_NAMES.get(name, name))

    def device(self, array: Any) -> str:
        return str(array.device_name())

    def write(self, array: Any, value: int) -> Any:
        import numpy as np
        import onnxruntime

        dtype, shape = self.dtype(array), self.shape(array)
        namespace = {"numpy": np, "onnxruntime": onnxruntime}
        text = _source(f"numpy.full({shape}, {value})", dtype)
        array.update_inplace(eval(text, namespace))  # noqa: S307 - text of this module

    def idioms(self, device: str, dtype: str) -> Mapping[str, str]:
        found = {"address": "{x}.data_ptr()", "shape": "tuple({x}.shape())"}
        if dtype in _BITS:  # an OrtValue of these has no numpy()
            return {**found, "dtype": "{x}.data_type().removeprefix('tensor(').removesuffix(')')"}
        ones = f"numpy.ones({{x}}.shape(), '{dtype}')"
        return {
            **found,
            "values": "numpy.array({x}.numpy())",
            "dtype": "{x}.numpy().dtype.name",
            "writable": "{x}.numpy().flags.writeable",
            "write": f"{{x}}.update_inplace({ones})",
        }


def _source(values: str, dtype: str) -> str:
    """Return source text of the argument of ``update_inplace`` for ``values``, a NumPy array."""
    if dtype not in _BITS:
        return f"({values}).astype('{dtype}')"
    number, bits, text = _BITS[dtype]
    return (
        "onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type("
        f"(lambda v: numpy.asarray({text}).astype('{bits}'))"
        f"(numpy.asarray({values}).astype('float32')), {number})"
    )


def _contiguous(spec: ArraySpec) -> str:
    pattern = numbers(spec)
    values = f"({pattern.text(f'numpy.arange({spec.elements})', spec.elements)})"
    if spec.corners and spec.dtype not in _BITS:  # these dtypes are made of float32 values
        values = f"{corners(spec.dtype).text(spec.elements)}.view('{spec.dtype}')"
    host = f"host = {values}.reshape({spec.shape})"
    kind = _BITS[spec.dtype][0] if spec.dtype in _BITS else f"numpy.dtype('{spec.dtype}')"
    return (
        f"{host}\nx = onnxruntime.OrtValue.ortvalue_from_shape_and_type("
        f"{spec.shape}, {kind}, '{spec.device}', 0)\n"
        f"x.update_inplace({_source('host', spec.dtype)})"
    )
