"""A user's own conversion: one expression of one array, cut into an export and an import.

The parent checks the text before it starts anything. The worker cuts it and recognizes the
frameworks. The result is the source of two probes: ``code:`` and JSON.
"""

from __future__ import annotations

import ast
import copy
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, ClassVar, NamedTuple

ARRAY = "x"
"""The source's name in the measured code."""
STANDARD = ("asarray", "from_dlpack")
"""Functions whose ``copy`` the array API standard defines."""
STATEMENT = "statement"
"""The name of the import that is a user's own statement; further ones have a number."""


@dataclass(frozen=True)
class Side:
    """One framework of a conversion. ``probe`` refers to its own probe, if it has one.

    ``wait`` is source text that waits for an object of a framework without a probe, and
    ``distribution`` the package that it comes from.
    """

    name: str
    module: str
    probe: tuple[str, str] | None = None
    wait: str = ""
    distribution: str = ""


@dataclass(frozen=True)
class UserCode:
    """A user's conversion, as :mod:`dlprof.worker.inspect` understood it."""

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
    arrays: int = 1

    @classmethod
    def reference(cls, codes: Sequence[UserCode]) -> str:
        """Return the source of the probes of several conversions of one array."""
        return cls.PREFIX + json.dumps(codes, default=vars)

    @classmethod
    def read(cls, reference: str) -> list[UserCode]:
        codes = json.loads(reference.removeprefix(cls.PREFIX))
        for fields in codes:
            for name in ("producer", "consumer"):
                side = fields[name]
                fields[name] = Side(**{**side, "probe": side["probe"] and tuple(side["probe"])})
        return [cls(**fields) for fields in codes]


@dataclass(frozen=True)
class UserObject:
    """An object that an expression makes, as :mod:`dlprof.worker.inspect` understood it.

    ``imports`` is source text that the expression needs. ``exports`` are names, protocols and
    codes of the ways out of an object of a framework without a probe.
    """

    PREFIX: ClassVar[str] = "object:"

    expression: str
    imports: str
    side: Side
    exports: tuple[tuple[str, str, str], ...] = ()

    def reference(self) -> str:
        return self.PREFIX + json.dumps(vars(self), default=vars)

    @classmethod
    def read(cls, reference: str) -> UserObject:
        fields = json.loads(reference.removeprefix(cls.PREFIX))
        side = fields["side"]
        side = Side(**{**side, "probe": side["probe"] and tuple(side["probe"])})
        return cls(**{**fields, "side": side})


@dataclass(frozen=True)
class ProgramSource:
    """A command, the folder where it starts, and the seconds in which it must say hello."""

    PREFIX: ClassVar[str] = "program:"

    command: str
    folder: str
    limit_s: float

    def reference(self) -> str:
        return self.PREFIX + json.dumps(vars(self))

    @classmethod
    def read(cls, reference: str) -> ProgramSource:
        return cls(**json.loads(reference.removeprefix(cls.PREFIX)))


OF_USER = (UserCode.PREFIX, UserObject.PREFIX)
"""How the sources of probes begin whose array the user made."""


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


def check_setup(text: str, name: str = "the setup ") -> None:
    """Raise :class:`FaultyStatement` for a setup that is not Python."""
    _parse(text, name, "exec")


def leading_imports(setup: str) -> str:
    """Return the imports that a setup begins with. Nothing of it runs before them."""
    imports = (ast.Import, ast.ImportFrom)
    leading = takewhile(lambda node: isinstance(node, imports), ast.parse(setup).body)
    return "\n".join(map(ast.unparse, leading))


def parse(text: str) -> ast.expr:
    """Return the expression. Raises :class:`FaultyStatement` for any other text."""
    if not text.strip():
        raise FaultyStatement("the statement is empty")
    try:
        body: ast.expr = _parse(text.strip(), "the statement ", "eval").body
    except FaultyStatement:
        _parse(text, "the statement ", "exec")
        raise FaultyStatement(
            "the statement must be one expression, whose value is the converted array"
        ) from None
    return body


def is_expression(word: str) -> bool:
    """Whether a word of the command line makes an object, and is no name of a framework."""
    return "(" in word or "[" in word


def dotted_names(tree: ast.expr) -> list[str]:
    """Return the names that the expression reads with their attributes: ``PIL.Image.new``."""
    inner = {node.value for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    chains = (
        ast.unparse(node)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Attribute, ast.Name)) and node not in inner
    )
    return [chain for chain in dict.fromkeys(chains) if chain.replace(".", "").isidentifier()]


def names(tree: ast.expr) -> list[str]:
    """Return the names that the expression reads, in their order."""
    found = sorted(_names(tree), key=lambda name: (name.lineno, name.col_offset))
    return list(dict.fromkeys(name.id for name in found))


def called_name(text: str) -> str:
    """Return the name that the outermost call begins with, such as ``torch``; empty for none."""
    tree = parse(text)
    while isinstance(tree, (ast.Call, ast.Attribute)):
        tree = tree.func if isinstance(tree, ast.Call) else tree.value
    return tree.id if isinstance(tree, ast.Name) else ""


