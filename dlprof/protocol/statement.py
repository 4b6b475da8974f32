"""A user's own conversion: one expression of one array, cut into an export and an import.

The parent checks the text before it starts anything. The worker cuts it and recognises the
frameworks. The result is the source of two probes: ``code:`` and JSON.
"""

from __future__ import annotations

import ast
import json
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

ARRAY = "x"
"""The source's name in the measured code."""
STATEMENT = "statement"
"""The name of the import that is a user's own statement."""


@dataclass(frozen=True)
class Side:
    """One framework of a conversion. ``probe`` says where its own probe is found, if it has one.

    ``wait`` is source text that waits for an object of a framework without a probe.
    """

    name: str
    module: str
    probe: tuple[str, str] | None = None
    wait: str = ""


@dataclass(frozen=True)
class OwnCode:
    """A user's conversion, as :mod:`dlprof.worker.recognise` understood it."""

    PREFIX: ClassVar[str] = "code:"

    setup: str
    source: str
    export: str
    import_: str
    protocol: str
    producer: Side
    consumer: Side
    result_device: str = ""
    returns_array: bool = True

    def reference(self) -> str:
        return self.PREFIX + json.dumps(vars(self), default=vars)

    @classmethod
    def read(cls, reference: str) -> OwnCode:
        fields = json.loads(reference.removeprefix(cls.PREFIX))
        for name in ("producer", "consumer"):
            side = fields[name]
            fields[name] = Side(**{**side, "probe": side["probe"] and tuple(side["probe"])})
        return cls(**fields)


class FaultyStatement(Exception):
    """The text cannot be measured; the message says why."""


@dataclass(frozen=True)
class Cut:
    """An export and an import of ``{x}`` that together are the statement."""

    export: str
    import_: str

    @property
    def code(self) -> str:
        return self.import_.format(x=self.export.format(x=ARRAY))


def check_setup(text: str) -> None:
    """Raise :class:`FaultyStatement` for a setup that is not Python."""
    _parse(text, "the setup", "exec")


def parse(text: str) -> ast.expr:
    """The expression. Raises :class:`FaultyStatement` for any other text."""
    if not text.strip():
        raise FaultyStatement("the statement is empty")
    try:
        found = _parse(text.strip(), "the statement", "eval")
    except FaultyStatement:
        _parse(text, "the statement", "exec")
        raise FaultyStatement(
            "the statement must be one expression, whose value is the converted array"
        ) from None
    if not isinstance(found, ast.Expression):
        raise TypeError(found)
    return found.body


def names(tree: ast.expr) -> list[str]:
    """The names that the expression reads, in their order."""
    found = sorted(_names(tree), key=lambda name: (name.lineno, name.col_offset))
    return list(dict.fromkeys(name.id for name in found))


def normal(name: str) -> str:
    """``name`` as Python reads it: identifiers are compared in form NFKC (PEP 3131)."""
    return unicodedata.normalize("NFKC", name)


def check_source(tree: ast.expr, source: str) -> None:
    """Raise :class:`FaultyStatement` unless ``source``, in normal form, is the array's one name."""
    if not source.isidentifier():
        raise FaultyStatement(f"the source must be a name, not {source!r}")
    if source not in names(tree):
        raise FaultyStatement(f"the statement does not use the source {source}")
    if isinstance(tree, ast.Name):
        raise FaultyStatement(f"the statement is the source {source} itself and converts nothing")
    if source in _bound(tree):
        raise FaultyStatement(f"the statement uses the name {source} for something else as well")
    if source != ARRAY and ARRAY in {*names(tree), *_bound(tree)}:
        raise FaultyStatement(
            f"the statement uses {ARRAY} besides the source {source}: name the source {ARRAY}"
        )


def whole(text: str, source: str) -> Cut:
    """The statement in one piece: the source itself is handed over."""
    tree = parse(text)
    return Cut("{x}", _replaced(text.strip(), tree, source))


def cuts(text: str, source: str) -> Iterator[Cut]:
    """The ways to cut a statement in two, innermost export first.

    None if the statement uses the source more than once: it is not handed over once.
    """
    text, tree = text.strip(), parse(text)
    uses = list(_uses(tree, source))
    if len(uses) != 1 or "\n" in text:
        return
    for inner in _around(tree, uses[0]):
        segment = ast.get_source_segment(text, inner) or ""
        try:
            export = whole(segment, source).import_
        except FaultyStatement:
            continue  # a slice, or an unpacked argument: no expression of its own
        cut = Cut(export, _spliced(text, [inner]))
        if _same(cut.code, text, source):
            yield cut


def _parse(text: str, what: str, mode: str) -> ast.AST:
    try:
        compile(text, "<string>", mode, dont_inherit=True)
        return ast.parse(text, mode=mode)
    except SyntaxError as fault:
        line = f", line {fault.lineno}" if "\n" in text.strip() and fault.lineno else ""
        raise FaultyStatement(f"{what} is not Python{line}: {fault.msg}") from None
    except (ValueError, RecursionError, MemoryError) as fault:
        raise FaultyStatement(f"{what} is not Python: {fault or type(fault).__name__}") from None


def _names(tree: ast.expr) -> Iterator[ast.Name]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node


def _bound(tree: ast.expr) -> set[str]:
    """The names that the expression binds itself."""
    stored = {name.id for name in _names(tree) if not isinstance(name.ctx, ast.Load)}
    return stored | {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}


def _uses(tree: ast.expr, source: str) -> Iterator[ast.Name]:
    return (name for name in _names(tree) if name.id == source)


def _around(tree: ast.expr, inner: ast.expr) -> list[ast.expr]:
    """The expressions between ``inner`` and the whole, both excluded, innermost first."""
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    found: list[ast.expr] = []
    node: ast.AST = inner
    while node in parents and (node := parents[node]) is not tree:
        if isinstance(node, ast.expr) and not isinstance(node, _LATER):
            found.append(node)
        elif not isinstance(node, ast.keyword):
            return []
    return [] if isinstance(tree, _LATER) else found


_LATER = (
    ast.BoolOp,
    ast.DictComp,
    ast.GeneratorExp,
    ast.IfExp,
    ast.Lambda,
    ast.ListComp,
    ast.SetComp,
)
"""Expressions that evaluate their parts later, several times or not at all."""


def _replaced(text: str, tree: ast.expr, source: str) -> str:
    """``text`` with ``{x}`` for the source, ready for ``str.format``.

    One line stays as the user typed it. Several lines are written anew, and so is code whose
    positions are unknown (inside f-strings before Python 3.12).
    """
    nodes = list(_uses(tree, source))
    if "\n" not in text:
        found = _spliced(text, nodes)
        if _same(found.format(x=ARRAY), text, source):
            return found
    for name in nodes:
        name.id = _MARK
    return _escaped(ast.unparse(tree)).replace(_MARK, "{x}")


_MARK = "dlprof_array_of_the_statement"


def _spliced(text: str, nodes: Sequence[ast.expr]) -> str:
    data = text.encode()
    parts, at = [], 0
    for node in sorted(nodes, key=lambda node: node.col_offset):
        parts += [_escaped(data[at : node.col_offset].decode(errors="replace")), "{x}"]
        at = node.end_col_offset or 0
    return "".join(parts) + _escaped(data[at:].decode(errors="replace"))


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _same(code: str, text: str, source: str) -> bool:
    """Whether ``code`` is ``text`` with the array in the place of the source."""
    try:
        measured, typed = parse(code), parse(text)
    except FaultyStatement:
        return False
    for name in _names(typed):
        name.id = ARRAY if name.id == source else name.id
    return ast.dump(measured) == ast.dump(typed)
