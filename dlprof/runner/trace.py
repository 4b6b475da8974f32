"""Run a program under the tracer, and make one trace of what its processes wrote."""

from __future__ import annotations

import ast
import datetime
import io
import json
import linecache
import os
import re
import subprocess
import sys
import time
import tokenize
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

from dlprof.errors import UsageError
from dlprof.runner import files, traced_process
from dlprof.runner.interrupts import uninterrupted
from dlprof.runner.trace_file import Row, Trace, merged
from dlprof.simulated import environment
from dlprof.text.clean import sanitised
from dlprof.tracer.install import Installed
from dlprof.tracer.place import Places
from dlprof.tracer.pools import IDLE
from dlprof.tracer.program import MAIN
from dlprof.tracer.rows import Rows
from dlprof.tracer.state import Tracer

COPY, WAIT, CROSSING = "copy", "wait", "device-crossing"
FAULTS = (COPY, WAIT, CROSSING)
AROUND, WIDEST, MOST_SOURCES = 5, 300, 1000
"""Lines kept before and after a row, characters of a line or an expression, and rows whose source
is kept."""
ALLOW = re.compile(r"#\s*dlprof:\s*allow\s+([a-z-].*)")
WORD = re.compile("[a-z-]+")


@dataclass(frozen=True)
class Program:
    """What to run, as after ``python``; ``include`` names packages whose lines count as own."""

    words: tuple[str, ...]
    as_module: bool = False
    include: tuple[str, ...] = ()
    events: bool = False
    most_percent: float | None = None
    """Of the time, what tracing may take before it stops counting views."""
    simulated: int = 0
    """CUDA devices that are simulated; 0 for those of the machine."""
    variables: Mapping[str, str] | None = None
    """The program's environment; None for that of this process."""

    def check(self) -> None:
        """Raise :class:`UsageError` where there is nothing to run."""
        if not self.words:
            raise UsageError("name a program, such as: dlprof trace train.py")
        name = self.words[0]
        if not self.as_module and not any(
            map(Path.is_file, (Path(name), Path(name, "__main__.py")))
        ):
            raise UsageError(f"there is no file {name or repr(name)}; -m runs a module")


def trace(program: Program) -> Trace:
    """Run the program to its end. What it prints and reads is its own.

    ``exit_code`` is negative for a signal that ended it.
    """
    program.check()
    listed = _listed(Path.cwd())  # a mistake there is no reason to lose a trace
    with files.temporary_folder("the program's processes are traced") as folder:
        asked = {
            "folder": folder,
            "include": program.include,
            "events": program.events,
            "most_percent": program.most_percent,
            "as_module": program.as_module,
        }
        flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # noqa: SLF001
        command = [sys.executable, *flags, MAIN, json.dumps(asked)]
        created, began = datetime.datetime.now(datetime.timezone.utc), time.perf_counter_ns()
        code = traced_process.run([*command, *program.words], _environment(program))
        wall_ns = time.perf_counter_ns() - began
        with uninterrupted():  # a second Ctrl-C
            parts = list(_parts(Path(folder)))
            return completed(
                {
                    "program": list(program.words),
                    "exit_code": code,
                    "simulated": program.simulated,
                    "include": list(program.include),
                    "wall_ns": wall_ns,
                    "created": f"{created:%Y-%m-%dT%H:%M:%SZ}",
                    **merged(parts),
                },
                listed,
            )


def _environment(program: Program) -> Mapping[str, str]:
    """What the program finds: its own variables, and what a simulated device needs."""
    own = os.environ if program.variables is None else program.variables
    if not program.simulated:
        return own
    found = {**own, **environment.variables(program.simulated)}
    return environment.on_simulated_device(found, sys.executable)


@contextmanager
def of_block(include: tuple[str, ...], keep: Callable[[Trace], None]) -> Iterator[None]:
    """Trace this process. However the block ends, its trace is kept."""
    rows, listed = Rows(None), _listed(Path.cwd())
    tracer = Tracer(Places(include), rows)
    installed = Installed(tracer, everywhere=True)
    installed.start()
    try:
        yield
    finally:
        installed.stop()
        tracer.stop()
        tracer.finish()
        part = rows.as_dict(ended=True)
        fields = {"program": [], "exit_code": 0, "wall_ns": part["wall_ns"], **merged([part])}
        fields["include"] = list(include)
        keep(completed(json.loads(json.dumps(fields)), listed))


