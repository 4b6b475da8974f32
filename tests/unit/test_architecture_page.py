"""The page of the architecture names every module."""

from __future__ import annotations

from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
TOLD_AS_ONE = ("cli", "probes", "repro", "rules", "steps", "synthetic")
"""Folders with one module for each verb, framework, rule or fault."""

MODULES = [
    path.relative_to(ROOT / "dlprof")
    for path in sorted((ROOT / "dlprof").rglob("*.py"))
    if path.name not in ("__init__.py", "__main__.py")
]


@pytest.mark.parametrize(
    "module", [path for path in MODULES if path.parts[0] not in TOLD_AS_ONE], ids=str
)
def test_every_module_is_named(module):
    assert f"`{module.stem}`" in PAGE


@pytest.mark.parametrize("folder", sorted({path.parts[0] for path in MODULES if path.parts[1:]}))
def test_every_folder_is_named(folder):
    assert f"{folder}/`" in PAGE
