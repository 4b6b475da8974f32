"""The measured half of dlprof imports only the standard library and frameworks."""

import ast
import sys
from pathlib import Path

import dlprof
from dlprof import inference
from dlprof.probes.builtin import ALL

ROOT = Path(dlprof.__file__).parent
PARTS = ("protocol", "probes", "worker", "conformance", "selftest", "device", "inference", "tracer")
FRAMEWORKS = {probe.module.partition(".")[0] for probe in (*ALL, *inference.KNOWN.values())} | {
    "ml_dtypes",
    "cupyx",
}
OPTIONAL = {"cuda", "cupti", "pynvml"}
"""NVIDIA's own bindings, used if they are installed."""
ALLOWED = {*sys.stdlib_module_names, *FRAMEWORKS, *OPTIONAL}


def imported(tree: ast.AST) -> set[str]:
    """Return the modules of all imports, including those in functions and in source text."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "a relative import"
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            found.add(node.args[0].value)
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and "import " in node.value
        ):
            try:
                found |= imported(ast.parse(node.value))
            except (SyntaxError, ValueError):
                continue
    return found


def is_allowed(name: str) -> bool:
    root, _, rest = name.partition(".")
    if root == "dlprof":
        return not rest or rest.partition(".")[0] in PARTS
    return root in ALLOWED


def test_its_modules_import_the_standard_library_and_the_frameworks_under_test():
    paths = [path for part in PARTS for path in sorted((ROOT / part).rglob("*.py"))]
    found = {path: imported(ast.parse(path.read_text(encoding="utf-8"))) for path in paths}
    assert any(found.values())
    assert [(path, name) for path in paths for name in found[path] if not is_allowed(name)] == []
