"""Check and run source text of probes and of users: the one place that calls ``exec``."""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from functools import lru_cache
from string import Formatter
from types import CodeType
from typing import Any

from dlprof.worker.refusal import FaultyProbe


def statements(text: str, namespace: dict[str, Any], title: str) -> Callable[[], None]:
    """Return a function that runs ``text`` in ``namespace``. ``title`` names it in tracebacks."""
    code = _compiled(text, title)
    return lambda: exec(code, namespace)  # noqa: S102 - the purpose of this module


@lru_cache(maxsize=256)
def _compiled(text: str, title: str) -> CodeType:
    # Without dont_inherit the text would get this module's __future__ imports.
    return compile(text, f"<{title}>", "exec", dont_inherit=True)


def execute(text: str, namespace: dict[str, Any], title: str) -> None:
    statements(text, namespace, title)()


def define(text: str, namespace: dict[str, Any], title: str) -> dict[str, Any]:
    """Return the functions that ``text`` defines, by name. Their globals are ``namespace``."""
    scope: dict[str, Any] = {}
    exec(_compiled(text, title), namespace, scope)  # noqa: S102
    return scope


def compile_call(code: str, namespace: dict[str, Any], arguments: str = "") -> Callable[..., Any]:
    """Return a function of ``arguments`` that evaluates ``code`` in ``namespace``."""
    text = f"def call({arguments}):\n    return {code}\n"
    call: Callable[..., Any] = define(text, namespace, "dlprof")["call"]
    return call


def check_text(value: Any, place: str) -> str:
    need(isinstance(value, str), place, "text", value)
    return str(value)


def check_code(
    value: Any, place: str, needs_array: bool = True, names: tuple[str, ...] = ("x",)
) -> str:
    """Return ``value`` if it is a Python expression with ``{x}``.

    It may lack ``{x}`` if it needs no array. Each of ``names`` may stand in braces.
    """
    code = check_text(value, place)
    try:
        fields = {field for _, field, *_ in Formatter().parse(code) if field is not None}
        right = fields <= set(names) and ("x" in fields or not needs_array)
        compile(code.format(**{name: name for name in fields}), place, "eval")
    except (SyntaxError, ValueError) as fault:
        raise FaultyProbe(f"{place} is not a Python expression: {code!r} ({fault})") from None
    allowed = ", ".join(f"{{{name}}}" for name in names)
    need(right, place, f"an expression of {allowed}", code)
    return code


def need(is_right: bool, place: str, expected: str, value: Any) -> None:
    if not is_right:
        raise FaultyProbe(f"{place} must be {expected}, not {reprlib.repr(value)}")
