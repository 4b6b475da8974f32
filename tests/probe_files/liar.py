"""A framework whose documentation promises a copy, and whose import gives a view."""

import ctypes

from dlprof.probes.base import Export, Import, Probe, Protocol, Unsupported


class Liar(Probe):
    name = "liar"
    module = "ctypes"
    distributions = ()
    setup = "import ctypes"
    exports = (Export("array", Protocol.NATIVE, "{x}"),)
    imports = (
        Import("take", (Protocol.NATIVE,), "type({x}).from_buffer({x})", promise="copy"),
        Import("copy", (Protocol.NATIVE,), "type({x}).from_buffer_copy({x})", promise="copy"),
    )

    def create(self, spec):
        if len(spec.shape) != 1 or spec.dtype != "float32" or spec.layout != "C":
            raise Unsupported("liar arrays have one contiguous axis of float32")
        return f"x = (ctypes.c_float * {spec.shape[0]})(*range({spec.shape[0]}))"

    def pointer(self, array):
        return ctypes.addressof(array)

    def to_numpy(self, array):
        import numpy

        return numpy.array(array)

    def shape(self, array):
        return (len(array),)

    def dtype(self, array):
        return "float32"

    def writable(self, array):
        return True
