"""Steps of inference in a scenario: real models on real frameworks, from the command line to the session."""

import base64
import copy
import sys
from types import ModuleType, SimpleNamespace

import numpy
import pytest
from command_line import by_import, content, dlprof

from dlprof.inference.base import ONNX_MODEL_BASE64, TORCH_MODEL, UNITS
from dlprof.inference.torch import TorchCompileSteps, TorchTensorRTSteps
from dlprof.probes.base import ArraySpec

onnx = pytest.importorskip("onnx")
helper, FLOAT, INT64 = onnx.helper, onnx.TensorProto.FLOAT, onnx.TensorProto.INT64


ORT = ("fresh", "persistent", "bound", "two-buffers", "ahead")
OTHERS = {
    "linear.py": "import torch\nmodel = torch.nn.Linear(4, 2)\n",
    "tuple.py": "def model(x, out=None):\n    return x, x\n",
}


def write(path, nodes, inputs, outputs, initializers=()):
    """Write an ONNX file. ``inputs`` and ``outputs`` are names with type and shape."""
    parts = [
        [helper.make_tensor_value_info(name, *kind) for name, kind in side.items()]
        for side in (inputs, outputs)
    ]
    graph = helper.make_graph(nodes, "graph", *parts, list(initializers))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path


def node(kind, *names):
    return helper.make_node(kind, list(names[:-1]), [names[-1]])


