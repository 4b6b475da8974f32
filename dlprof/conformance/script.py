"""One check as a script that needs the framework and the standard library only.

The script has the check's own statements and the definitions that they use, with the framework's
own expressions in place of ``framework``.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterable
from copy import deepcopy
from functools import cache
from typing import Any

from dlprof.conformance import counterpart
from dlprof.conformance.binding import KINDS, Binding, with_keywords
from dlprof.conformance.check import STANDARDS, Check
from dlprof.conformance.counterpart import DTYPES, LAZY, NEW, OLD, VALUES
from dlprof.conformance.every import MODULES
from dlprof.conformance.flat import flat
from dlprof.conformance.inline import bound_by, inlined, stored, tried
from dlprof.conformance.producer import LAYOUTS, OTHERS
from dlprof.probes import capsule
from dlprof.probes.base import Unsupported

HEAD = '''\
"""{framework} as {role}: {clause}
{source} ({severity}): {link}
Violated if an AssertionError is raised, if a marked line raises, or by a crash or no end.
Another error tells nothing. By dlprof for {standards}.
"""
'''
MARKED = "# violated if it raises"
UNKNOWN = {"NotApplicable", "Unknown"}
"""Answers by which a script cannot tell, as by any other exception."""
MAKE = """
def make(kind):
    names = dict(globals())
    exec(arrays[kind], names)
    return names["x"]
"""
WAYS = ("take", "export", "values", "shape", "dtype", "writable")
COLLECTIONS = {"DTYPES": tuple(DTYPES), "LAZY": LAZY, "LAYOUTS": LAYOUTS, "OTHERS": OTHERS}
"""Kinds of arrays, by the name that checks have for them."""
CONSTANTS = {"NEW": NEW, "OLD": OLD, "VALUES": VALUES}
"""What says more than its name."""
OPPOSITES = {ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is}
WIDTH = 100
HARMLESS = {"import numpy": "numpy", "import jax.numpy as jnp": "jnp"}
"""Imports of a probe's setup that do nothing else, and their names."""
WORD = re.compile(r"\w+")
REMARK = re.compile(r"""\n *['"](# .*)['"]$""", re.MULTILINE)
"""A comment, which the syntax tree has as a string: at the end of the line before it, or with two
signs on a line of its own.
"""
OWN_LINE = re.compile(r"""^( *)['"]#(# .*)['"]$""", re.MULTILINE)


def script(check: Check, bound: Binding, version: str = "") -> str:
    """The text of the script. ``version`` is that of the framework.

    Raises :class:`Unsupported` if the framework has no such array.
    """
    imports, definitions = _definitions()
    written = _Written(bound)
    body = written.body(definitions[f"{check.run.__name__}()"])
    used = _names(body)
    chosen: dict[int, Any] = {}
    while missing := [
        node for name, node in definitions.items() if name in used and id(node) not in chosen
    ]:
        chosen |= {id(node): written.visit(deepcopy(node)) for node in missing}
        used |= _names(chosen.values())
    every = [chosen[key] for key in dict.fromkeys(map(id, definitions.values())) if key in chosen]
    every, body = tried(*inlined(every, body))
    body = [one for one in body if not isinstance(one, ast.ClassDef) or one.name in _names(body)]
    every, body = flat(every, body)
    every = _used(every, body)
    made, body = _arrays(bound, every, body)
    used = _names([*every, *made, *body])
    modules = {name for name in imports if name in used and imports[name] == f"import {name}"}
    lines = [f"import {', '.join(sorted(modules))}"] if modules else []
    lines += sorted(text for name, text in imports.items() if name in used - modules)
    facts = {
        **vars(check),
        "framework": f"{bound.facts['name']} {version}".rstrip(),
        "link": check.link,
        "standards": STANDARDS,
    }
    code = "\n".join([*_blocks([*every, *made]), _text(body)])
    others = [line for line in bound.setup.splitlines() if line not in HARMLESS]
    words = set(WORD.findall("\n".join([code, *others])))
    lines += [line for line in bound.setup.splitlines() if HARMLESS.get(line, "") in ("", *words)]
    return HEAD.format(**facts) + "\n".join([*lines, "", code])


def _text(nodes: Iterable[ast.stmt]) -> str:
    text = "\n".join(map(_statement, nodes))
    return OWN_LINE.sub(r"\1\2", REMARK.sub(r"  \1", text)) + "\n"


