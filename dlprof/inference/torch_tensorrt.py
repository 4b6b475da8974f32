"""Steps of Torch-TensorRT, on CUDA alone: outputs that the runtime allocates ahead.

Written against its documentation
(https://docs.pytorch.org/TensorRT/tutorials/_rendered_examples/dynamo/pre_allocated_output_example.html);
not run on a GPU.
"""

from __future__ import annotations

from dlprof.inference.base import FRESH, strategy
from dlprof.inference.torch import TorchSteps
from dlprof.probes.base import CUDA, ArraySpec

# Two engines: what is switched on in one must not be on where it is compared with. The last line
# is what the context manager enable_pre_allocated_outputs does when it is entered.
COMPILE = """\
def compiled(module):
    return torch_tensorrt.compile(
        module,
        ir="dynamo",
        inputs=[
            torch_tensorrt.Input(
                min_shape={smallest}, opt_shape={shape}, max_shape={largest}, dtype=x.dtype
            )
        ],
        min_block_size=1,
    )


model, ahead = compiled(model), compiled(model)
torch_tensorrt.runtime.enable_pre_allocated_outputs(ahead).set_pre_allocated_output(True)"""


class TorchTensorRTSteps(TorchSteps):
    name = "torch_tensorrt"
    aliases = ("torch-tensorrt", "tensorrt")
    module = "torch_tensorrt"
    distributions = ("torch-tensorrt",)
    setup = f"{TorchSteps.setup}\nimport torch_tensorrt"
    devices = CUDA
    imports = (
        strategy(FRESH, "y = model({x})", devices=CUDA),
        strategy("ahead", "y = ahead({x})", devices=CUDA),
    )

    def load(self, spec: ArraySpec) -> str:
        rows, *rest = spec.shape or (1,)
        shapes = {
            "smallest": (1, *rest),
            "shape": (rows, *rest),
            "largest": (max(2, rows), *rest),
        }
        return f"{super().load(spec)}\n{COMPILE.format(**shapes)}"
