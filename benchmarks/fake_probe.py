"""A framework for measuring dlprof itself: NumPy under another name, ten trivial ways in."""

from __future__ import annotations

from typing import Any

from dlprof.probes.base import CPU, ArraySpec, Export, Import, Probe, Protocol

VIEWS = ("numpy.asarray({x})", "{x}.view()", "{x}[...]", "numpy.atleast_1d({x})", "{x}.real")
COPIES = ("numpy.array({x})", "{x}.copy()", "{x}.astype({x}.dtype)", "{x} + 0", "+{x}")


class Fake(Probe):
    name = "fake"
    module = "numpy"
    distributions = ("numpy",)
    setup = "import numpy"
    devices = CPU
    exports = (Export("array", Protocol.NUMPY, "{x}"),)
    imports = tuple(
        Import(f"way_{number}", (Protocol.NUMPY,), code)
        for number, code in enumerate(VIEWS + COPIES)
    )

    def create(self, spec: ArraySpec) -> str:
        return f"x = numpy.zeros({spec.shape}, dtype='{spec.dtype}')"

    def pointer(self, array: Any) -> int | None:
        return int(array.__array_interface__["data"][0])

    def to_numpy(self, array: Any) -> Any:
        return array.copy()

    def use(self, device: str) -> str:  # noqa: ARG002 - the contract has it
        return "{x} + 1"