def _statement(node: ast.stmt) -> str:
    """The text; of a long dictionary with a line for each entry."""
    text = ast.unparse(node)
    if isinstance(node, ast.ClassDef):
        return text.replace("\n\n    def ", "\n    def ")
    if len(text) > WIDTH and isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict):
        pairs = zip(node.value.keys, node.value.values, strict=True)
        rows = [f"    {ast.unparse(key)}: {ast.unparse(value)}," for key, value in pairs if key]
        return "\n".join([f"{ast.unparse(node.targets[0])} = {{", *rows, "}"])
    return text


def _blocks(nodes: list[Any]) -> Iterable[str]:
    """Definitions, and the assignments between them together."""
    plain: list[ast.stmt] = []
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            if plain:
                yield _text(plain)
            plain = []
            yield _text([node])
        else:
            plain.append(node)
    if plain:
        yield _text(plain)


@cache
def _definitions() -> tuple[dict[str, str], dict[str, Any]]:
    """The imports of the standard library and all definitions, by name."""
    imports: dict[str, str] = {}
    definitions: dict[str, Any] = {}
    for module in (capsule, counterpart, *MODULES):
        for node in ast.parse(inspect.getsource(module)).body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                told = ast.unparse(node)
                if not told.startswith(("from dlprof", "from __future__")):
                    imports |= {alias.asname or alias.name: told for alias in node.names}
            elif isinstance(node, ast.FunctionDef | ast.ClassDef):
                is_check = bool(node.decorator_list)
                definitions[f"{node.name}()" if is_check else node.name] = node
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names = [one for target in targets for one in ast.walk(target)]
                definitions |= {one.id: node for one in names if isinstance(one, ast.Name)}
    return imports, definitions


def _names(nodes: Iterable[ast.AST]) -> set[str]:
    return {one.id for node in nodes for one in ast.walk(node) if isinstance(one, ast.Name)}


def _used(definitions: list[Any], body: list[Any]) -> list[Any]:
    """The definitions whose names are used, and the calls between them."""
    left = [
        one
        for one in definitions
        if isinstance(one, ast.Expr)
        or bound_by(one) & _names([*body, *(other for other in definitions if other is not one)])
    ]
    return left if len(left) == len(definitions) else _used(left, body)


