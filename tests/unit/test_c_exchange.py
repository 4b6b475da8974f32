"""The C exchange API as a framework's files say, without an import."""

from __future__ import annotations

import pytest

from dlprof.probes.base import Probe
from dlprof.worker import inspect

pytestmark = pytest.mark.unit


class Framework(Probe):
    name = "framework"
    module = "pretended_framework"
    distributions = ("framework",)
    c_exchange_files = ("pretended_framework/core*.py",)


@pytest.fixture
def package(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    folder = tmp_path / "pretended_framework"
    folder.mkdir()
    (folder / "__init__.py").write_text("raise SystemExit('imported')")
    return folder


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("def __dlpack__(self): ...\n__dlpack_c_exchange_api__ = capsule", True),
        ("def __dlpack__(self): ...", False),
        ("nothing of the kind", None),
        ("", None),
    ],
)
def test_the_files_that_define_the_type_say_it(package, text, answer):
    (package / "core_array.py").write_text(text)
    assert inspect.c_exchange_declared(Framework()) is answer


def test_a_framework_that_is_not_installed_says_nothing():
    assert inspect.c_exchange_declared(Framework()) is None


@pytest.mark.parametrize("pattern", ["/absolute/*", "**", ""])
def test_patterns_that_name_no_file_say_nothing(package, monkeypatch, pattern):
    monkeypatch.setattr(Framework, "c_exchange_files", (pattern,))
    assert inspect.c_exchange_declared(Framework()) is None


def test_the_type_itself_is_asked_after_the_import(monkeypatch):
    class Array:
        __dlpack_c_exchange_api__ = "capsule"

    monkeypatch.setattr(Framework, "c_exchange_type", "Array")
    assert inspect.c_exchange_verified(Framework(), {"Array": Array}) is True
    assert inspect.c_exchange_verified(Framework(), {"Array": int}) is False