def _parts(folder: Path) -> Iterator[dict[str, Any]]:
    """What each process wrote; the file of a process is whole or not there."""
    for path in folder.glob("*.json"):
        part = json.loads(path.read_text(encoding="utf-8"))
        idle = Path(f"{path}{IDLE}")
        has_ended = part["ended"] or (idle.is_file() and idle.read_bytes() == b"1")
        yield {**part, "ended": has_ended, "running": not has_ended and _is_running(part["pid"])}


def _is_running(pid: int) -> bool:
    with suppress(OSError):
        if Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(") ")[2][:1] in "ZX":
            return False  # it has ended, and its parent does not ask
    try:
        os.kill(pid, 0)
    except OSError:  # there is none, or by now it is somebody else's
        return False
    return True


def completed(fields: Mapping[str, Any], listed: Sequence[tuple[str, str, str]] = ()) -> Trace:
    """The trace of these ``fields``, with the text of each line, and what the program says that it
    expects there, with what is ``listed`` of it. Its words are any program's: here they are made
    harmless.
    """
    linecache.checkcache()
    rows = []
    for placed in map(Row.model_validate, fields["rows"]):
        row = placed.model_copy(update={"span": _span_of_value(placed.file, placed.span)})
        words = {
            "expression": expression(row.file, row.line, row.span),
            "allowed": sorted({*_allowed_at(row), *_allowed_in(row, listed)}),
        }
        rows.append(row.model_copy(update=words))
    told = [row.model_copy(update={"expression": _step(row, rows)[:WIDEST]}) for row in rows]
    whole = {**fields, "rows": [row.model_dump() for row in told], "sources": _sources(rows)}
    return Trace.model_validate(sanitised(whole))


def _step(row: Any, rows: Sequence[Any]) -> str:
    """The text of a conversion without that of the conversion whose result it converts."""
    place = row.file, row.line, row.function
    before = [
        other.expression
        for other in rows
        if (other.file, other.line, other.function) == place
        and row.expression.startswith(f"{other.expression}.")
        and other.expression
    ]
    return f"…{row.expression[len(max(before, key=len)) :]}" if before else row.expression


def _sources(rows: Sequence[Any]) -> dict[str, list[tuple[int, str]]]:
    """The lines around each row, by file."""
    wanted: dict[str, set[int]] = {}
    for row in rows[:MOST_SOURCES]:
        wanted.setdefault(row.file, set()).update(range(row.line - AROUND, row.line + AROUND + 1))
    found = {file: _source(file) for file in wanted}
    return {
        file: [(at, lines[at - 1][:WIDEST]) for at in sorted(wanted[file]) if 0 < at <= len(lines)]
        for file, lines in found.items()
        if lines
    }


def _source(file: str) -> list[str]:
    """The lines of a file, or of a notebook's cell, as Python counts them."""
    return [line.rstrip("\n") for line in linecache.getlines(file)]


def _span_of_value(file: str, span: list[int] | None) -> list[int] | None:
    """Where the value stands that Python unpacks or iterates over at ``span``.

    In ``a, *b = map(torch.from_numpy, xs)`` it converts when it unpacks, and places that at the
    names. In a loop over ``map(…)``, Python 3.11 places it at the whole loop.
    """
    if span is None:
        return None
    return _values("\n".join(_source(file)) + "\n").get(tuple(span), span)


