"""Steps of PyTorch: ``out=``, a copied output, two buffers, CUDA graphs, and compiled models.

A user's model is a Python file that defines ``model``, which is called with the input. A model
without ``out=`` refuses the strategies that need it, in its own words.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from dlprof.device.cuda import driver_devices
from dlprof.inference.base import FRESH, TORCH_MODEL, Steps, strategy
from dlprof.probes.base import CUDA, ArraySpec, Import, Unsupported
from dlprof.probes.torch import Torch

BUFFER = "buffer = torch.empty_like(output)"
GRAPH = """\
source, stream = torch.empty_like(x), torch.cuda.Stream()
source.copy_(x)
stream.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(stream):
    model(source)
torch.cuda.current_stream().wait_stream(stream)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    buffer = model(source)"""


class TorchSteps(Steps, Torch):
    suffix = ".py"
    setup = "import itertools\nimport runpy\nimport torch\ntorch.set_grad_enabled(False)"
    imports: ClassVar[tuple[Import, ...]] = (
        strategy(FRESH, "y = model({x})"),
        strategy("persistent", "y = model({x}, out=buffer)", BUFFER),
        strategy("copied", "y = buffer.copy_(model({x}))", BUFFER),
        strategy(
            "two-buffers",
            "y = model({x}, out=next(buffers))",
            "buffers = itertools.cycle((torch.empty_like(output), torch.empty_like(output)))",
        ),
        strategy(
            "ahead",
            "y = model({x}, out=following); following = torch.empty_like(y)",
            "following = torch.empty_like(output)",
        ),
        strategy("cuda-graph", "source.copy_({x}); graph.replay(); y = buffer", GRAPH),
    )

    def create(self, spec: ArraySpec, seed: int = 0) -> str:
        values = f"torch.randn({spec.shape}, generator=torch.Generator().manual_seed({seed}))"
        if "int" in spec.dtype or spec.dtype == "bool":
            values = f"({values} > 0)"
        return f"x = {values}.to('{spec.device}', torch.{spec.dtype})"

    def load(self, spec: ArraySpec) -> str:
        threads = f"torch.set_num_threads({self.threads})\n" if self.threads else ""
        if not self.model_file:
            return threads + TORCH_MODEL
        return (
            f"{threads}model = runpy.run_path({self.model_file!r}).get('model')\n"
            "if isinstance(model, torch.nn.Module):\n"
            "    model = model.eval().to(x.device)"
        )

    def check(self, namespace: dict[str, Any]) -> None:
        if not callable(namespace.get("model")):
            raise Unsupported(f"{Path(self.model_file).name} defines no model that can be called")

    def check_output(self, output: Any) -> None:
        import torch

        if not isinstance(output, torch.Tensor):
            raise Unsupported(
                f"the model gives a {type(output).__name__}; a step of one tensor can be measured"
            )

    def check_strategy(self, name: str, device: str) -> None:
        if name == "cuda-graph" and device == "cpu":
            found = driver_devices()
            why = found if isinstance(found, str) else "the input is on the host"
            raise Unsupported(f"a CUDA graph needs an input on a CUDA device: {why}")

    def read(self, name: str) -> str:
        return "float(y.sum())"

    def count(self, device: str, run: Callable[[], object]) -> int:
        return _count_cuda(run) if device == "cuda" else _count_host(run)


def _count_host(run: Callable[[], object]) -> int:
    import torch

    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True
    ) as profiler:
        run()
    with tempfile.TemporaryDirectory(prefix="dlprof-") as folder:
        path = Path(folder, "trace.json")
        profiler.export_chrome_trace(str(path))
        events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    sizes = [event["args"]["Bytes"] for event in events if event.get("name") == "[memory]"]
    return sum(size > 0 for size in sizes)


def _count_cuda(run: Callable[[], object]) -> int:
    import torch

    before = torch.cuda.memory_stats()["allocation.all.allocated"]
    run()
    torch.cuda.synchronize()
    return int(torch.cuda.memory_stats()["allocation.all.allocated"] - before)


class TorchCompileSteps(TorchSteps):
    """A model of ``torch.compile(mode="reduce-overhead")``, and its output with ``.clone()``.

    Users report that on CUDA the next call overwrites an output (pytorch#152887). That
    was not run on a GPU.
    """

    name = "torch.compile"
    aliases = ("torch_compile",)
    imports = (
        strategy(FRESH, "y = model({x}).clone()"),
        strategy("returned", "y = model({x})"),
    )

    def load(self, spec: ArraySpec) -> str:
        return f"{super().load(spec)}\nmodel = torch.compile(model, mode='reduce-overhead')"


# Packaging takes a minute, so the package stays in the folder where torch keeps compiled code.
PACKAGE = """package = os.path.join(
    torch._inductor.runtime.cache_dir_utils.cache_dir(),
    f"dlprof-{torch.__version__}-{x.device.type}-{x.dtype}.pt2",
)
if not os.path.exists(package):
    rows = {0: torch.export.Dim.DYNAMIC}
    exported = torch.export.export(model, (torch.cat((x, x)),), dynamic_shapes=(rows,))
    torch._inductor.aoti_compile_and_package(exported, package_path=f"{package[:-4]}-new.pt2")
    os.replace(f"{package[:-4]}-new.pt2", package)
model = torch._inductor.aoti_load_package(package)"""


class TorchPackageSteps(TorchSteps):
    """A model that AOTInductor compiled into a package; a user's model is such a package."""

    name = "torch.aoti"
    aliases = ("aotinductor",)
    suffix = ".pt2"
    setup = f"{TorchSteps.setup}\nimport os\nimport torch._inductor.runtime.cache_dir_utils"
    imports = tuple(way for way in TorchSteps.imports if way.name in {FRESH, "copied"})

    def load(self, spec: ArraySpec) -> str:
        if not self.model_file:
            return f"{super().load(spec)}\n{PACKAGE}"
        threads = f"torch.set_num_threads({self.threads})\n" if self.threads else ""
        return f"{threads}model = torch._inductor.aoti_load_package({self.model_file!r})"


# Two engines: only one of them allocates ahead. The last line is what the context manager
# enable_pre_allocated_outputs does when it is entered.
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
    """Outputs that the runtime of Torch-TensorRT allocates ahead, on CUDA alone.

    Written against its documentation
    (https://docs.pytorch.org/TensorRT/tutorials/_rendered_examples/dynamo/pre_allocated_output_example.html);
    not run on a GPU.
    """

    name = "torch_tensorrt"
    aliases = ("torch-tensorrt", "tensorrt")
    module = "torch_tensorrt"
    distributions = ("torch-tensorrt",)
    setup = f"{TorchSteps.setup}\nimport torch_tensorrt"
    devices = CUDA
    imports = (
        strategy(FRESH, "y = model({x})"),
        strategy("ahead", "y = ahead({x})"),
    )

    def load(self, spec: ArraySpec) -> str:
        rows, *columns = spec.shape or (1,)
        shapes = {
            "smallest": (1, *columns),
            "shape": (rows, *columns),
            "largest": (max(2, rows), *columns),
        }
        return f"{super().load(spec)}\n{COMPILE.format(**shapes)}"
