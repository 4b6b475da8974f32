"""Steps of ONNX Runtime on the host: ``run``, and IOBinding with bound outputs.

A user's model is an ONNX file with one input and one output.
"""

from __future__ import annotations

from typing import Any

from dlprof.inference.base import FRESH, ONNX_MODEL_BASE64, Steps, strategy
from dlprof.probes.base import CPU, ArraySpec, Unsupported
from dlprof.probes.onnxruntime import OnnxRuntime

OUTPUT = "onnxruntime.OrtValue.ortvalue_from_shape_and_type(output.shape, output.dtype)"
BOUND = f"""\
binding, buffer = session.io_binding(), {OUTPUT}
binding.bind_ortvalue_output(result, buffer)"""
RUN = "binding.bind_cpu_input(name, {x}); session.run_with_iobinding(binding)"
TWO = f"""\
turns = []
for turn in range(2):
    binding, buffer = session.io_binding(), {OUTPUT}
    binding.bind_ortvalue_output(result, buffer)
    turns.append((binding, buffer))
turns = itertools.cycle(turns)"""
NEXT = f"following = {OUTPUT}; binding.bind_ortvalue_output(result, following)"


class OnnxRuntimeSteps(Steps, OnnxRuntime):
    suffix = ".onnx"
    setup = "import base64\nimport itertools\nimport numpy\nimport onnxruntime"
    devices = CPU
    imports = (
        strategy(FRESH, "y = session.run(None, {{name: {x}}})[0]"),
        strategy("persistent", f"{RUN}; y = buffer", BOUND),
        strategy(
            "bound",
            "numpy.copyto(source, {x}); session.run_with_iobinding(binding); y = buffer",
            f"{BOUND}\nsource = numpy.empty_like(x)\nbinding.bind_cpu_input(name, source)",
        ),
        strategy("two-buffers", f"binding, y = next(turns); {RUN}", TWO),
        strategy(
            "ahead",
            f"{RUN}; y = following; {NEXT}",
            f"binding, following = session.io_binding(), {OUTPUT}\n"
            "binding.bind_ortvalue_output(result, following)",
        ),
    )

    def create(self, spec: ArraySpec, seed: int = 0) -> str:
        values = f"numpy.random.default_rng({seed}).standard_normal({spec.shape})"
        if "int" in spec.dtype or spec.dtype == "bool":
            values = f"({values} > 0)"
        return f"x = numpy.asarray({values}).astype('{spec.dtype}')"

    def load(self, spec: ArraySpec) -> str:
        model = (
            repr(self.model_file) if self.model_file else f"base64.b64decode('{ONNX_MODEL_BASE64}')"
        )
        return (
            "settings = onnxruntime.SessionOptions()\n"
            f"settings.intra_op_num_threads = {self.threads}\n"
            "session = onnxruntime.InferenceSession(\n"
            f"    {model}, settings, providers=['CPUExecutionProvider'])\n"
            "names = [part.name for part in session.get_inputs()]\n"
            "results = [part.name for part in session.get_outputs()]\n"
            "name, result = (names or [None])[0], (results or [None])[0]"
        )

    def check(self, namespace: dict[str, Any]) -> None:
        for side, names in (("input", namespace["names"]), ("output", namespace["results"])):
            if len(names) != 1:
                raise Unsupported(
                    f"the model has {len(names)} {side}s ({', '.join(names)});"
                    f" a step of one {side} can be measured"
                )

    def check_output(self, output: Any) -> None:
        if getattr(getattr(output, "dtype", None), "kind", "O") in "OUS":
            raise Unsupported(
                f"the model gives a {type(output).__name__} that is no tensor of numbers"
            )

    def pointer(self, array: Any) -> int | None:
        return super().pointer(array) if hasattr(array, "data_ptr") else int(array.ctypes.data)

    def to_numpy(self, array: Any) -> Any:
        return super().to_numpy(array) if hasattr(array, "data_ptr") else array.copy()

    def read(self, name: str) -> str:
        return "y.sum()" if name == FRESH else "y.numpy().sum()"
