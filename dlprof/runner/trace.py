"""Run a program under the tracer, and make one trace of what its processes wrote."""

from __future__ import annotations

import ast
import datetime
import json
import linecache
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dlprof.errors import UsageError
from dlprof.runner import files
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
"""Lines kept around a row, characters kept of a line, and rows whose source is kept."""
ALLOW = re.compile(
    r"#\s*dlprof:\s*allow\s+((?:copy|wait|device-crossing)(?:,\s*(?:copy|wait|device-crossing))*)"
)


@dataclass(frozen=True)
class Program:
    """What to run, as after ``python``; ``include`` names packages whose lines count as own."""

    words: tuple[str, ...]
    as_module: bool = False
    include: tuple[str, ...] = ()
    events: bool = False
    simulated: int = 0
    """CUDA devices that are simulated; 0 for those of the machine."""


def trace(program: Program) -> Trace:
    """Run the program to its end, with its own input and output.

    ``exit_code`` is negative if a signal ended it. Raises :class:`UsageError` without a file.
    """
    name = program.words[0]
    if not (program.as_module or Path(name).is_file() or Path(name, "__main__.py").is_file()):
        raise UsageError(f"there is no file {name or repr(name)}; -m runs a module")
    with files.temporary_folder("the program's processes are traced") as folder:
        asked = {
            "folder": folder,
            "include": program.include,
            "events": program.events,
            "as_module": program.as_module,
        }
        flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # noqa: SLF001
        command = [sys.executable, *flags, MAIN, json.dumps(asked)]
        created, began = datetime.datetime.now(datetime.timezone.utc), time.perf_counter_ns()
        code = _run([*command, *program.words], _environment(program))
        wall_ns = time.perf_counter_ns() - began
        with uninterrupted():  # a second Ctrl-C
            parts = list(_parts(Path(folder)))
            return completed(
                {
                    "program": list(program.words),
                    "exit_code": code,
                    "simulated": program.simulated,
                    "wall_ns": wall_ns,
                    "created": f"{created:%Y-%m-%dT%H:%M:%SZ}",
                    **merged(parts),
                }
            )


def _run(command: Sequence[str], variables: Mapping[str, str]) -> int:
    """Run a command to its end. Return the exit code, negative for a signal that ended it.

    It gets the signals that ask dlprof to end. Ctrl-C in a terminal reaches it anyway.
    """
    process = subprocess.Popen(command, env=variables)  # noqa: S603 - what the user named

    def pass_on(number: int, _: object) -> None:
        process.send_signal(number)

    before = {number: signal.signal(number, pass_on) for number in (signal.SIGTERM, signal.SIGHUP)}
    before[signal.SIGINT] = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        return process.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)


def _environment(program: Program) -> Mapping[str, str]:
    """Return the program's variables, with those of a simulated device."""
    if not program.simulated:
        return os.environ
    found = {**os.environ, **environment.variables(program.simulated)}
    return environment.on_simulated_device(found, sys.executable)


@contextmanager
def of_block(include: tuple[str, ...], keep: Callable[[Trace], None]) -> Iterator[None]:
    """Trace this process during the block, and keep the trace even after an error."""
    rows = Rows(None)
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
        keep(completed(json.loads(json.dumps(fields))))


def _parts(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield what each process wrote."""
    for path in folder.glob("*.json"):
        part = json.loads(path.read_text(encoding="utf-8"))
        idle = Path(f"{path}{IDLE}")
        yield {**part, "ended": part["ended"] or (idle.is_file() and idle.read_bytes() == b"1")}


def completed(fields: Mapping[str, Any]) -> Trace:
    """Return the trace of these ``fields``, with the source of each line and what is allowed there.

    Names and text of the program are sanitized.
    """
    linecache.checkcache()
    rows = [
        row.model_copy(
            update={
                "expression": expression(row.file, row.line, row.span)[:WIDEST],
                "allowed": sorted({*_allowed_at(row)}),
            }
        )
        for row in map(Row.model_validate, fields["rows"])
    ]
    whole = {**fields, "rows": [row.model_dump() for row in rows], "sources": _sources(rows)}
    return Trace.model_validate(sanitised(whole))


def _sources(rows: Sequence[Row]) -> dict[str, list[tuple[int, str]]]:
    """Return the lines around each row, by file."""
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
    """Return the lines of a file or of a notebook's cell."""
    return [line.rstrip("\n") for line in linecache.getlines(file)]


def expression(file: str, line: int, span: Sequence[int] | None) -> str:
    """Return the text of a conversion, or the whole line if its columns do not hold a call."""
    lines = _source(file)
    if not 1 <= line <= len(lines):
        return ""
    if span and span[1] <= len(lines):
        first, last, begin, end = span
        texts = [text.encode() for text in lines[first - 1 : last]]
        texts[-1] = texts[-1][:end]
        texts[0] = texts[0][begin:]
        with suppress(SyntaxError, ValueError):
            tree = ast.parse(b"\n".join(texts).decode("utf-8", "replace"), mode="eval")
            if any(isinstance(node, ast.Call) for node in ast.walk(tree)):
                return ast.unparse(tree)
    return lines[line - 1].split("#")[0].strip()


def _allowed_at(row: Row) -> Iterator[str]:
    """Yield what comments on the lines of the expression allow."""
    first, last = (row.span or (row.line, row.line))[:2]
    for text in _source(row.file)[max(min(first, row.line) - 1, 0) : max(last, row.line)]:
        for words in ALLOW.findall(text):
            yield from (word.strip() for word in words.split(","))


def checked(words: Iterable[str]) -> tuple[str, ...]:
    """Return words of :data:`FAULTS`. Raises :class:`UsageError` for any other."""
    found = tuple(words)
    for word in found:
        if word not in FAULTS:
            raise UsageError(f"{word}: expected {', '.join(FAULTS)}")
    return found


def faults(row: Row) -> list[str]:
    """Return what the line does that ``--fail-on`` may name and that is not allowed there."""
    found = {
        COPY: row.copies > 0,
        WAIT: row.waits > 0,
        CROSSING: bool(row.crossings),
    }
    return [word for word, does in found.items() if does and word not in row.allowed]


def doubts(row: Row) -> list[str]:
    """Return the words of :data:`FAULTS` that may apply to the line, but are not known to."""
    is_cut = bool(row.trouble)
    found = {
        COPY: is_cut or row.unknown > row.empty,
        WAIT: is_cut or row.maybe_waits > 0,
        CROSSING: is_cut or (row.unknown > row.empty and row.device in {"", "?"}),
    }
    return [word for word, may in found.items() if may and word not in row.allowed]