def promise(text: str) -> str | None:
    """Return what the keywords of the outermost call request: "copy", "view" or None.

    ``copy=True`` requests a copy of any function, and ``may_alias=False`` of ``jax.device_put``.
    ``copy=False`` forbids one only by the array API standard: elsewhere it may mean "if needed".
    """
    call = parse(text)
    if not isinstance(call, ast.Call):
        return None
    function = call.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    keywords = {
        (key.arg, key.value.value) for key in call.keywords if isinstance(key.value, ast.Constant)
    }
    if ("may_alias", False) in keywords or ("copy", True) in keywords:
        return "copy"
    return "view" if ("copy", False) in keywords and name in STANDARD else None


def check_source(tree: ast.expr, source: str) -> None:
    """Raise :class:`FaultyStatement` unless ``source`` is the array's one name."""
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
    """Return the statement in one piece: the source itself is handed over."""
    tree = parse(text)
    return Cut("{x}", _template(tree, list(_uses(tree, source))))


def cuts(text: str, source: str) -> Iterator[Cut]:
    """Yield the ways to cut a statement in two, innermost export first.

    None if the statement uses the source more than once: it is not handed over once.
    """
    tree = parse(text)
    uses = list(_uses(tree, source))
    if len(uses) == 1:
        for inner in _around(tree, uses[0]):
            yield Cut(_template(inner, uses), _template(tree, [inner]))


class Step(NamedTuple):
    """The array, or a part of the expression around it."""

    text: str
    is_own: bool
    """Whether only operators and methods of the array make it."""


def steps(text: str) -> list[Step]:
    """Return the steps from the array to the whole expression.

    Empty if the expression uses the array more than once.
    """
    tree = parse(text)
    uses = list(_uses(tree, ARRAY))
    if len(uses) != 1:
        return []
    found: list[Step] = [Step(ARRAY, True)]
    inner: ast.expr = uses[0]
    for node in (*_around(tree, inner), tree):
        is_operator = isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Compare))
        is_member = inner in (getattr(node, "value", None), getattr(node, "func", None))
        found.append(Step(ast.unparse(node), found[-1].is_own and (is_operator or is_member)))
        inner = node
    return found


def others(count: int) -> str:
    """Return the name of the further arrays of a call that takes ``count`` of them."""
    return f"more_{count - 1}"


def with_arrays(text: str, source: str, count: int) -> str:
    """Return the statement with ``count`` arrays where it has ``source``: ``f(x, *more_7)``.

    Raises :class:`FaultyStatement` unless the source stands once, as an argument or in a list.
    """
    tree = parse(text)
    uses = list(_uses(tree, source))
    lists = [
        node.args if isinstance(node, ast.Call) else node.elts
        for node in ast.walk(tree)
        if isinstance(node, (ast.Call, ast.List, ast.Tuple))
    ]
    places = [(items, items.index(uses[0])) for items in lists if uses[0] in items]
    if len(uses) != 1 or not places:
        raise FaultyStatement(
            f"--arrays needs a call that takes {source} once, such as f({source}) or f([{source}])"
        )
    ((items, place),) = places
    more = ast.Name(others(count), ast.Load())
    items.insert(place + 1, ast.Starred(more, ast.Load()))
    return ast.unparse(tree)


def _parse(text: str, name: str, mode: str) -> Any:
    try:
        compile(text, "<string>", mode, dont_inherit=True)
        return ast.parse(text, mode=mode)
    except SyntaxError as fault:
        line = f", line {fault.lineno}" if "\n" in text.strip() and fault.lineno else ""
        raise FaultyStatement(f"{name}is not Python{line}: {fault.msg}") from None
    except (ValueError, RecursionError, MemoryError) as fault:
        raise FaultyStatement(f"{name}is not Python: {fault or type(fault).__name__}") from None


def _names(tree: ast.expr) -> Iterator[ast.Name]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node


def _bound(tree: ast.expr) -> set[str]:
    """Return the names that the expression binds itself."""
    stored = {name.id for name in _names(tree) if not isinstance(name.ctx, ast.Load)}
    return stored | {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}


def _uses(tree: ast.expr, source: str) -> Iterator[ast.Name]:
    return (name for name in _names(tree) if name.id == source)


def _around(tree: ast.expr, inner: ast.expr) -> list[ast.expr]:
    """Return the expressions between ``inner`` and the whole, innermost first."""
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    found: list[ast.expr] = []
    node: ast.AST = inner
    while node in parents and (node := parents[node]) is not tree:
        if isinstance(node, (ast.keyword, ast.Starred, ast.Slice)):
            continue  # no expression of its own
        if not isinstance(node, ast.expr) or isinstance(node, _LATER):
            return []
        found.append(node)
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


def _template(tree: ast.expr, places: Sequence[ast.expr]) -> str:
    """Return ``tree`` as text with ``{x}`` in these places, ready for ``str.format``."""
    # A copy takes these for copies that it has made of the places.
    marks: dict[int, Any] = {id(place): ast.Name(_MARK, ast.Load()) for place in places}
    text = ast.unparse(copy.deepcopy(tree, marks))
    return text.replace("{", "{{").replace("}", "}}").replace(_MARK, "{x}")


_MARK = "dlprof_array_of_the_statement"
