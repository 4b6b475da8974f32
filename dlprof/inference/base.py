"""The contract of steps: how one framework runs a model, and where its output goes.

A step takes one input and gives one output. What is done with the output's memory is a *strategy*,
written as source text like the ways of a probe: ``setup`` makes the buffers for one shape, ``code``
is one step, which takes ``{x}`` and leaves its output in ``y``. Both are statements. In their
names stand the model, the input ``x`` and ``output``, an earlier output of the same shape.

This module and all steps run inside the interpreter under test and import the standard library
alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from dlprof.probes.base import ANY_DEVICE, ArraySpec, Export, Import, Probe, Protocol, Unsupported

if TYPE_CHECKING:
    from collections.abc import Callable

MODEL = Export("model", Protocol.STEP, "{x}")

FRESH = "fresh"
"""The strategy that every framework has: each call allocates its output."""


def strategy(
    name: str, code: str, setup: str = "", devices: tuple[str, ...] = ANY_DEVICE
) -> Import:
    """A strategy as the catalog holds it: a way into the framework from its own input."""
    return Import(name, (Protocol.STEP,), code, devices, setup=setup)


class Allocated(NamedTuple):
    """What a framework counted over several calls."""

    calls: int
    size_bytes: int
    how: str


class Steps(Probe):
    """How one framework runs a model. ``model_file`` is the user's, empty for the built-in one.

    It stands in the catalog like a :class:`~dlprof.probes.base.Probe`: its strategies are the ways
    in. What a probe says of conversions it does not say.
    """

    framework: ClassVar[Probe]
    """Its probe, which looks at outputs."""
    exports: ClassVar[tuple[Export, ...]] = (MODEL,)
    model_file: str = ""
    threads: int = 0
    """Threads of the framework on the host; 0 leaves it the choice."""
    suffix: ClassVar[str]
    """What the name of a model file of this framework ends with."""

    def create(self, spec: ArraySpec, seed: int = 0) -> str:
        """Source text that makes the input of ``spec`` into ``x``; ``seed`` gives other values."""
        raise NotImplementedError

    def load(self, spec: ArraySpec) -> str:
        """Source text that loads the model; runs after ``create``."""
        raise NotImplementedError

    def check(self, namespace: dict[str, Any]) -> None:
        """Raise :class:`Unsupported` where the loaded model is none of one input and one output."""

    def check_output(self, output: Any) -> None:
        """Raise :class:`Unsupported` where a first output is no single tensor."""

    def check_strategy(self, name: str, device: str) -> None:
        """Raise :class:`Unsupported` where a strategy cannot be had on ``device``."""

    def read(self, name: str) -> str:
        """Source text that reads every value of ``y``, and so waits for it."""
        raise NotImplementedError

    def ready(self, device: str) -> None:
        self.framework.ready(device)

    def wait(self, device: str) -> str:
        return self.framework.wait(device)

    def pointer(self, array: Any) -> int | None:
        return self.framework.pointer(array)

    def to_numpy(self, array: Any) -> Any:
        return self.framework.to_numpy(array)

    def count(self, device: str, run: Callable[[], object]) -> Allocated:
        """The memory that the framework's own allocator hands out while ``run`` runs.

        Raises :class:`Unsupported` where the framework does not count.
        """
        raise Unsupported(f"{self.framework.name} does not tell how often it allocates")
