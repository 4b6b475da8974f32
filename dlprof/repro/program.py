"""Put a script together: what it says, what it imports, what it does, how it ends."""

from __future__ import annotations

import ast
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill

from dlprof.clean import HIDDEN, clean
from dlprof.errors import NoReproducer
from dlprof.repro.effect import Effect
from dlprof.repro.effects import EFFECTS
from dlprof.repro.lines import WIDTH, block, folded, inside, plain
from dlprof.repro.subject import Subject, subject
from dlprof.session import FindingRecord, Session

MOST_LINES = 59
LONGEST_LINE = 200

HEAD = '''\
"""{symptom}

{details}
"""
'''
EXITS = (
    "Exit code 1: the problem is there. 0: it is gone. 125: cannot tell (git bisect skips it)."
)
TAIL = '''\
if __name__ == "__main__":
    try:
        found = {call}
    except Exception as error:
        print(f"cannot tell: {{type(error).__name__}}: {{error}}")
        sys.exit(125)
    print("the problem is there" if found else "the problem is gone")
    sys.exit(1 if found else 0)
'''
CHILD = "convert() if sys.argv[1:] else problem()"


@dataclass(frozen=True)
class Reproducer:
    """A script, and in one line what it shows."""

    symptom: str
    text: str


def reproducer(session: Session, finding: FindingRecord) -> Reproducer:
    """The script that shows ``finding``. Raises :class:`NoReproducer` where none can be made."""
    effect = EFFECTS.get(finding.rule)
    if effect is None:
        raise NoReproducer(f"this dlprof has no reproducer for {clean(finding.rule, 40)}")
    results = [*finding.results[:1], *(() if finding.against is None else (finding.against,))]
    if not results or not all(0 <= index < len(session.results) for index in results):
        raise NoReproducer("the finding names no result of the session")
    subjects = [subject(session.results[index]) for index in results]
    made = effect(subjects[0], subjects[1] if len(subjects) > 1 else None, finding)
    text = _assembled(made, subjects, _variables(session))
    _check(text)
    return Reproducer(made.symptom, text)


def _assembled(made: Effect, subjects: Sequence[Subject], variables: Mapping[str, str]) -> str:
    """The whole text."""
    setup = _setup(subjects)
    body, child = folded(made.body), folded(made.child)
    used = _names(f"{body}\n{child}\n{setup}")
    environment = [
        f"os.environ.setdefault({name!r}, {value!r})" for name, value in variables.items()
    ]
    modules = sorted({"import sys", *made.imports, *(["import os"] if environment else [])})
    functions = [_function("convert", setup, child, subjects)] if child else []
    functions += [
        f"def problem():\n{inside(body)}" if child else _function("problem", setup, body, subjects)
    ]
    parts = [
        _head(made.symptom, subjects),
        block(*(line for line in modules if line.startswith("import") or _binds(line) & used)),
        *([block(*environment) + "\n"] if environment else [""]),
        *(f"{function}\n\n" for function in functions),
        TAIL.format(call=CHILD if child else "problem()"),
    ]
    return "\n".join(parts)


def _head(symptom: str, subjects: Sequence[Subject]) -> str:
    details = block(f"x is a {subjects[0].array_text}.", EXITS)
    texts = [fill(_in_docstring(line), WIDTH) for line in details.splitlines()]
    first = fill(_in_docstring(symptom) + ".", WIDTH - 3)
    return HEAD.format(symptom=first, details="\n".join(texts))


def _in_docstring(text: str) -> str:
    return clean(text).replace("\\", "\\\\").replace('"""', "'''")


def _function(name: str, setup: str, body: str, subjects: Sequence[Subject]) -> str:
    """A function that imports what its body uses, tells the versions, and does it."""
    tree = ast.parse(setup)
    modules = _modules(tree, subjects)
    text = folded(ast.unparse(_needed(tree, _names(body) | set(modules.values()))))
    told = "".join(f", {name!r}, {bound}.__version__" for name, bound in modules.items())
    versions = f"print('Python', sys.version.split()[0]{told}, flush=True)"
    return f"def {name}():\n{inside(block(text, versions) + chr(10) * 2 + body)}"


def _needed(tree: ast.Module, used: set[str]) -> ast.Module:
    """The statements of a setup that a body needs, each import alone and once."""
    kept: dict[str, ast.stmt] = {}
    for statement in reversed(tree.body):
        for single in _single(statement):
            if _bound(single) & used or not _bound(single):
                used = used | _names(ast.unparse(single))
                kept.setdefault(ast.unparse(single), single)
    order = {ast.unparse(single): single for one in tree.body for single in _single(one)}
    return ast.Module([single for text, single in order.items() if text in kept], [])


def _single(statement: ast.stmt) -> list[ast.stmt]:
    """An import of several names as several imports."""
    if isinstance(statement, ast.Import):
        return [ast.Import([alias]) for alias in statement.names]
    if isinstance(statement, ast.ImportFrom):
        return [
            ast.ImportFrom(statement.module, [alias], statement.level) for alias in statement.names
        ]
    return [statement]


def _bound(statement: ast.stmt) -> set[str]:
    """The names that a statement of a setup makes."""
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {alias.asname or alias.name.partition(".")[0] for alias in statement.names}
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return {statement.name}
    if isinstance(statement, ast.Assign):
        return {target.id for target in statement.targets if isinstance(target, ast.Name)}
    return set()


def _binds(line: str) -> set[str]:
    return {name for statement in ast.parse(line).body for name in _bound(statement)}


def _names(text: str) -> set[str]:
    """The names that a text uses."""
    return {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}


def _setup(subjects: Sequence[Subject]) -> str:
    """The imports and functions that the frameworks' names come from."""
    texts = [text for one in subjects for text in one.recipe.setup]
    return plain("\n".join(dict.fromkeys(texts)))


def _modules(setup: ast.Module, subjects: Sequence[Subject]) -> dict[str, str]:
    """The frameworks' modules that the setup imports, and the names they have there."""
    wanted = {name for one in subjects for name in one.recipe.modules}
    return {
        alias.name: alias.asname or alias.name
        for statement in setup.body
        if isinstance(statement, ast.Import)
        for alias in statement.names
        if alias.name in wanted
    }


def _variables(session: Session) -> dict[str, str]:
    """Environment variables that the probes ask for, as they were."""
    found = session.environment.get("variables")
    return {str(name): str(value) for name, value in found.items()} if _is_map(found) else {}


def _is_map(thing: object) -> bool:
    return isinstance(thing, dict)


def _check(text: str) -> None:
    """Raise :class:`NoReproducer` for a script that is none, or that hides something."""
    hidden = {character for character in text if unicodedata.category(character) in HIDDEN}
    if hidden - {"\n"}:
        raise NoReproducer("the session's source text holds characters that cannot be shown")
    try:
        compile(text, "<reproducer>", "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise NoReproducer(f"the session's source text is not Python: {error}") from None
    lines = text.splitlines()
    if len(lines) > MOST_LINES or max(map(len, lines)) > LONGEST_LINE:
        raise NoReproducer("the session's source text is too long for a reproducer")


__all__ = ["Reproducer", "reproducer"]
