"""The public surface, and what importing it loads."""

from __future__ import annotations

import subprocess
import sys

import pytest

import dlprof

pytestmark = pytest.mark.unit

HEAVY = {
    *("numpy", "pandas", "pyarrow", "scipy", "pydantic", "rich", "typer", "jinja2"),
    *("torch", "tensorflow", "jax", "cupy", "numba", "onnxruntime", "cuda"),
}


@pytest.mark.parametrize("name", dlprof.__all__)
def test_every_public_name_is_there(name):
    assert getattr(dlprof, name) is not None


def test_another_name_is_answered_with_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'dlprof' has no attribute 'other'"):
        dlprof.other  # noqa: B018 - the access is the test


@pytest.mark.parametrize(
    "statement", ["import dlprof", "import dlprof.worker.serve, dlprof.probes, dlprof.inference"]
)
def test_importing_dlprof_or_its_worker_loads_nothing_heavy(statement):
    code = f"{statement}\nimport sys\nprint(*sorted({{name.partition('.')[0] for name in sys.modules}}))"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert not set(done.stdout.split()) & HEAVY
