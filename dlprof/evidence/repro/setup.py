"""The setup of a script: of all that the probes import and define, what its body needs."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from dlprof.evidence.repro.lines import plain
from dlprof.evidence.repro.subject import Subject


def setup_of(subjects: Sequence[Subject]) -> str:
    """The statements from which the frameworks' names come, each import alone, each once."""
    texts = [plain(text) for one in subjects for text in one.recipe.setup]
    singles = [ast.unparse(one) for text in texts for one in _singles(ast.parse(text))]
    return plain("\n".join(dict.fromkeys(singles)))


def needed(setup: str, used: set[str]) -> str:
    """The statements of ``setup`` that make the names ``used``, and those that they need."""
    kept: list[ast.stmt] = []
    for statement in reversed(ast.parse(setup).body):
        made = _bound(statement)
        if made & used or not made:
            used = used | _names(statement)
            kept.insert(0, statement)
    return plain(ast.unparse(ast.Module(_joined(kept), [])))


def _joined(statements: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The statements, with one import from each module."""
    found: list[ast.stmt] = []
    for statement in statements:
        last = found[-1] if found else None
        if (
            isinstance(statement, ast.ImportFrom)
            and isinstance(last, ast.ImportFrom)
            and (statement.module, statement.level) == (last.module, last.level)
        ):
            last.names += statement.names
        else:
            found.append(statement)
    return found


def needed_names(body: str) -> str:
    """``body`` without the results that it names and never looks at."""
    nodes = _of_this_scope(ast.parse(body))
    named = [node for node in nodes if isinstance(node, ast.Name) and node.id in ("y", "z")]
    looked_at = {node.id for node in named if not isinstance(node.ctx, ast.Store)}
    lines = body.splitlines()
    for node in named:
        if node.id not in looked_at:
            row = node.lineno - 1
            lines[row] = lines[row].replace(f"{node.id} = ", "", 1)
    return "\n".join(lines)


def _of_this_scope(tree: ast.AST) -> list[ast.AST]:
    """The nodes of a tree, but for those of its functions."""
    found: list[ast.AST] = []
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            found += [node, *_of_this_scope(node)]
    return found


def modules(setup: str, subjects: Sequence[Subject]) -> dict[str, str]:
    """The frameworks' modules that a setup imports, and the names that they have there."""
    wanted = {name for one in subjects for name in one.recipe.modules}
    return {
        alias.name: alias.asname or alias.name
        for statement in ast.parse(setup).body
        if isinstance(statement, ast.Import)
        for alias in statement.names
        if alias.name in wanted
    }


def names(text: str) -> set[str]:
    """The names that a text uses."""
    return _names(ast.parse(text))


def bound(text: str) -> set[str]:
    """The names that the statements of a text make, those within loops and the like included."""
    statements = ast.parse(text).body
    found = {name for statement in statements for name in _bound(statement)}
    nodes = _of_this_scope(ast.Module(statements, []))
    return found | {
        node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def made(text: str) -> set[str]:
    """The names that a text gives to something, its functions and their arguments included."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
    return found


def _names(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _singles(tree: ast.Module) -> list[ast.stmt]:
    """The statements, an import of several names as several imports."""
    found: list[ast.stmt] = []
    for statement in tree.body:
        if isinstance(statement, ast.Import):
            found += [ast.Import([alias]) for alias in statement.names]
        elif isinstance(statement, ast.ImportFrom):
            found += [
                ast.ImportFrom(statement.module, [alias], statement.level)
                for alias in statement.names
            ]
        else:
            found.append(statement)
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
