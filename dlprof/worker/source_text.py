"""Run source text of probes and of users: the one place that calls ``exec``."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from types import CodeType
from typing import Any


def statements(text: str, namespace: dict[str, Any], what: str) -> Callable[[], None]:
    """A function that runs ``text`` in ``namespace``. ``what`` names the text in tracebacks."""
    code = _compiled(text, what)
    return lambda: exec(code, namespace)  # noqa: S102 - the purpose of this module


@lru_cache(maxsize=256)
def _compiled(text: str, what: str) -> CodeType:
    # Without dont_inherit the text would get this module's __future__ imports.
    return compile(text, f"<{what}>", "exec", dont_inherit=True)


def execute(text: str, namespace: dict[str, Any], what: str) -> None:
    statements(text, namespace, what)()


def define(text: str, namespace: dict[str, Any], what: str) -> dict[str, Any]:
    """The functions that ``text`` defines, by name. Their global names are ``namespace``."""
    scope: dict[str, Any] = {}
    exec(_compiled(text, what), namespace, scope)  # noqa: S102
    return scope


def compile_call(code: str, namespace: dict[str, Any], arguments: str = "") -> Callable[..., Any]:
    """A function of ``arguments`` that evaluates the expression ``code`` in ``namespace``."""
    text = f"def call({arguments}):\n    return {code}\n"
    call: Callable[..., Any] = define(text, namespace, "dlprof")["call"]
    return call
