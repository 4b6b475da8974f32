"""Check by hand what becomes of an output when a model is called again; needs no dlprof.

An output is kept and its values noted; then the model is called on another input, four times. The
model is a single product in torch, and a one-node ONNX file for ONNX Runtime.
"""

import itertools
import platform
from importlib.metadata import version

import numpy
import onnxruntime
import torch
from onnx import TensorProto, helper
from torch._inductor import aoti_compile_and_package, aoti_load_package

torch.set_grad_enabled(False)
CALLS = 4


def seen(step, x, other, values):
    """After how many calls on ``other`` the output of ``x`` has other values."""
    kept = step(x)
    before = values(kept).copy()
    if (values(step(other)) == before).all():
        return "cannot be seen: the other input gives the same output"
    kept = step(x)
    for call in range(1, CALLS + 1):
        step(other)
        if (values(kept) != before).any():
            return f"changed by call {call} after it"
    return f"unchanged after {CALLS} calls"


def torch_steps():
    weight = torch.randn(64, 64)
    buffer, pair = torch.empty(8, 64), itertools.cycle([torch.empty(8, 64), torch.empty(8, 64)])
    ahead = [torch.empty(8, 64)]

    def allocated_ahead(x):
        y = torch.mm(x, weight, out=ahead.pop())
        ahead.append(torch.empty_like(y))
        return y

    linear = torch.nn.Linear(64, 64).eval()
    package = aoti_compile_and_package(torch.export.export(linear, (torch.ones(8, 64),)))
    return {
        "torch.compile(linear, mode='reduce-overhead')(x)": torch.compile(
            linear, mode="reduce-overhead"
        ),
        "aoti_load_package(package)(x)": aoti_load_package(package),
        "torch.mm(x, weight)": lambda x: torch.mm(x, weight),
        "torch.mm(x, weight, out=buffer)": lambda x: torch.mm(x, weight, out=buffer),
        "buffer.copy_(torch.mm(x, weight))": lambda x: buffer.copy_(torch.mm(x, weight)),
        "torch.mm(x, weight, out=next(pair))": lambda x: torch.mm(x, weight, out=next(pair)),
        "torch.mm(x, weight, out=allocated ahead)": allocated_ahead,
    }


def onnx_session():
    floats = TensorProto.FLOAT
    graph = helper.make_graph(
        [helper.make_node("Mul", ["x", "x"], ["y"])],
        "square",
        [helper.make_tensor_value_info("x", floats, ["rows", 64])],
        [helper.make_tensor_value_info("y", floats, ["rows", 64])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )


def onnx_steps():
    session = onnx_session()

    def value():
        return onnxruntime.OrtValue.ortvalue_from_shape_and_type([8, 64], numpy.float32)

    def bound(x, output):
        binding = session.io_binding()
        binding.bind_cpu_input("x", x)
        binding.bind_ortvalue_output("y", output)
        session.run_with_iobinding(binding)
        return output

    buffer, pair = value(), itertools.cycle([value(), value()])
    return {
        "session.run(None, {'x': x})[0]": lambda x: session.run(None, {"x": x})[0],
        "IOBinding, one OrtValue": lambda x: bound(x, buffer),
        "IOBinding, two OrtValues in turn": lambda x: bound(x, next(pair)),
        "IOBinding, a new OrtValue each time": lambda x: bound(x, value()),
    }


x, other = torch.randn(8, 64), torch.randn(8, 64)
for code, step in torch_steps().items():
    print(f"torch        {code:42} {seen(step, x, other, lambda y: y.numpy())}")
for code, step in onnx_steps().items():
    values = seen(step, x.numpy(), other.numpy(), lambda y: y.numpy() if hasattr(y, "numpy") else y)
    print(f"onnxruntime  {code:42} {values}")
print(
    platform.python_version(),
    *(f"{name} {version(name)}" for name in ("torch", "onnxruntime", "onnx", "numpy")),
)
