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


_prepared: dict[str, dict[str, Any]] = {}


def prepare(text: str, namespace: dict[str, Any]) -> None:
    """Run a setup in ``namespace``, once per process unless it uses ``x`` or ``work``.

    It may compile for seconds. A function that knew ``x`` would keep it alive.
    """
    if {"x", "work"} & _names(compile(text, "<setup>", "exec")):
        execute(text, namespace, "setup")
        return
    if text not in _prepared:
        before = {name: value for name, value in namespace.items() if name != "x"}
        after = dict(before)
        execute(text, after, "setup")
        _prepared[text] = {
            name: value for name, value in after.items() if value is not before.get(name)
        }
    namespace |= _prepared[text]


def _names(code: CodeType) -> set[str]:
    """The global names in a text, those in its functions included."""
    inner = (_names(one) for one in code.co_consts if isinstance(one, CodeType))
    return set(code.co_names).union(*inner)
