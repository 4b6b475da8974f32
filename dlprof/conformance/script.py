"""Write a check as a script that needs the framework and the standard library only.

The script holds the source of the check and of every definition that it uses, as they stand.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable
from functools import cache
from typing import Any

from dlprof.conformance import check as checks
from dlprof.conformance import counterpart
from dlprof.conformance.binding import Binding
from dlprof.conformance.check import STANDARDS, Check
from dlprof.conformance.every import MODULES
from dlprof.probes import capsule

HEAD = '''\
"""{framework} as {role}: {clause}

{source} ({severity}): {link}
Exit code 0: the clause holds, or the framework refuses, which the clause allows.
A traceback that ends with Violated, a crash or no end: the clause is violated.
Any other error shows nothing. Written by dlprof for {standards}.
"""

from __future__ import annotations

'''
MAIN = """\
try:
    {name}(framework)
    print("holds")
except Refused as refusal:
    print("refused, which the clause allows:", refusal)
"""


def script(check: Check, bound: Binding, version: str = "") -> str:
    """Return the text of the script. ``version`` is that of the framework."""
    imports, definitions = _definitions()
    function = definitions[check.run.__name__, True]
    chosen = {id(function[0])}
    used = _names([*function[0].body, function[0].args]) | {"Refused"}
    while missing := [
        node
        for (name, is_check), (node, _) in definitions.items()
        if name in used and not is_check and id(node) not in chosen
    ]:
        chosen |= {*map(id, missing)}
        used |= _names(missing)
    nodes = {id(node): (node, text) for node, text in definitions.values() if id(node) in chosen}
    words = {
        one.value
        for node, _ in nodes.values()
        for one in ast.walk(node)
        if isinstance(one, ast.Constant) and isinstance(one.value, str)
    }
    facts = {
        **vars(check),
        "framework": f"{bound.facts['name']} {version}".rstrip(),
        "link": check.link,
        "standards": STANDARDS,
    }
    texts = [
        text if isinstance(node, ast.Assign | ast.AnnAssign) else f"\n\n{text}\n\n"
        for node, text in nodes.values()
    ]
    lines = sorted({imports[name] for name in used & imports.keys()})
    end = MAIN.format(name=check.run.__name__)
    return HEAD.format(**facts) + "\n".join([*lines, *texts, bound.text(words), end])


@cache
def _definitions() -> tuple[dict[str, str], dict[tuple[str, bool], tuple[Any, str]]]:
    """Return the imports of the standard library by name, and all definitions with their source.

    The key of a definition is its name and whether it is a check.
    """
    imports: dict[str, str] = {}
    found: dict[tuple[str, bool], tuple[Any, str]] = {}
    for module in (capsule, checks, counterpart, *MODULES):
        source = inspect.getsource(module)
        for node in ast.parse(source).body:
            text = ast.get_source_segment(source, node) or ""
            if isinstance(node, ast.Import | ast.ImportFrom):
                if not text.startswith(("from dlprof", "from __future__")):
                    imports |= {alias.asname or alias.name: text for alias in node.names}
            elif isinstance(node, ast.FunctionDef | ast.ClassDef):
                is_check = isinstance(node, ast.FunctionDef) and bool(node.decorator_list)
                found[node.name, is_check] = node, text
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names = _names(targets)
                found |= {(name, False): (node, text) for name in names}
    return imports, found


def _names(nodes: Iterable[ast.AST]) -> set[str]:
    return {one.id for node in nodes for one in ast.walk(node) if isinstance(one, ast.Name)}
