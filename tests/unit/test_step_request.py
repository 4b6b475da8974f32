"""What a user names of steps becomes a request, or one sentence that says why not."""

from __future__ import annotations

import ast

import pytest

from dlprof import inference
from dlprof.errors import UsageError
from dlprof.plan.step_request import Asked, asked, default_shapes, framework
from dlprof.probes.base import ArraySpec
from dlprof.worker import loading

pytestmark = pytest.mark.unit


@pytest.fixture
def file(tmp_path):
    def make(name):
        path = tmp_path / name
        path.write_text("")
        return str(path)

    return make


def said(function, *arguments):
    with pytest.raises(UsageError) as error:
        function(*arguments)
    return str(error.value)


def test_without_names_all_frameworks_run_the_built_in_model():
    assert [one.framework for one in asked([], None)] == ["torch", "onnxruntime", "torch_tensorrt"]


def test_a_model_file_is_run_by_the_frameworks_that_read_it(file):
    assert [one.framework for one in asked([], file("net.onnx"))] == ["onnxruntime"]
    assert [one.framework for one in asked([], file("net.py"))] == ["torch", "torch_tensorrt"]


def test_an_alias_names_the_framework():
    assert framework("ORT") == "onnxruntime"
    assert framework("TensorRT") == "torch_tensorrt"


def test_an_unknown_framework_is_told_with_the_known_ones():
    assert said(framework, "jax") == (
        "dlprof measures no steps of 'jax': known are torch, onnxruntime, torch_tensorrt"
    )
    assert said(framework, "onnxruntim").endswith("did you mean 'onnxruntime'?")


def test_a_missing_model_is_named():
    assert said(asked, ["torch"], "nowhere.py") == "there is no model file nowhere.py"


def test_a_model_of_another_framework_is_refused(file):
    path = file("net.onnx")
    assert said(asked, ["torch"], path) == "torch runs models in .py files, and not net.onnx"


def test_a_model_that_nobody_reads_is_refused(file):
    assert "is neither .py nor .onnx" in said(asked, [], file("net.pt"))


def test_a_model_of_ones_own_needs_a_shape():
    assert "--shape" in said(default_shapes, "net.onnx", False)
    assert default_shapes(None, named=False) == ("1x64", "1024x64", "16384x64")


def test_the_source_of_a_step_gives_it_again():
    (found,) = loading.load(Asked("onnxruntime", "/a/net.onnx", 2).source)
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
@pytest.mark.parametrize("file", ["", "/a/b's.model"])
def test_input_and_model_are_made_by_python(kind, file):
    found = kind()
    found.model_file, found.threads = file, 2
    for spec in (ArraySpec((1, 64), "float32"), ArraySpec((), "int64"), ArraySpec((3,), "bool")):
        ast.parse("\n".join((found.setup, found.create(spec, 1), found.load(spec))))


@pytest.mark.parametrize("kind", inference.KNOWN.values(), ids=lambda kind: kind.name)
def test_every_framework_has_an_output_for_each_call_and_codes_of_its_own(kind):
    codes = [way.code for way in kind().imports]
    assert kind().imports[0].name == "fresh"
    assert len(codes) == len(set(codes))
