"""The public surface, and what may be imported where."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import dlprof
from dlprof.probes import ALL

pytestmark = pytest.mark.unit

PACKAGE = Path(dlprof.__file__).parent
MEASURED = ("device", "inference", "probes", "protocol", "selftest", "worker")
"""What runs in the measured interpreter."""
INSIDE = sorted(path for folder in MEASURED for path in PACKAGE.glob(f"{folder}/**/*.py"))
FRAMEWORKS = {kind.module.partition(".")[0] for kind in ALL} | {"cupy", "cupti", "pynvml"}
HEAVY = (
    "numpy",
    "pandas",
    "pyarrow",
    "scipy",
    "pydantic",
    "rich",
    "typer",
    "jinja2",
    "pandas",
    "torch",
    "tensorflow",
    "jax",
    "cupy",
    "numba",
    "onnxruntime",
    "cuda",
)


def named(path):
    return str(path.relative_to(PACKAGE))


def test_all_is_sorted():
    assert dlprof.__all__ == sorted(dlprof.__all__)


def test_all_lists_each_name_once():
    assert len(set(dlprof.__all__)) == len(dlprof.__all__)


@pytest.mark.parametrize("name", dlprof.__all__)
def test_every_public_name_is_there(name):
    assert getattr(dlprof, name) is not None


def test_all_is_what_the_package_offers():
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    offered = {"__version__"}
    for node in tree.body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            offered |= {alias.asname or alias.name for line in node.body for alias in line.names}
    assert set(dlprof.__all__) == offered


def test_another_name_is_answered_with_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'dlprof' has no attribute 'other'"):
        dlprof.other  # noqa: B018 - the access is the test


def imported(path):
    """The modules that a file imports, in whatever function or branch the import stands."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", INSIDE, ids=named)
def test_the_measured_half_needs_only_the_standard_library_and_frameworks(path):
    own = tuple(f"dlprof.{folder}." for folder in MEASURED)
    for name in imported(path):
        root = name.partition(".")[0]
        known = root in sys.stdlib_module_names or root in FRAMEWORKS | {"ml_dtypes"}
        assert known or name.startswith(own) or name.removeprefix("dlprof.") in MEASURED, name


def loaded_by(statement):
    """The top-level modules that a fresh interpreter has loaded after a statement."""
    code = f"{statement}\nimport sys\nprint(*sorted({{name.partition('.')[0] for name in sys.modules}}))"
    command = [sys.executable, "-c", code]
    return set(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())


def test_importing_dlprof_loads_nothing_heavy():
    assert not loaded_by("import dlprof") & set(HEAVY)


def test_importing_all_of_the_worker_loads_nothing_heavy():
    modules = ", ".join(
        ".".join(("dlprof", *path.relative_to(PACKAGE).with_suffix("").parts))
        for path in INSIDE
        if not path.stem.startswith("__") and "selftest" not in path.parts
    )
    assert not loaded_by(f"import {modules}") & set(HEAVY)