@cache
def _values(text: str) -> dict[tuple[int, ...], list[int]]:
    """By the span of a target of several names, or of a loop: that of the value or iterable."""
    found: dict[tuple[int, ...], list[int]] = {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python has said it
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return found  # a cell of a notebook has a syntax of its own
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
            targets, value = [node.target], node.iter
        else:
            continue
        if isinstance(node, ast.For):
            found[tuple(_span(node))] = _span(value)
        for one in (inner for target in targets for inner in ast.walk(target)):
            if isinstance(one, (ast.Tuple, ast.List)) and isinstance(one.ctx, ast.Store):
                found[tuple(_span(one))] = _span(value)
    return found


def _span(node: ast.expr | ast.stmt) -> list[int]:
    last, end = node.end_lineno, node.end_col_offset
    return [node.lineno, last or node.lineno, node.col_offset, end or 0]


def expression(file: str, line: int, span: Sequence[int] | None) -> str:
    """The text of the conversion in one line; the whole line where its columns are not known."""
    lines = _source(file)
    if not 1 <= line <= len(lines):
        return ""
    if not span or span[1] > len(lines):
        return lines[line - 1].split("#")[0].strip()
    first, last, begin, end = span
    texts = [text.encode() for text in lines[first - 1 : last]]
    texts[-1] = texts[-1][:end]
    texts[0] = texts[0][begin:]
    found = b"\n".join(texts).decode("utf-8", "replace")
    try:
        return ast.unparse(ast.parse(found, mode="eval"))
    except (SyntaxError, ValueError):
        return " ".join(found.split())


def _allowed_at(row: Any) -> list[str]:
    """The words of a comment on the line, on one of its expression, or at its statement's end."""
    first, last = (row.span or (row.line, row.line))[:2]
    texts, ends = _comments("\n".join(_source(row.file)) + "\n")
    lines = {*range(min(first, row.line), max(last, row.line) + 1), ends.get(row.line, row.line)}
    return [word for line in sorted(lines) for word in _allowing(texts.get(line, ""))]


def _allowing(comment: str) -> Iterator[str]:
    """Words up to the first that is none, which begins a reason: ``allow copy, as it is small``."""
    found = False
    for text in ALLOW.findall(comment):
        for part in map(str.strip, text.split(",")):
            word = WORD.match(part)
            is_reason = word is None or (word[0] not in FAULTS and word[0] != part and found)
            if word is None or is_reason:
                break
            found = True
            yield word[0]


@cache
def _comments(text: str) -> tuple[dict[int, str], dict[int, int]]:
    """The comments of a program by line, and where the statement of a line ends."""
    if "dlprof:" not in text:
        return {}, {}
    found, ends = dict[int, str](), dict[int, int]()
    unread = suppress(SyntaxError, tokenize.TokenError, ValueError, RecursionError)
    with unread, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python has said it
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                found[token.start[0]] = token.string
        for node in ast.walk(ast.parse(text)):  # from the outside inwards
            if isinstance(node, ast.stmt):
                end = _end(node)
                ends.update(dict.fromkeys(range(node.lineno, end + 1), end))
    return found, ends


def _end(statement: ast.stmt) -> int:
    """The last line of a statement; of one with a body, that of what stands before it."""
    if not hasattr(statement, "body") and not isinstance(statement, ast.Match):
        return statement.end_lineno or statement.lineno
    bodies = ast.stmt, ast.match_case, ast.excepthandler
    heads = [node for node in ast.iter_child_nodes(statement) if not isinstance(node, bodies)]
    lines = (getattr(node, "end_lineno", 0) for head in heads for node in ast.walk(head))
    return max((line for line in lines if line), default=statement.lineno)


def _listed(folder: Path) -> list[tuple[str, str, str]]:
    """File, function and word of what ``allow`` in the nearest ``pyproject.toml`` has."""
    for above in (folder, *folder.parents):
        path = above / "pyproject.toml"
        if path.is_file():
            return [_entry(text, path) for text in _table(path).get("allow", [])]
    return []


def _table(path: Path) -> Mapping[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read {path}: {error}") from None
    found = content.get("tool", {}).get("dlprof", {}).get("trace", {})
    return found if isinstance(found, dict) else {}


def _entry(text: object, path: Path) -> tuple[str, str, str]:
    where, _, word = str(text).rpartition(" ")
    if word not in FAULTS or not where:
        raise UsageError(
            f'{path}: tool.dlprof.trace.allow has "{text}": expected "file.py::function copy"'
        )
    file, _, function = where.strip().partition("::")
    return file, function, word


def _allowed_in(row: Any, listed: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    for file, function, word in listed:
        named = row.file == file or row.file.endswith(os.sep + file) or fnmatch(row.file, file)
        if named and function in ("", row.function):
            yield word


def checked(words: Iterable[str]) -> tuple[str, ...]:
    """What is not to happen, in words of :data:`FAULTS`. Raises :class:`UsageError`."""
    found = tuple(words)
    for word in found:
        if word not in FAULTS:
            raise UsageError(f"{word}: expected {', '.join(FAULTS)}")
    return found


def faults(row: Any) -> list[str]:
    """What the line does that ``--fail-on`` may name, without what is allowed there."""
    found = {
        COPY: row.copies > 0,
        WAIT: row.waits > 0,
        CROSSING: bool(row.crossings),
    }
    return [word for word, does in found.items() if does and word not in row.allowed]


def doubts(row: Any) -> list[str]:
    """What the line may do of it: not all of its calls were looked at, its memory or its device is
    not known, or one sign of a wait was seen.
    """
    is_cut = bool(row.trouble or row.stopped_ns)
    found = {
        COPY: is_cut or row.unknown > row.empty,
        WAIT: is_cut or row.maybe_waits > 0,
        CROSSING: is_cut or (row.unknown > row.empty and row.device in {"", "?"}),
    }
    return [word for word, may in found.items() if may and word not in row.allowed]
