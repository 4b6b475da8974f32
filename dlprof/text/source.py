"""Python source text: laid out for a reader, and searched for the names that it uses."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterable, Iterator
from typing import Literal

from dlprof.errors import NoReproducer

WIDTH = 84
"""Of the body of a function, before it is indented."""
NOT_PYTHON = (SyntaxError, ValueError, RecursionError, MemoryError)
"""What ``ast.parse`` and ``compile`` raise."""


def block(*parts: str) -> str:
    """The parts under each other, without the empty ones."""
    return "\n".join(part for part in parts if part.strip())


def inside(text: str) -> str:
    """``text`` one step to the right."""
    return textwrap.indent(text, "    ")


def parsed(text: str, mode: Literal["exec", "eval"] = "exec") -> ast.Module:
    """The statements of ``text``. Raises :class:`NoReproducer` where it is not Python."""
    try:
        tree = ast.parse(text, mode=mode)
    except NOT_PYTHON as error:
        raise NoReproducer(f"the session's source text is not Python: {error}") from None
    return tree if isinstance(tree, ast.Module) else ast.Module([], [])


def plain(text: str) -> str:
    """The statements of ``text``, each on a line of its own."""
    return ast.unparse(parsed(text))


def folded(text: str) -> str:
    """``text`` with each statement that is too long for a line broken at its dots and brackets."""
    return "\n".join(map(_folded, text.splitlines()))


def _folded(line: str) -> str:
    statement = line.strip()
    margin = line[: len(line) - len(line.lstrip())]
    if len(line) <= WIDTH:
        return line
    try:
        (tree,) = ast.parse(statement).body
    except NOT_PYTHON:
        return line  # a comment, or the head of a block
    value = getattr(tree, "value", None)
    if not isinstance(value, ast.expr) or value.end_col_offset is None:
        return line
    code = statement.encode()
    head, tail = code[: value.col_offset].decode(), code[value.end_col_offset :].decode()
    lines = _lines(value, WIDTH - len(margin) - 4)
    if len(_links(value)) > 1:
        lines = ["(", *map(inside, lines), ")"]
    first, *rest = "\n".join((f"{head}{lines[0]}", *lines[1:])).splitlines()
    return "\n".join((margin + first, *(margin + one for one in rest))) + tail


def _lines(node: ast.expr | ast.keyword, width: int) -> list[str]:
    """An expression in lines that may stand between brackets."""
    text = ast.unparse(node)
    if len(text) <= width or isinstance(node, ast.keyword):
        return [text]
    links = _links(node)
    if len(links) > 1:
        first, *rest = links
        return [*_lines(first, width), *(ast.unparse(one) for one in rest)]
    parts: list[ast.expr | ast.keyword] = []
    head = "("
    if isinstance(node, ast.Call):
        parts, head = [*node.args, *node.keywords], f"{ast.unparse(node.func)}("
    elif isinstance(node, ast.Tuple):
        parts = [*node.elts]
    if not parts:
        return [text]
    together = ", ".join(map(ast.unparse, parts))
    if isinstance(node, ast.Call) and len(together) <= width - 4:
        return [head, inside(together), ")"]
    comma = "" if len(parts) == 1 and isinstance(node, ast.Call) else ","
    lines = ("\n".join(_lines(part, width - 4)) + comma for part in parts)
    return [head, *map(inside, lines), ")"]


def _links(node: ast.expr | ast.keyword) -> list[ast.expr]:
    """``f(a).g(b)[1:].h(c)`` as ``f(a)``, ``.g(b)[1:]`` and ``.h(c)``."""
    call, slices = node, []
    while isinstance(call, ast.Subscript):
        slices.append(call.slice)
        call = call.value
    if not isinstance(call, ast.Call):
        return []
    method = call.func
    earlier = _links(method.value) if isinstance(method, ast.Attribute) else []
    if not isinstance(method, ast.Attribute) or not earlier:
        return [node] if isinstance(node, ast.expr) else []
    link: ast.expr = ast.Call(ast.Name(f".{method.attr}"), call.args, call.keywords)
    for slice_ in reversed(slices):
        link = ast.Subscript(link, slice_)
    return [*earlier, link]


def used(text: str) -> set[str]:
    """The names in a text."""
    return _used(parsed(text))


def _used(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def made(text: str) -> set[str]:
    """The names that a text gives to something, its functions and their arguments included."""
    found: set[str] = set()
    for node in ast.walk(parsed(text)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.stmt):
            found |= _bound(node)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
    return found


def _bound(statement: ast.stmt) -> set[str]:
    """The names that a statement makes; none where that is not known."""
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {alias.asname or alias.name.partition(".")[0] for alias in statement.names}
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return {statement.name}
    if isinstance(statement, ast.Assign):
        return {target.id for target in statement.targets if isinstance(target, ast.Name)}
    return set()


def merged(texts: Iterable[str]) -> str:
    """The statements of several setups, each import alone, each once."""
    singles = (one for text in texts for tree in parsed(text).body for one in _singles(tree))
    return "\n".join(dict.fromkeys(map(ast.unparse, singles)))


def _singles(statement: ast.stmt) -> Iterator[ast.stmt]:
    """A statement; an import of several names as several imports."""
    if isinstance(statement, ast.Import):
        yield from (ast.Import([alias]) for alias in statement.names)
    elif isinstance(statement, ast.ImportFrom):
        for alias in statement.names:
            yield ast.ImportFrom(statement.module, [alias], statement.level)
    else:
        yield statement


def needed(setup: str, names: set[str]) -> str:
    """The statements of ``setup`` that make ``names``, and those that these need."""
    kept: list[str] = []
    for statement in reversed(parsed(setup).body):
        bound = _bound(statement)
        if bound & names or not bound:
            names = names | _used(statement)
            kept.insert(0, ast.unparse(statement))
    return "\n".join(kept)


def imported(setup: str) -> dict[str, str]:
    """The modules that a setup imports, and the names that they have there."""
    return {
        alias.name: alias.asname or alias.name
        for statement in parsed(setup).body
        if isinstance(statement, ast.Import)
        for alias in statement.names
    }
