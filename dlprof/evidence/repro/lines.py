"""Lay out source text: what probes say in one line, in lines that a page can hold."""

from __future__ import annotations

import ast
import io
import re
import textwrap
import tokenize
from typing import NamedTuple

from dlprof.errors import NoReproducer

WIDTH = 88
BODY_WIDTH = WIDTH - 4
"""Of the body of a function, before it is moved to its place."""
STEP = "    "
SIMPLE = re.compile(r"""'[^'"\\\n]*'""")
"""A string literal whose quotes can be exchanged."""
OPEN, CLOSE = "([{", ")]}"


def block(*parts: str) -> str:
    """The parts under each other, without the empty ones; what ends a line leaves one empty."""
    return "\n".join(part for part in parts if part.strip())


def inside(text: str) -> str:
    """``text`` one step to the right."""
    return textwrap.indent(text, STEP)


def plain(text: str) -> str:
    """The statements of ``text``, one on each line. Raises :class:`NoReproducer` if it is none."""
    try:
        tree = ast.parse(text)
        tree.body = [step for statement in tree.body for step in _steps(statement)]
        return double_quoted(ast.unparse(tree))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise NoReproducer(f"the session's source text is not Python: {error}") from None


def _steps(statement: ast.stmt) -> list[ast.stmt]:
    """``x = f(a).g(b)`` as ``x = f(a)`` and ``x = x.g(b)``, where it is too long for a line."""
    if len(ast.unparse(statement)) <= BODY_WIDTH or not isinstance(statement, ast.Assign):
        return [statement]
    target, call = statement.targets[0], statement.value
    if not (isinstance(target, ast.Name) and isinstance(call, ast.Call)):
        return [statement]
    method = call.func
    if not isinstance(method, ast.Attribute) or not isinstance(
        method.value, ast.Call | ast.Subscript
    ):
        return [statement]
    first = ast.Assign(statement.targets, method.value, lineno=0)
    method.value = ast.Name(target.id, ast.Load())
    return [*_steps(first), statement]


def double_quoted(text: str) -> str:
    """``text`` with its simple string literals in double quotes."""
    lines = text.splitlines()
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    for token in reversed([token for token in tokens if SIMPLE.fullmatch(token.string)]):
        row, (begin, end) = token.start[0] - 1, (token.start[1], token.end[1])
        lines[row] = f'{lines[row][:begin]}"{token.string[1:-1]}"{lines[row][end:]}'
    return "\n".join(lines)


def folded(text: str) -> str:
    """``text`` with every line that is too long broken at its brackets."""
    return "\n".join(_folded(line) for line in text.splitlines())


def _folded(line: str) -> str:
    if len(line) <= BODY_WIDTH or line.lstrip().startswith(("#", '"""')):
        return line
    pair = _widest(line)
    if pair is None:
        return line
    margin = line[: len(line) - len(line.lstrip())]
    head, body, tail = line[: pair.begin + 1], line[pair.begin + 1 : pair.end], line[pair.end :]
    within = f"{margin}{STEP}{body.strip()}"
    if len(within) > BODY_WIDTH:
        items = _items(body)
        end = "," if len(items) > 1 else ""
        within = "\n".join(_folded(f"{margin}{STEP}{item}{end}") for item in items)
    return "\n".join((head, within, _folded(margin + tail)))


class Pair(NamedTuple):
    """Columns of a bracket and of the one that closes it."""

    begin: int
    end: int


def _widest(line: str) -> Pair | None:
    """The outermost pair of brackets that holds most."""
    depth, begin = 0, 0
    found: list[Pair] = []
    for text, column in _brackets(line):
        if text in OPEN:
            begin = column if depth == 0 else begin
            depth += 1
        else:
            depth -= 1
            if depth == 0 and column - begin > 1:
                found.append(Pair(begin, column))
    return max(found, key=lambda pair: pair.end - pair.begin, default=None)


def _items(body: str) -> list[str]:
    """What stands between the commas of ``body``."""
    depth, begin, items = 0, 0, []
    for text, column in _brackets(body, commas=True):
        depth += (text in OPEN) - (text in CLOSE)
        if text == "," and depth == 0:
            items.append(body[begin:column].strip())
            begin = column + 1
    return [*items, *([body[begin:].strip()] if body[begin:].strip() else [])]


def _brackets(line: str, commas: bool = False) -> list[tuple[str, int]]:
    """Brackets (and commas) of ``line`` with their columns, but not those within strings."""
    wanted = OPEN + CLOSE + ("," if commas else "")
    shift = len(line) - len(line.lstrip())
    found = []
    literal = 0
    try:
        for token in tokenize.generate_tokens(io.StringIO(line.strip()).readline):
            name = tokenize.tok_name[token.type]
            literal += name.startswith("FSTRING_START") - name.startswith("FSTRING_END")
            if token.type == tokenize.OP and token.string in wanted and not literal:
                found.append((token.string, token.start[1] + shift))
    except (tokenize.TokenError, IndentationError):
        pass  # half a statement, as at the end of a line that was broken: what was read counts
    return found
