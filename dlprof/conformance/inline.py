"""The statements of a function in place of its only call: a script reads from top to bottom."""

from __future__ import annotations

import ast
from copy import deepcopy
from typing import Any, cast


def inlined(definitions: list[Any], body: list[Any]) -> tuple[list[Any], list[Any]]:
    """The definitions that are still needed, and the body with the statements of the others."""
    for function in definitions:
        if not isinstance(function, ast.FunctionDef):
            continue
        others = [one for one in definitions if one is not function]
        every = [node for whole in (*others, *body) for node in ast.walk(whole)]
        if sum(isinstance(one, ast.Name) and one.id == function.name for one in every) != 1:
            continue
        taken = {one.id for some in body for one in ast.walk(some) if isinstance(one, ast.Name)}
        place = _Place(function, taken.union(*map(bound_by, others)))
        longer = place.visit(ast.Module(deepcopy(body), []))
        if place.is_found:
            return inlined(others, longer.body)
    return definitions, body


def tried(definitions: list[Any], body: list[Any]) -> tuple[list[Any], list[Any]]:
    """The same with a ``try`` in place of the only call of ``attempt``, if that is a statement."""
    every = [node for whole in (*definitions, *body) for node in ast.walk(whole)]
    if sum(isinstance(one, ast.Name) and one.id == "attempt" for one in every) != 1:
        return definitions, body
    place = _Try()
    written = place.visit(ast.Module(deepcopy(body), [])).body
    if not place.is_found:
        return definitions, body
    return [one for one in definitions if bound_by(one) != {"attempt"}], written


class _Try(ast.NodeTransformer):
    def __init__(self) -> None:
        self.is_found = False

    def visit_Assign(self, node: ast.Assign) -> Any:
        """``y, error = attempt(call, x)``."""
        (target,) = node.targets
        if not (_is_attempt(node.value) and isinstance(target, ast.Tuple)):
            return node
        self.is_found = True
        code = ast.unparse(_called(node.value))
        value, error = map(ast.unparse, target.elts)
        said = f"{value}, {error}"
        tries = f"try:\n    {said} = {code}, None\nexcept Exception as caught:\n"
        return ast.parse(f"{tries}    {said} = None, caught").body


def _is_attempt(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "attempt"


def _called(attempt: Any) -> ast.Call:
    """What ``attempt(call, x, **how)`` calls."""
    function, *arguments = attempt.args
    if not isinstance(function, ast.Lambda):
        return ast.Call(function, arguments, attempt.keywords)
    (parameter,) = (one.arg for one in function.args.args)
    given = Given({parameter: arguments[0]}, attempt.keywords)
    return cast("ast.Call", given.visit(deepcopy(function.body)))


def bound_by(definition: Any) -> set[str]:
    if isinstance(definition, ast.FunctionDef | ast.ClassDef):
        return {definition.name}
    targets = [one for target in definition.targets for one in ast.walk(target)]
    return {one.id for one in targets if isinstance(one, ast.Name)}


def stored(statements: list[Any]) -> set[str]:
    """The names that statements bind."""
    every = [node for some in statements for node in ast.walk(some)]
    handlers = {one.name for one in every if isinstance(one, ast.ExceptHandler) and one.name}
    names = (one for one in every if isinstance(one, ast.Name))
    return handlers | {one.id for one in names if isinstance(one.ctx, ast.Store)}


class _Place(ast.NodeTransformer):
    """Puts the statements of a function where a statement is its call."""

    def __init__(self, function: ast.FunctionDef, taken: set[str]) -> None:
        self.function, self.taken = function, taken
        self.is_found = False

    def visit_Expr(self, node: ast.Expr) -> Any:
        return self._statements(node, node.value, None)

    def visit_Assign(self, node: ast.Assign) -> Any:
        (target,) = node.targets
        return self._statements(node, node.value, target)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        return node

    def _statements(self, node: Any, call: Any, target: Any) -> Any:
        """The statements, or the node itself if it is no such call or if names would clash."""
        if not isinstance(call, ast.Call) or ast.unparse(call.func) != self.function.name:
            return node
        given, rest = self._arguments(call)
        statements, result = self._parts()
        if given is None or result is False or (target is None) != (result is None):
            return node
        first = [
            ast.Assign([ast.Name(name)], value, lineno=0)
            for name, value in given.items()
            if not isinstance(value, ast.Name | ast.Constant | ast.Tuple)
        ]
        names = {ast.unparse(one.targets[0]) for one in first}
        given |= {name: ast.Name(name) for name in names}
        if isinstance(result, ast.Name):
            given[result.id] = target
        if (names | stored(statements) - set(given)) & self.taken:
            return node
        self.is_found = True
        return [*first, *map(Given(given, rest).visit, statements)]

    def _parts(self) -> tuple[list[Any], Any]:
        """The statements without the docstring, and the name that the last one returns or None."""
        statements = deepcopy(self.function.body)
        if ast.get_docstring(self.function) is not None:
            del statements[0]
        returned = [one for one in ast.walk(self.function) if isinstance(one, ast.Return)]
        if not returned:
            return statements, None
        last = statements.pop()
        if len(returned) == 1 and isinstance(last, ast.Return) and isinstance(last.value, ast.Name):
            return statements, last.value
        return statements, False

    def _arguments(self, call: ast.Call) -> tuple[Any, list[ast.keyword]]:
        """The values of the parameters, and the keywords of ``**how``."""
        parameters = self.function.args
        names = [one.arg for one in parameters.args]
        defaults = names[len(names) - len(parameters.defaults) :]
        given = dict(zip(defaults, deepcopy(parameters.defaults), strict=True))
        if parameters.vararg or any(isinstance(one, ast.Starred) for one in call.args):
            return None, []
        given |= dict(zip(names, call.args, strict=False))
        given |= {one.arg: one.value for one in call.keywords if one.arg in names}
        rest = [one for one in call.keywords if one.arg not in names]
        return (given if set(given) == set(names) else None), rest


class Given(ast.NodeTransformer):
    """Values in place of parameters."""

    def __init__(self, given: dict[str, Any], rest: list[ast.keyword]) -> None:
        self.given, self.rest = given, rest

    def visit_Name(self, node: ast.Name) -> Any:
        return deepcopy(self.given.get(node.id, node))

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        if ast.unparse(node.func) == "list" and node.args and isinstance(node.args[0], ast.Tuple):
            return ast.List(node.args[0].elts)
        starred = [
            one for one in node.keywords if one.arg is None and ast.unparse(one.value) == "how"
        ]
        if starred:
            node.keywords = [*(one for one in node.keywords if one not in starred), *self.rest]
        return node
