"""Recorded runs of real frameworks on the CPU, and measurements that replay them."""

import sys
from pathlib import Path

from pydantic import TypeAdapter

from dlprof.runner.catalog import inspect_interpreter
from dlprof.runner.measurement import Measurement
from dlprof.runner.progress import Watcher
from dlprof.runner.request import Request

RECORDED = Path(__file__).parent.parent / "recorded"
NUMPY_TORCH = RECORDED / "numpy-torch.jsonl"
THERE_AND_BACK = RECORDED / "there-and-back.jsonl"
"""NumPy and torch in both directions, inside and before loops."""


def measurement_of(recording, path) -> Measurement:
    """Replay the recorded run into the session ``path``."""
    header = recording.header
    asked = {**header["request"], "python": sys.executable, "command": ["run"]}
    request = TypeAdapter(Request).validate_python(asked)
    catalog = inspect_interpreter(sys.executable)
    return Measurement(request, catalog, path, Watcher())
