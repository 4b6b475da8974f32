"""safetensors: NumPy arrays that went through the format, as a file's bytes and back."""

from __future__ import annotations

from dlprof.probes.base import CPU, NUMPY, copies
from dlprof.probes.numpy import NumPy


class Safetensors(NumPy):
    name = "safetensors"
    module = "safetensors"
    distributions = ("safetensors",)
    setup = "import numpy\nimport safetensors.numpy"
    aliases = ()
    flags = ()
    settings = {}
    array_type = ""
    exports = ()
    imports = (
        copies(
            "load",
            (NUMPY,),
            "safetensors.numpy.load(safetensors.numpy.save({{'x': {x}}}))['x']",
            CPU,
        ),
    )
