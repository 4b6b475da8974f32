"""One check as a script that needs the framework and the standard library only.

The script has the check's own source text and the definitions that it uses.
"""

from __future__ import annotations

import ast
import re
from importlib import resources

from dlprof.conformance.binding import KINDS, binding
from dlprof.conformance.check import Check
from dlprof.probes.base import Probe

MODULES = (
    ("dlprof.conformance", "check.py"),
    ("dlprof.probes", "capsule.py"),
    ("dlprof.conformance", "counterpart.py"),
    ("dlprof.conformance", "consumer.py"),
    ("dlprof.conformance", "producer.py"),
    ("dlprof.conformance", "exchange.py"),
)
HEAD = '''\
"""{name} as {role}: {clause}

Source: {source} ({severity}).
Exit code: 1 the framework deviates, 0 it does not, 2 it cannot be told. Made by dlprof.
"""

from __future__ import annotations

import os
import subprocess
import sys
'''
BLOCKS = ("def ", "class ", "@")
MAIN = """\
def see():
    try:
        {function}(framework)
    except Deviates as seen:
        print("it deviates:", seen)
        return 11
    except Refused as said:
        print("it refuses, which the standard allows:", said)
        return 10
    except Exception as why:
        print("it cannot be told:", why)
        return 2
    return 10


if __name__ == "__main__":
    if sys.argv[1:] == ["see"]:
        code = see()
        sys.stdout.flush()
        os._exit(code)
    # A process of its own: the framework may end it.
    try:
        code = subprocess.run([sys.executable, __file__, "see"], timeout=120).returncode
    except subprocess.TimeoutExpired:
        print("it gives no answer")
        code = 11
    if code < 0:
        print(f"it ends the process by signal {{-code}}")
        code = 11
    code = {{10: 0, 11: 1}}.get(code, 2)
    print(["the problem is gone", "the problem is there", "cannot tell"][code])
    sys.exit(code)
"""


def script(check: Check, probe: Probe) -> str:
    """The text of the script."""
    function = check.run.__name__
    imports, definitions = definitions_of({function, "Deviates", "Refused"})
    used = {
        node.value
        for text in definitions
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    if "DTYPES" in "".join(definitions):
        used |= {kind for kind in KINDS if kind[-1].isdigit() or kind == "bool"}
    parts = [
        HEAD.format(**{**vars(check), "name": probe.name}) + "".join(f"{one}\n" for one in imports),
        binding(probe, tuple(kind for kind in KINDS if kind in used)),
        "\n".join(f"\n\n{one}\n\n" if one.startswith(BLOCKS) else one for one in definitions),
        MAIN.format(function=function),
    ]
    text = "\n\n".join(part.strip("\n") + "\n" for part in parts)
    return re.sub(r"\n{4,}", "\n\n\n", text)


def definitions_of(names: set[str]) -> tuple[list[str], list[str]]:
    """The imports of the standard library and the definitions that ``names`` need, in order."""
    imports: list[tuple[set[str], str]] = []
    every: list[tuple[set[str], str, set[str]]] = []
    for package, name in MODULES:
        text = resources.files(package).joinpath(name).read_text(encoding="utf-8")
        for node in ast.parse(text).body:
            own = _bound(node)
            if isinstance(node, ast.Import | ast.ImportFrom):
                if not ast.unparse(node).startswith(("from dlprof", "from __future__")):
                    imports.append((own, ast.unparse(node)))
            elif own:
                every.append((own, _source(text, node), _used(node)))
    needed, size = set(names), 0
    while len(needed) > size:
        size = len(needed)
        for own, _, used in every:
            if own & needed:
                needed |= used
    definitions = [source for own, source, _ in every if own & needed]
    return sorted({text for own, text in imports if own & needed}), definitions


def _bound(node: ast.stmt) -> set[str]:
    """The names that a statement of a module defines."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {alias.asname or alias.name for alias in node.names}
    targets = [*getattr(node, "targets", ()), *([node.target] if hasattr(node, "target") else ())]
    names = [one for target in targets for one in getattr(target, "elts", [target])]
    # a.b = c belongs to a
    names = [one.value if isinstance(one, ast.Attribute) else one for one in names]
    return {one.id for one in names if isinstance(one, ast.Name)}


def _used(node: ast.stmt) -> set[str]:
    """The names that a definition uses; those of the decorator ``check`` are left out."""
    inner = node
    if isinstance(node, ast.FunctionDef):
        inner = ast.FunctionDef(node.name, node.args, node.body, [], node.returns, None)
    return {one.id for one in ast.walk(inner) if isinstance(one, ast.Name)}


def _source(text: str, node: ast.stmt) -> str:
    """The text of a definition, without the decorator ``check``."""
    lines = text.splitlines()
    first = node.lineno
    decorators = getattr(node, "decorator_list", [])
    if decorators and not ast.unparse(decorators[0]).startswith("check("):
        first = decorators[0].lineno
    return "\n".join(lines[first - 1 : node.end_lineno])
