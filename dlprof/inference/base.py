"""The contract of steps: one framework runs a model and puts the output somewhere.

A step takes one input and gives one output. A *strategy* decides about the output's memory. It is
source text: ``setup`` makes the buffers for one shape, ``code`` is one step, which
takes ``{x}`` and leaves its output in ``y``. Both are statements. They may use the model, the input
``x``, and ``output``, an earlier output of the same shape.

This module and all steps run inside the interpreter under test. They import the standard library
alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from dlprof.probes.base import ArraySpec, Export, Import, Probe, Protocol, Unsupported

MODEL = Export("model", Protocol.STEP, "{x}")

FRESH = "fresh"
"""The strategy that every framework has: each call allocates its output."""

# The built-in model, the same for every framework: relu(x @ weight) @ weight. The weight of 64 rows
# and 64 columns, cos(index) / 8, is computed when the model is loaded. So a model file of a few
# hundred bytes is a real one. The number of rows is free.
UNITS = 64
TORCH_MODEL = f"""\
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        index = torch.arange({UNITS * UNITS}, dtype=torch.float32)
        self.register_buffer("weight", (torch.cos(index) / 8).reshape({UNITS}, {UNITS}))

    def forward(self, x, out=None):
        return torch.mm(torch.relu(torch.mm(x, self.weight)), self.weight, out=out)


model = Model().eval().to(x.device, x.dtype)"""

# Opset 17. tests/integration/test_steps.py writes the same with onnx.helper.
ONNX_MODEL_BASE64 = (
    "CAg6zwIKIwoFc3RhcnQKBWxpbWl0CgVkZWx0YRIFaW5kZXgiBVJhbmdlChIKBWluZGV4EgR3YXZlIgNDb3MKHgoE"
    "d2F2ZQoFc2hhcGUSBnNxdWFyZSIHUmVzaGFwZQocCgZzcXVhcmUKBXNjYWxlEgZ3ZWlnaHQiA011bAoYCgF4CgZ3"
    "ZWlnaHQSA3N1bSIGTWF0TXVsChMKA3N1bRIGaGlkZGVuIgRSZWx1ChsKBmhpZGRlbgoGd2VpZ2h0EgF5IgZNYXRN"
    "dWwSA21scCoPEAEiBAAAAABCBXN0YXJ0Kg8QASIEAACARUIFbGltaXQqDxABIgQAAIA/QgVkZWx0YSoPCAIQBzoC"
    "QEBCBXNoYXBlKg8QASIEAAAAPkIFc2NhbGVaFwoBeBISChAIARIMCgYSBHJvd3MKAghAYhcKAXkSEgoQCAESDAoG"
    "EgRyb3dzCgIIQEIECgAQEQ=="
)


def strategy(name: str, code: str, setup: str = "") -> Import:
    """Return a strategy as the catalog holds it: an import of the framework's own input."""
    return Import(name, (Protocol.STEP,), code, setup=setup)


class Steps(Probe):
    """A framework that runs a model. ``model_file`` is the user's, empty for the built-in one.

    It stands in the catalog with strategies as imports. The framework's probe, the second base of
    each kind, looks at outputs.
    """

    exports: ClassVar[tuple[Export, ...]] = (MODEL,)
    flags: ClassVar[tuple[str, ...]] = ()
    model_file: str = ""
    threads: int = 0
    """Threads of the framework on the host; 0 for its own choice."""
    suffix: ClassVar[str]
    """Ending of this framework's model files."""

    def create(self, spec: ArraySpec, seed: int = 0) -> str:
        """Return source text that makes an input ``x`` of ``spec``, with values by ``seed``."""
        raise NotImplementedError

    def load(self, spec: ArraySpec) -> str:
        """Return source text that loads the model; it runs after ``create``."""
        raise NotImplementedError

    def check(self, namespace: dict[str, Any]) -> None:
        """Raise :class:`Unsupported` unless the loaded model has one input and one output."""

    def check_output(self, output: Any) -> None:
        """Raise :class:`Unsupported` if a first output is no single tensor."""

    def check_strategy(self, name: str, device: str) -> None:
        """Raise :class:`Unsupported` if a strategy does not exist on ``device``."""

    def read(self, name: str) -> str:
        """Return source text that reads every value of ``y``, and so waits for it."""
        raise NotImplementedError

    def count(self, device: str, run: Callable[[], object]) -> int:
        """Return how often the framework's own allocator hands out memory during ``run``.

        Raises :class:`Unsupported` if the framework does not count.
        """
        raise Unsupported(f"{self.name} does not tell how often it allocates")
