"""A well-behaved framework made of ctypes arrays: one axis, float32, standard library only."""

import ctypes
from types import MappingProxyType

from dlprof.probes.base import Export, Import, Probe, Protocol, Unsupported

EXPORTS = (Export("array", Protocol.NATIVE, "{x}"),)
IMPORTS = (
    Import("view", (Protocol.NATIVE,), "type({x}).from_buffer({x})", promise="view"),
    Import("copy", (Protocol.NATIVE,), "type({x}).from_buffer_copy({x})", promise="copy"),
)


class Fake(Probe):
    name = "fake"
    aliases = ("pretend",)
    module = "ctypes"
    distributions = ()
    setup = "import ctypes, os, sys"
    variables = MappingProxyType({"DLPROF_FAKE": "from the probe"})
    exports = EXPORTS
    imports = IMPORTS

    def create(self, spec):
        if len(spec.shape) != 1 or spec.dtype != "float32" or spec.layout != "C":
            raise Unsupported("fake arrays have one contiguous axis of float32")
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


class Missing(Fake):
    name = "missing"
    aliases = ()
    module = "a_framework_that_nobody_has"
    requirement = "nobody-has-it"
