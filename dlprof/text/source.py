"""Python source text: laid out for a reader, and searched for the names that it uses."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterable
from typing import Literal

from dlprof.errors import NoReproducer

UNREADABLE = "the session's source text is not Python"
NOT_PYTHON = (SyntaxError, ValueError, RecursionError, MemoryError)
"""Errors of ``ast.parse`` and ``compile``."""


def block(*parts: str) -> str:
    """Return the parts under each other, without the empty ones."""
    return "\n".join(part for part in parts if part.strip())


def inside(text: str) -> str:
    """Return ``text`` indented one step."""
    return textwrap.indent(text, "    ")


def parsed(text: str, mode: Literal["exec", "eval"] = "exec") -> ast.Module:
    """Return the statements of ``text``. Raises :class:`NoReproducer` if it is not Python."""
    try:
        tree = ast.parse(text, mode=mode)
    except NOT_PYTHON as error:
        raise NoReproducer(f"{UNREADABLE}: {error}") from None
    return tree if isinstance(tree, ast.Module) else ast.Module([], [])


def plain(text: str) -> str:
    """Return the statements of ``text``, each on a line of its own."""
    return ast.unparse(parsed(text))


def used_names(text: str) -> set[str]:
    """Return the names in a text."""
    return {node.id for node in ast.walk(parsed(text)) if isinstance(node, ast.Name)}


def merged(texts: Iterable[str]) -> str:
    """Return the statements of several setups, each once."""
    statements = (ast.unparse(statement) for text in texts for statement in parsed(text).body)
    return "\n".join(dict.fromkeys(statements))


def needed(setup: str, names: set[str]) -> str:
    """Return ``setup`` without imports that neither ``names`` nor the rest of it use."""
    statements: list[str] = []
    for statement in reversed(parsed(setup).body):
        text = ast.unparse(statement)
        bound = set()
        if isinstance(statement, ast.Import | ast.ImportFrom):
            bound = {alias.asname or alias.name.partition(".")[0] for alias in statement.names}
        if not bound or bound & names:
            names = names | used_names(text)
            statements.insert(0, text)
    return "\n".join(statements)


def imported(setup: str) -> dict[str, str]:
    """Return the modules that a setup imports, with their names there."""
    return {
        alias.name: alias.asname or alias.name
        for statement in parsed(setup).body
        if isinstance(statement, ast.Import)
        for alias in statement.names
    }
