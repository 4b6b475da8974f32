"""Probes of two more libraries for ``dlprof conformance``: tensors of TVM FFI and of PyArrow."""

from dlprof.probes.base import Export, Import, Probe, Protocol, Unsupported
from dlprof.probes.numpy import NumPy

DLPACK = Protocol.DLPACK
EXPORTS = (Export("dlpack", DLPACK, "{x}"),)

LAYOUTS = ("C", "sliced", "F", "strided", "reversed", "broadcast", "readonly")


def tensor(spec, made):
    """Source text of a tensor that the text ``made`` makes of the array ``x`` of NumPy."""
    if spec.layout not in LAYOUTS:
        raise Unsupported(f"no layout {spec.layout}")
    return f"{NumPy().create(spec)}\nx = {made}"


class TvmFfi(Probe):
    name = "tvm-ffi"
    module = "tvm_ffi"
    distributions = ("apache-tvm-ffi",)
    setup = "import numpy\nimport tvm_ffi"
    exports = EXPORTS
    imports = (Import("from_dlpack", (DLPACK,), "tvm_ffi.from_dlpack({x})"),)

    def create(self, spec):
        return tensor(spec, "tvm_ffi.from_dlpack(x)")

    def idioms(self, _device, _dtype):
        return {
            "values": "numpy.from_dlpack({x}).copy()",
            "shape": "{x}.shape",
            "dtype": "str({x}.dtype)",
            "write": "numpy.from_dlpack({x})[...] = 1",
        }


class PyArrowTensor(Probe):
    name = "pyarrow-tensor"
    module = "pyarrow"
    distributions = ("pyarrow",)
    setup = "import numpy\nimport pyarrow"
    exports = EXPORTS
    imports = (Import("from_dlpack", (DLPACK,), "pyarrow.Tensor.from_dlpack({x})"),)

    def create(self, spec):
        return tensor(spec, "pyarrow.Tensor.from_numpy(x)")

    def idioms(self, _device, _dtype):
        return {
            "values": "{x}.to_numpy().copy()",
            "shape": "{x}.shape",
            "dtype": "{x}.to_numpy().dtype.name",
            "writable": "{x}.is_mutable",
            "write": "{x}.to_numpy()[...] = 1",
        }
