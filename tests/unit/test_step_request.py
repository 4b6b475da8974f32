"""What a user names of steps becomes a request, or one sentence that says why not."""

import ast

import pytest

from dlprof import inference
from dlprof.errors import UsageError
from dlprof.plan.request import Step, framework, steps_named
from dlprof.worker import loading


@pytest.fixture
def file(tmp_path):
    def make(name):
        path = tmp_path / name
        path.write_text("")
        return str(path)

    return make


def test_a_model_is_run_by_the_frameworks_that_read_it(file):
    found = {None: ["torch", "onnxruntime", "torch_tensorrt"], "net.onnx": ["onnxruntime"]}
    for name, expected in {**found, "net.py": ["torch", "torch_tensorrt"]}.items():
        model = None if name is None else file(name)
        assert [one.framework for one in steps_named([], model)] == expected


def test_an_alias_names_the_framework():
    assert (framework("ORT"), framework("TensorRT")) == ("onnxruntime", "torch_tensorrt")


@pytest.mark.parametrize(
    ("words", "model", "said"),
    [
        (["jax"], None, "known are torch, onnxruntime, torch_tensorrt"),
        (["onnxruntim"], None, "did you mean 'onnxruntime'?"),
        (["torch"], "nowhere.py", "nowhere.py"),
        (["torch"], "net.onnx", "torch reads .py"),
        ([], "net.pt", "onnxruntime reads .onnx"),
    ],
)
def test_what_cannot_be_run_is_told_with_what_can(file, words, model, said):
    path = file(model) if model and "nowhere" not in model else model
    with pytest.raises(UsageError, match=said.replace("?", r"\?")):
        steps_named(words, path)


def test_the_source_of_a_step_gives_it_again():
    (found,) = loading.load(Step("onnxruntime", "/a/net.onnx", 2).source)
    assert (found.name, found.model_file, found.threads) == (
        "onnxruntime:net.onnx",
        "/a/net.onnx",
        2,
    )


@pytest.mark.parametrize("kind", inference.KNOWN.values(), ids=lambda kind: kind.name)
def test_every_strategy_is_python_that_sets_an_output(kind):
    for way in kind().imports:
        tree = ast.parse(f"{way.setup}\n{way.code.format(x='x')}")
        stored = {
            node.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        assert "y" in stored


@pytest.mark.parametrize("kind", inference.KNOWN.values(), ids=lambda kind: kind.name)
def test_every_framework_has_an_output_for_each_call_and_codes_of_its_own(kind):
    codes = [way.code for way in kind().imports]
    assert kind().imports[0].name == "fresh"
    assert len(codes) == len(set(codes))
