"""Run source text of probes and of users: the one place that calls ``exec``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def statements(text: str, namespace: dict[str, Any], what: str) -> Callable[[], None]:
    """A function that runs ``text`` in ``namespace``. ``what`` names the text in tracebacks."""
    # Without dont_inherit the text would get this module's __future__ imports.
    code = compile(text, f"<{what}>", "exec", dont_inherit=True)
    return lambda: exec(code, namespace)  # noqa: S102 - the purpose of this module


def execute(text: str, namespace: dict[str, Any], what: str) -> None:
    """Run statements once."""
    statements(text, namespace, what)()


def define(text: str, namespace: dict[str, Any], what: str) -> dict[str, Any]:
    """The functions that ``text`` defines, by name. Their global names are ``namespace``."""
    scope: dict[str, Any] = {}
    exec(compile(text, f"<{what}>", "exec", dont_inherit=True), namespace, scope)  # noqa: S102
    return scope


def compile_call(code: str, namespace: dict[str, Any], arguments: str = "") -> Callable[..., Any]:
    """A function of ``arguments`` that evaluates the expression ``code`` in ``namespace``."""
    text = f"def call({arguments}):\n    return {code}\n"
    call: Callable[..., Any] = define(text, namespace, "dlprof")["call"]
    return call