ROWS = (FLOAT, ["rows", 4])
FILES = {
    "dense.onnx": ([node("Relu", "x", "y")], {"x": ROWS}, {"y": ROWS}),
    "two_inputs.onnx": ([node("Add", "x", "w", "y")], {"x": ROWS, "w": ROWS}, {"y": ROWS}),
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Write a user's models, sound and unsound."""
    path = tmp_path_factory.mktemp("models")
    for name, parts in FILES.items():
        write(path / name, *parts)
    for name, text in OTHERS.items():
        (path / name).write_text(text)
    return path


def scenario(path, shape, *steps):
    """Write a scenario with these steps: a framework and an optional model each."""
    lines = ['title = "steps"', 'question = "Which?"', f'shapes = ["{shape}"]', "diagnose = false"]
    for framework, model in steps:
        lines += ["[[step]]", f'framework = "{framework}"', "threads = 1"]
        lines += [f'model = "{model}"'] if model else []
    path.write_text("\n".join(lines))
    return path


@pytest.fixture
def run(tmp_path, folder):
    """Measure a model of the folder. Return the run and the results by strategy."""

    def run(framework, model, shape, *words, code=0):
        path = tmp_path / "session.json"
        file = scenario(folder / "scenario.toml", shape, (framework, model))
        done = dlprof("run", file, *words, "--quick", "-o", path)
        assert done.code == code, done.err
        return done, by_import(content(path)) if path.exists() else {}

    return run


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """Measure the built-in model on both frameworks. Return the results by framework."""
    folder = tmp_path_factory.mktemp("steps")
    file, path = folder / "s.toml", folder / "s.json"
    scenario(file, "8x64", ("torch", None), ("ort", None))
    done = dlprof("run", file, "--quick", "-o", path)
    assert done.code == 0, done.err
    found: dict[str, dict] = {}
    for result in content(path)["results"]:
        found.setdefault(result["case"]["producer"], {})[result["case"]["import"]] = result
    return found


# By strategy: the calls after which an output changes, and the buffers of eight outputs.
KEPT = {
    "fresh": (None, 8),
    "persistent": (1, 1),
    "copied": (1, 1),
    "bound": (1, 1),
    "two-buffers": (2, 2),
    "ahead": (None, 8),
}


@pytest.mark.parametrize(
    ("framework", "strategies"),
    [("torch", ("fresh", "persistent", "copied", "two-buffers", "ahead")), ("onnxruntime", ORT)],
)
def test_how_long_an_output_lasts_is_seen(both, framework, strategies):
    for name in strategies:
        result, (after, buffers) = both[framework][name], KEPT[name]
        assert (result["status"], result["values"]["verdict"]) == ("ok", "ok")
        reuse = result["step"]["reuse"]
        assert reuse["verdict"] == ("kept" if after is None else "overwritten")
        assert reuse["evidence"].get("after_calls") == after
        assert result["step"]["buffers"] == buffers
        assert result["step"]["change_ns"] is not None
        assert result["step"]["reading"]["median_ns"] > 0


def test_a_users_model_is_measured_by_the_strategies_that_it_allows(run):
    done, results = run("onnxruntime", "dense.onnx", "2x4")
    assert {result["status"] for result in results.values()} == {"ok"}
    assert set(results) == set(ORT)
    assert "dense.onnx" in done.out


@pytest.mark.parametrize(
    ("framework", "model", "shape", "said"),
    [
        ("onnxruntime", "two_inputs.onnx", "2x4", "2 inputs (x, w)"),
        ("torch", "tuple.py", "4", "a tuple"),
    ],
)
def test_a_model_that_cannot_be_measured_is_told_in_one_sentence(
    run, framework, model, shape, said
):
    done, _ = run(framework, model, shape, "--path", "*->fresh", code=4)
    assert said in done.sentence()


def test_both_frameworks_run_the_same_model():
    torch, onnxruntime = pytest.importorskip("torch"), pytest.importorskip("onnxruntime")
    values = numpy.random.default_rng(0).standard_normal((5, UNITS)).astype("float32")
    names = {"torch": torch, "x": torch.from_numpy(values)}
    exec(TORCH_MODEL, names)
    session = onnxruntime.InferenceSession(
        base64.b64decode(ONNX_MODEL_BASE64), providers=["CPUExecutionProvider"]
    )
    (output,) = session.run(None, {"x": values})
    with torch.no_grad():
        assert numpy.allclose(names["model"](names["x"]).numpy(), output, atol=1e-5)


def test_a_compiled_model_is_measured_with_and_without_a_clone(tmp_path):
    """A double stands in for the compiler, which takes a minute."""
    torch = pytest.importorskip("torch")
    steps, names = TorchCompileSteps(), {"modes": []}
    try:
        for text in (steps.setup, steps.create(ArraySpec((8, UNITS), "float32"))):
            exec(text, names)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                torch, "compile", lambda model, mode: names["modes"].append(mode) or model
            )
            exec(steps.load(ArraySpec((8, UNITS), "float32")), names)
        outputs = {}
        for way in steps.imports:
            exec(way.code.format(x="x"), names)
            outputs[way.name] = names.pop("y")
    finally:
        torch.set_grad_enabled(True)
    assert names["modes"] == ["reduce-overhead"]
    assert torch.equal(outputs["fresh"], outputs["returned"])


def test_torch_tensorrt_compiles_an_engine_for_each_strategy(monkeypatch):
    """A double stands in for the library's compiler, and torch runs the model."""
    torch = pytest.importorskip("torch")
    switched_on = []

    def compile_(module, ir, inputs, min_block_size):
        return copy.deepcopy(module)

    def enable(module):
        return SimpleNamespace(set_pre_allocated_output=lambda on: switched_on.append((module, on)))

    double = ModuleType("torch_tensorrt")
    double.compile, double.Input = compile_, SimpleNamespace
    double.runtime = SimpleNamespace(enable_pre_allocated_outputs=enable)
    monkeypatch.setitem(sys.modules, "torch_tensorrt", double)
    steps, names = TorchTensorRTSteps(), {}
    spec = ArraySpec((8, UNITS), "float32")
    try:
        for text in (steps.setup, steps.create(spec), steps.load(spec)):
            exec(text, names)
        for way in steps.imports:
            exec(way.code.format(x="x"), names)
            assert names.pop("y").shape == (8, UNITS)
    finally:
        torch.set_grad_enabled(True)
    assert switched_on == [(names["ahead"], True)]
    assert names["ahead"] is not names["model"]
