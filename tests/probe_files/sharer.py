"""A probe of NumPy arrays whose documented copy is a view."""

from dlprof.probes.base import CPU, Export, Import, Protocol
from dlprof.probes.numpy import NumPy


class Sharer(NumPy):
    name = "sharer"
    aliases = ()
    exports = (Export("array", Protocol.NATIVE, "{x}", CPU),)
    imports = (
        Import(
            "copy", (Protocol.NATIVE,), "{x}.view()", CPU, promise="copy", producers=("sharer",)
        ),
    )