def _arrays(
    bound: Binding, definitions: list[Any], body: list[ast.stmt]
) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """How the arrays are made, and the body: with the statement itself if there is only one."""
    made: Any
    every = [node for whole in (*definitions, *body) for node in ast.walk(whole)]
    uses = sum(isinstance(node, ast.Name) and node.id == "make" for node in every)
    calls = [node for node in every if isinstance(node, ast.Call) and _is(node.func, "make")]
    kinds: set[Any] = {one.args[0].value for one in calls if isinstance(one.args[0], ast.Constant)}
    if len(kinds) == 1 and len(calls) == uses and _literal(calls):
        (kind,) = kinds
        if kind not in bound.arrays:
            raise Unsupported(f"it makes no {kind} array")
        statements = ast.parse(bound.arrays[kind]).body
        whole = [node for node in body if isinstance(node, ast.Assign) and node.value in calls]
        if len(whole) == uses == 1 and _is_inlined(statements, every):
            at = body.index(whole[0])
            return [], [*body[:at], *statements, *body[at + 1 :]]
        for call in calls:
            call.args = []
        made = ast.parse("def make():\n    return x").body[0]
        made.body = [*statements, *made.body]
        return [made], body
    if not uses:
        return [], body
    if len(bound.arrays) == 1:
        statements = ast.parse(next(iter(bound.arrays.values()))).body
        if len(calls) == uses == 1:
            return statements, [_Unmade().visit(one) for one in body]
        made = ast.parse("def make(kind):\n    return x").body[0]
        made.body = [*statements, *made.body]
        return [made], body
    texts = {
        node.value
        for node in every
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    arrays = {kind: bound.arrays[kind] for kind in KINDS if kind in texts & set(bound.arrays)}
    return ast.parse(f"arrays = {arrays!r}\n{MAKE}").body, body


def _is_inlined(statements: list[ast.stmt], others: list[ast.AST]) -> bool:
    """Whether nothing changes if the statements that make ``x`` stand outside of a function: what
    they bind besides would live on.
    """
    bound = stored(statements) - {"x"}
    taken = {one.id for one in others if isinstance(one, ast.Name)}
    return not bound or not (bound & taken or any(isinstance(one, ast.Delete) for one in others))


def _is(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _literal(calls: list[ast.Call]) -> bool:
    return all(isinstance(call.args[0], ast.Constant) for call in calls)


class _Written(ast.NodeTransformer):
    """The statements of a check in the words of a framework: no ``framework``, no types."""

    def __init__(self, bound: Binding) -> None:
        self.bound = bound

    def body(self, function: Any) -> list[ast.stmt]:
        return [_Ended().visit(one) for one in self.visit(deepcopy(function)).body]

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        node.args.args = [one for one in node.args.args if one.arg != "framework"]
        node.returns, node.decorator_list = None, []
        return self._block(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        return self._block(node)

    def _block(self, node: Any) -> Any:
        if (told := ast.get_docstring(node)) is not None:
            node.body[0].value = ast.Constant(told.partition("\n")[0])
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> Any:
        if isinstance(getattr(node, "ctx", None), ast.Store):
            return node
        if node.id in {"LAZY", "LAYOUTS"}:
            return self.visit_Tuple(ast.Tuple([ast.Starred(node)]))
        return _expression(repr(CONSTANTS[node.id])) if node.id in CONSTANTS else node

    def visit_Tuple(self, node: ast.Tuple) -> Any:
        """Without the kinds of arrays that the framework does not make."""
        elements: list[Any] = []
        for one in node.elts:
            if isinstance(one, ast.Starred) and ast.unparse(one.value) in COLLECTIONS:
                elements += map(ast.Constant, COLLECTIONS[ast.unparse(one.value)])
            else:
                elements.append(self.visit(one))
        node.elts = [one for one in elements if self._is_made(one)]
        return node

    def visit_Dict(self, node: ast.Dict) -> Any:
        pairs = zip(node.keys, node.values, strict=True)
        left = [(one, self.visit(value)) for one, value in pairs if self._is_made(one)]
        node.keys = [one and self.visit(one) for one, _ in left]
        node.values = [value for _, value in left]
        return node

    def _is_made(self, node: ast.AST | None) -> bool:
        kind = getattr(node, "value", None)
        return not isinstance(kind, str) or kind not in KINDS or kind in self.bound.arrays

    def visit_arg(self, node: ast.arg) -> Any:
        return ast.arg(node.arg)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        self.generic_visit(node)
        return ast.parse(
            f"{ast.unparse(node.target)} = {ast.unparse(node.value or ast.Constant(None))}"
        ).body[0]

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        if not _is(node.value, "framework"):
            return self.generic_visit(node)
        if node.attr == "make":
            return ast.Name("make")
        if node.attr == "from_dlpack":
            self._code("take")
            return _expression(str(self.bound.facts["from_dlpack"]))
        if node.attr in self.bound.facts:
            return _expression(repr(self.bound.facts[node.attr]))
        code = self._code(node.attr)
        if code.endswith("(x)") and node.attr == "take":
            return _expression(code.removesuffix("(x)"))
        has_keywords = node.attr in ("take", "export")
        how = f"x, **how: {with_keywords(code)}" if has_keywords else f"x: {code}"
        return _expression(f"lambda {how}")

    def visit_Call(self, node: ast.Call) -> Any:
        function = node.func
        owner = getattr(function, "value", function)
        if (
            isinstance(function, ast.Attribute)
            and _is(owner, "framework")
            and function.attr in WAYS
        ):
            code = _expression(self._code(function.attr))
            call = _Replaced(self.visit(node.args[0])).visit(code)
            if node.keywords:
                call.keywords = [*call.keywords, *self._keywords(node.keywords)]
            return call
        if _is(function, "_python"):  # of dlprof.probes.capsule
            kinds = ", ".join(map(ast.unparse, node.args[1:]))
            name = ast.unparse(node.args[0])
            return _expression(f"ctypes.PYFUNCTYPE({kinds})(({name}, ctypes.pythonapi))")
        if _is(function, "attempt") and ast.unparse(node.args[0]) == "framework.export":
            code = self._code("export")
            if code.startswith("x.") and code.endswith("()"):  # attempt(x.__dlpack__, ...)
                method = _Replaced(self.visit(node.args[1])).visit(_expression(code)).func
                node.args = [method, *node.args[2:]]
        node.args = [one for one in node.args if not _is(one, "framework")]
        self.generic_visit(node)
        node.keywords = self._keywords(node.keywords)
        return node

    def _code(self, name: str) -> str:
        if name not in self.bound.codes:
            raise Unsupported(f"it has no way {'in' if name == 'take' else 'out'} by DLPack")
        return self.bound.codes[name]

    def _keywords(self, keywords: list[ast.keyword]) -> list[ast.keyword]:
        """Those of ``**framework.newest`` by their names."""
        found: list[ast.keyword] = []
        for one in map(self.visit, keywords):
            if one.arg is None and isinstance(one.value, ast.Dict):
                keys = [key for key in one.value.keys if isinstance(key, ast.Constant)]
                if len(keys) == len(one.value.keys):
                    pairs = zip(keys, one.value.values, strict=True)
                    found += [ast.keyword(str(key.value), value) for key, value in pairs]
                    continue
            found.append(one)
        return found

    def visit_If(self, node: ast.If) -> Any:
        self.generic_visit(node)
        if isinstance(node.test, ast.Constant):
            return node.body if node.test.value else node.orelse
        found = node.body[0]
        if isinstance(found, ast.Raise) and not (found.cause or node.orelse or node.body[1:]):
            raised = found.exc
            if isinstance(raised, ast.Call) and ast.unparse(raised.func) == "AssertionError":
                return ast.Assert(_denied(node.test), raised.args[0])
        return node

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        self.generic_visit(node)
        if isinstance(node.test, ast.Constant):
            return node.body if node.test.value else node.orelse
        return node

    def visit_Raise(self, node: ast.Raise) -> Any:
        self.generic_visit(node)
        if not isinstance(node.exc, ast.Call):
            return node
        answer = ast.unparse(node.exc.func)
        if answer == "Refused":
            return ast.Raise(ast.Name("SystemExit", ast.Load()))
        if answer == "Violated":
            node.exc.func = ast.Name("AssertionError", ast.Load())
        elif answer in UNKNOWN:
            node.exc.func = ast.Name("RuntimeError", ast.Load())
        return node

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> Any:
        self.generic_visit(node)
        node.name = node.name if node.name in _names(node.body) else None
        return node

    def visit_Try(self, node: ast.Try) -> Any:
        """What only says that it refuses, or raises, is a mark: the traceback says the rest."""
        self.generic_visit(node)
        *others, last = node.handlers
        if not (len(node.body) == 1 and _says_only_that(last) and not node.orelse):
            return node
        if not others:
            return [*node.body, ast.Expr(ast.Constant(MARKED))]
        marked = ast.Expr(ast.Constant(f"{MARKED} another error"))
        return ast.Try([*node.body, marked], others, [], [])


def _says_only_that(handler: ast.ExceptHandler) -> bool:
    (first, *rest) = handler.body
    found = isinstance(first, ast.Raise) and not rest and first.cause and first.exc
    return (
        isinstance(found, ast.Call)
        and isinstance(handler.type, ast.Name)
        and (handler.type.id, ast.unparse(found.func)) == ("Exception", "AssertionError")
        and isinstance(found.args[0], ast.Constant)
    )


def _denied(test: ast.expr) -> ast.expr:
    """The opposite of a condition."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return test.operand
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and type(test.ops[0]) in OPPOSITES:
        return ast.Compare(test.left, [OPPOSITES[type(test.ops[0])]()], test.comparators)
    return ast.UnaryOp(ast.Not(), test)


class _Ended(ast.NodeTransformer):
    """The end of the process in place of that of a check."""

    def visit_Return(self, _: ast.Return) -> Any:
        return ast.Raise(ast.Name("SystemExit", ast.Load()))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        return node


class _Unmade(ast.NodeTransformer):
    """Statements without ``x = make(kind)``: the only array is made before them."""

    def visit_Assign(self, node: ast.Assign) -> Any:
        is_made = isinstance(node.value, ast.Call) and _is(node.value.func, "make")
        return None if is_made else node

    def visit_Try(self, node: ast.Try) -> Any:
        self.generic_visit(node)
        return node if node.body else None


class _Replaced(ast.NodeTransformer):
    """The name ``x`` by an expression."""

    def __init__(self, by: Any) -> None:
        self.by = by

    def visit_Name(self, node: ast.Name) -> Any:
        return self.by if node.id == "x" else node


def _expression(text: str) -> Any:
    return ast.parse(text, mode="eval").body
