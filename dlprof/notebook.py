"""Magics of IPython and Jupyter, after ``%load_ext dlprof``.

``%%dlprof`` traces a cell. ``%dlprof x.numpy()`` measures an expression, as ``dlprof time`` does.
"""

from __future__ import annotations

import ast
import pickle
import shlex
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

from dlprof.api import Traced, measure, trace
from dlprof.errors import DlprofError, UsageError
from dlprof.report import markdown, terminal
from dlprof.report.document import Document
from dlprof.report.session_document import session_document
from dlprof.report.trace_document import trace_document


def register(shell: Any) -> None:
    """Give a shell of IPython the magics."""
    from IPython.core import error, magic

    @magic.no_var_expand  # type: ignore[untyped-decorator]  # {x} in an expression is Python
    def dlprof(line: str, cell: str | None = None) -> None:
        """Trace a cell, or measure an expression."""
        try:
            if cell is None:
                _measure(shell, line)
            else:
                _trace(shell, line, cell)
        except DlprofError as reason:
            raise error.UsageError(f"dlprof: {reason}") from None

    shell.register_magic_function(dlprof, "line_cell")


def _trace(shell: Any, line: str, cell: str) -> None:
    """Run a cell under the tracer and show its report, also after an error.

    ``line`` names packages whose lines count as the cell's own.
    """
    source = "\n" + shell.transform_cell(cell)  # the line of the magic counts
    number = len(shell.user_ns["In"]) - 1  # execution_count may be that of the next cell
    name = shell.compile.cache(source, number, raw_code=source)
    statements = ast.parse(source, name).body
    last = statements[-1:] if statements and isinstance(statements[-1], ast.Expr) else []
    body = ast.Module(statements[: len(statements) - len(last)], [])
    found = Traced()
    try:
        with trace(shlex.split(line)) as found:
            exec(compile(body, name, "exec"), shell.user_ns)  # noqa: S102 - the user's own cell
            exec(compile(ast.Interactive(last), name, "single"), shell.user_ns)  # noqa: S102
    finally:
        if found.trace is not None:
            _show(trace_document(found.trace, full=True))


def _measure(shell: Any, expression: str) -> None:
    """Measure an expression of arrays and modules of the notebook, in other processes."""
    with TemporaryDirectory(prefix="dlprof-") as folder:
        setup = _setup(expression, shell.user_ns, Path(folder, "arrays"))
        session = measure(expression, setup=setup)
    _show(session_document(session))


def _setup(expression: str, names: Mapping[str, Any], file: Path) -> str:
    """Return code that makes the names of an expression in another process, by way of ``file``."""
    try:
        tree = ast.parse(expression, mode="eval")
    except SyntaxError as error:
        command, _, rest = expression.partition(" ")
        cause = f"write %dlprof {rest}" if command == "time" else error.msg
        raise UsageError(f"{expression or 'nothing'} is no expression: {cause}") from None
    used = sorted({node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} & {*names})
    values = {name: names[name] for name in used if not isinstance(names[name], ModuleType)}
    for name, value in values.items():
        try:
            copy = pickle.loads(pickle.dumps(value))  # noqa: S301 - written here
        except Exception as error:  # noqa: BLE001 - a framework's own pickling
            raise UsageError(f"{name} cannot go to another process: {error}") from None
        if _layout(copy) != _layout(value):
            raise UsageError(
                f"{name} loses its strides or its read-only flag on the way to another process: "
                "use dlprof.measure with a setup that makes it"
            )
    file.write_bytes(pickle.dumps(values))
    modules = [f"import {names[name].__name__} as {name}" for name in used if name not in values]
    loaded = f"globals().update(__import__('pickle').loads(open({str(file)!r}, 'rb').read()))"
    return "\n".join([*modules, loaded])


def _layout(value: Any) -> tuple[Any, ...]:
    """Return strides and the writable flag of a NumPy array; other arrays are pickled with them."""
    flags = getattr(value, "flags", None)
    return getattr(value, "strides", None), getattr(flags, "writeable", None)


def _show(document: Document) -> None:
    from IPython.display import display

    texts = {
        "text/plain": terminal.render(document, full=True),
        "text/markdown": markdown.render(document),
    }
    display(texts, raw=True)
