"""The pytest plugin with real workers, as a project's own tests use it."""

import os
import subprocess
import sys
from pathlib import Path

from command_line import FAKE

TESTS = f"""
import sys

FAKE = {{"probes": {FAKE!r}, "shape": "16"}}

def test_a_view(dlprof):
    dlprof.assert_view("fake", "fake", path="array->view", **FAKE)

def test_a_copy_is_no_view(dlprof):
    dlprof.assert_view("fake", "fake", path="array->copy", **FAKE)

def test_no_framework_is_imported_here():
    assert not {{"torch", "jax", "tensorflow", "cupy"}} & set(sys.modules)
"""


def test_a_project_tests_its_conversions(tmp_path):
    file = tmp_path / "test_conversions.py"
    file.write_text(TESTS, encoding="utf-8")
    options = ("-p", "dlprof.pytest_plugin", "-p", "no:cacheprovider", "-rsf", "--color=no")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-W", "error", *options, file],
        cwd=tmp_path,
        env=plain_environment(),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "from_buffer_copy(x): copy" in done.stdout
    assert "FAILED test_conversions.py::test_a_copy_is_no_view" in done.stdout
    assert "1 failed, 2 passed" in done.stdout


def plain_environment():
    """This process's, with this checkout, and no plugin but the one that is named."""
    root = str(Path(__file__).parents[2])
    return {**os.environ, "PYTHONPATH": root, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
