"""Steps of inference: how frameworks run a model, and where they put its output."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import PurePath

from dlprof.inference.base import Steps
from dlprof.inference.onnxruntime import OnnxRuntimeSteps
from dlprof.inference.torch import (
    TorchCompileSteps,
    TorchPackageSteps,
    TorchSteps,
    TorchTensorRTSteps,
)

PREFIX = "step:"
"""Begins a source of steps; JSON with the framework and the model follows."""

KNOWN: Mapping[str, type[Steps]] = {
    kind.name: kind
    for kind in (
        *(TorchSteps, TorchCompileSteps, TorchPackageSteps),
        *(OnnxRuntimeSteps, TorchTensorRTSteps),
    )
}


def reference(framework: str, model_file: str = "", threads: int = 0) -> str:
    """Return the source of a framework's steps, for :func:`dlprof.worker.loading.load`."""
    return PREFIX + json.dumps({"framework": framework, "model": model_file, "threads": threads})


def steps_name(framework: str, model_file: str = "") -> str:
    """Return the name of steps: ``torch``, or ``onnxruntime:net.onnx`` with a model's file."""
    return f"{framework}:{PurePath(model_file).name}" if model_file else framework


def load(source: str) -> Steps:
    """Return the steps of a source that :func:`reference` wrote."""
    fields = json.loads(source.removeprefix(PREFIX))
    kind = KNOWN[fields["framework"]]
    members = {
        "name": steps_name(kind.name, fields["model"]),
        "aliases": (),
        "model_file": fields["model"],
        "threads": fields["threads"],
    }
    found: Steps = type(kind.__name__, (kind,), members)()
    return found
