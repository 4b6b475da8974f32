"""The public surface, and what may be imported where."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import dlprof

pytestmark = pytest.mark.unit

PACKAGE = Path(dlprof.__file__).parent
FOLDERS = ("probes", "steps", "worker", "worker/step")
INSIDE = sorted(path for folder in FOLDERS for path in PACKAGE.glob(f"{folder}/*.py"))
HEAVY = (
    "numpy",
    "pandas",
    "pyarrow",
    "scipy",
    "pydantic",
    "rich",
    "typer",
    "jinja2",
    "altair",
    "vl_convert",
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


def module_level(body):
    """The statements that run when a module is imported, in whatever branch they stand."""
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        yield node
        for part in ("body", "orelse", "finalbody", "handlers"):
            yield from module_level(getattr(node, part, []))


def imported(path):
    """The modules that importing a file imports."""
    for node in module_level(ast.parse(path.read_text(encoding="utf-8")).body):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            if node.module in ("dlprof", "dlprof.worker", "dlprof.probes"):
                yield from (f"{node.module}.{alias.name}" for alias in node.names)
            else:
                yield node.module


@pytest.mark.parametrize("path", INSIDE, ids=named)
def test_what_runs_in_the_measured_interpreter_imports_the_standard_library_alone(path):
    for name in imported(path):
        own = name.startswith(("dlprof.probes.", "dlprof.inference", "dlprof.worker."))
        assert own or name.partition(".")[0] in sys.stdlib_module_names, name


@pytest.mark.parametrize(
    "path", [path for path in INSIDE if path.parent.name in ("probes", "steps")], ids=named
)
def test_probes_do_not_know_the_worker(path):
    assert not [name for name in imported(path) if name.startswith("dlprof.worker")]


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
        if not path.stem.startswith("__")
    )
    assert not loaded_by(f"import {modules}") & set(HEAVY)
