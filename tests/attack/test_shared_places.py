"""Several processes at once: pytest with parallel workers."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = """
import pytest

@pytest.mark.parametrize("turn", range(4))
def test_a_view(dlprof, turn):
    dlprof.assert_view("torch", "numpy", path="x.numpy()", shape="16")

@pytest.mark.parametrize("turn", range(2))
def test_a_copy_is_no_view(dlprof, turn):
    dlprof.assert_view("torch", "numpy", path="numpy.array(x)", shape="16")
"""


@pytest.mark.nightly
def test_parallel_workers_of_pytest_measure_each_for_itself_and_agree(tmp_path):
    pytest.importorskip("torch")
    (tmp_path / "test_conversions.py").write_text(TESTS, encoding="utf-8")
    root = str(Path(__file__).parents[2])
    plugins = ("-p", "dlprof.pytest_plugin", "-p", "xdist", "-p", "no:cacheprovider")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "2", *plugins, "--color=no", tmp_path],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": root, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert "2 failed, 4 passed" in done.stdout, done.stdout + done.stderr
    assert "numpy.array(x): a copy" in done.stdout
