"""Run a program under the tracer, and keep what its processes wrote as one trace.

Times are in ns, sizes in bytes. A trace has the schema ``dlprof.trace/1``; additive changes keep
the version.
"""

from __future__ import annotations

import ast
import datetime
import json
import linecache
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from pydantic import Field, ValidationError

from dlprof.errors import SessionError, UsageError
from dlprof.runner import files
from dlprof.runner.evidence import Maybe, Model, Number, Whole
from dlprof.runner.interrupts import uninterrupted
from dlprof.runner.machine import Meter
from dlprof.runner.worker_client import same_interpreter
from dlprof.simulated import environment
from dlprof.text import json_text
from dlprof.text.clean import sanitised
from dlprof.text.source import NOT_PYTHON
from dlprof.tracer.calls import Tracer
from dlprof.tracer.install import Installed
from dlprof.tracer.place import Places
from dlprof.tracer.program import MAIN
from dlprof.tracer.rows import CALLS, OTHERS, SCHEMA, SLOTS, Rows
from dlprof.tracer.targets import ALWAYS_UNSEEN, UNSEEN

COPY, WAIT, CROSSING = "copy", "wait", "device-crossing"
FAULTS = (COPY, WAIT, CROSSING)
OUTLIVES_S = 5.0
SUMMED = (
    *("calls", "total_ns", "first_ns", "bytes", "views", "copies", "unknown"),
    *("raised", "waits", "maybe_waits", "waited_ns", "reads", "parallel_ns"),
)
AROUND, WIDEST = 5, 300
"""Lines kept around a row, and characters kept of a line."""
ALLOW = re.compile(
    r"#\s*dlprof:\s*allow\s+((?:copy|wait|device-crossing)(?:,\s*(?:copy|wait|device-crossing))*)"
)
METHODS = re.compile(
    # The last three are of data frames.
    "copy_?|astype|clone|contiguous|float|double|half|int|long|bool|to_(numpy|jax|torch)"
)
FUNCTIONS = re.compile(
    "ascontiguousarray|stack|cat|concat|concatenate|vstack|hstack|column_stack|"
    "(Float|Double|Half|BFloat16|Bool|Byte|Char|Short|Int|Long)Tensor"
)
"""Methods and functions of modules that copy arrays and that have no row."""
DTYPE = re.compile(r"dtype|\b(?:b?float|double|half|u?int\d|long|bool|complex|copy)")
"""Found in the arguments of a ``.to()`` that copies on its device."""
LEAST_SHARE = 100
"""A line without a row counts if it takes this part of the run."""
Result = Literal["view", "copy", "read", "mixed", "raised", "unknown"]


class TraceRow(Model):
    """A conversion on a line of the program. ``docs/trace.md`` explains the fields."""

    file: str
    line: Whole
    function: str
    conversion: str
    producer: str
    consumer: str
    calls: Whole
    total_ns: Whole
    bytes: Whole
    result: Result
    waits: Whole = 0
    waits_in: str = ""
    origin: Maybe[tuple[str, Whole]] = None
    is_argument: bool = False
    first_ns: Whole = 0
    expression: str = ""
    via: str = ""
    span: Maybe[list[Whole]] = None
    views: Whole = 0
    copies: Whole = 0
    unknown: Whole = 0
    reads: Whole = 0
    parallel_ns: Whole = 0
    line_ns: Whole = 0
    raised: Whole = 0
    maybe_waits: Whole = 0
    waited_ns: Whole = 0
    device: str = ""
    retyped: list[str] = Field(default_factory=list)
    crossings: list[tuple[str, str, Whole]] = Field(default_factory=list)
    arrays: list[tuple[str, list[Whole], Whole, Whole]] = Field(default_factory=list)
    allowed: list[str] = Field(default_factory=list)
    processes: list[Whole] = Field(default_factory=list)


class TracedProcess(Model):
    """A process of the program. ``docs/trace.md`` explains the fields."""

    pid: Whole
    argv: list[str] = Field(default_factory=list)
    started: Number = 0.0
    wall_ns: Whole = 0
    ended: bool = True
    open_calls: list[tuple[str, Whole, str]] = Field(default_factory=list)


class Trace(Model):
    """Conversions of a program. ``docs/trace.md`` explains the fields."""

    schema_: str = Field(SCHEMA, alias="schema")
    program: list[str]
    exit_code: Whole
    wall_ns: Whole
    created: str = ""
    simulated: Whole = 0
    interpreter: str = ""
    cores: Whole = 0
    foreign_cores: float | None = None
    python: str = ""
    versions: dict[str, str] = Field(default_factory=dict)
    processes: list[TracedProcess] = Field(default_factory=list)
    rows: list[TraceRow] = Field(default_factory=list)
    timeline: list[tuple[Whole, Whole, Whole, Whole, Whole]] = Field(default_factory=list)
    sources: dict[str, list[tuple[Whole, str]]] = Field(default_factory=dict)
    events: list[tuple[Whole, Whole, Whole, Whole, Whole]] = Field(default_factory=list)
    troubles: list[str] = Field(default_factory=list)
    arguments: list[tuple[str, Whole, Whole, Whole]] = Field(default_factory=list)
    frameworks: list[str] = Field(default_factory=list)
    lines: list[tuple[str, Whole, Whole]] = Field(default_factory=list)
    uncounted: list[tuple[str, Whole, Whole, list[str]]] = Field(default_factory=list)

    @property
    def unseen(self) -> tuple[str, ...]:
        """Return the forms that may occur in the program and that have no row."""
        if {*self.frameworks} <= {"numpy"}:
            return ()
        found = [form for name in self.frameworks for form in UNSEEN.get(name, ())]
        return tuple(dict.fromkeys((*found, *ALWAYS_UNSEEN)))


def trace(
    words: Sequence[str],
    as_module: bool = False,
    include: Sequence[str] = (),
    events: bool = False,
    simulated: int = 0,
    python: str = sys.executable,
) -> Trace:
    """Run a program to its end, with its own input and output; ``words`` are as after ``python``.

    ``include`` names packages whose lines count as own. ``simulated`` counts simulated CUDA
    devices. In the interpreter ``python``, dlprof need not be installed. ``exit_code`` is negative
    if a signal ended the program. Raises :class:`UsageError` without a file, and for an
    interpreter that cannot be started.
    """
    name = words[0]
    if not (as_module or Path(name).is_file()):
        if Path(name).name.startswith("python") and words[1:]:
            raise UsageError(f"leave out {name}: dlprof trace {shlex.join(words[1:])}")
        raise UsageError(f"there is no file {name or repr(name)}; -m runs a module")
    with TemporaryDirectory(prefix="dlprof-", ignore_cleanup_errors=True) as folder:
        options = {"folder": folder, "include": include, "events": events, "as_module": as_module}
        is_same = same_interpreter(python)
        flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # noqa: SLF001
        command = [python, *(flags if is_same else ()), MAIN, json.dumps(options)]
        variables: Mapping[str, str] = os.environ
        if simulated:
            variables = {**os.environ, **environment.variables(simulated)}
            variables = environment.on_simulated_device(variables, python)
        created, meter = datetime.datetime.now(datetime.timezone.utc), Meter()
        code = _run([*command, *words], variables)
        wall_s, foreign_cores = meter.read()
        with uninterrupted():  # a second Ctrl-C
            parts = _parts(Path(folder))
            return completed(
                {
                    "program": list(words),
                    "exit_code": code,
                    "simulated": simulated,
                    "interpreter": "" if is_same else python,
                    "wall_ns": round(wall_s * 1e9),
                    "cores": len(os.sched_getaffinity(0)),
                    "foreign_cores": foreign_cores,
                    "created": f"{created:%Y-%m-%dT%H:%M:%SZ}",
                    **merged(parts),
                }
            )


def _run(command: Sequence[str], variables: Mapping[str, str]) -> int:
    """Run a command to its end. Return the exit code, negative for a signal that ended it.

    It gets the signals that ask dlprof to end. Ctrl-C in a terminal reaches it anyway.
    """
    try:
        process = subprocess.Popen(command, env=variables)  # noqa: S603 - what the user named
    except OSError as error:
        python = f"cannot start the interpreter {command[0]}"
        raise UsageError(f"{python}: {error.strerror}") from None

    def pass_on(number: int, _: object) -> None:
        process.send_signal(number)

    handlers = {
        number: signal.signal(number, pass_on) for number in (signal.SIGTERM, signal.SIGHUP)
    }
    handlers[signal.SIGINT] = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        return process.wait()
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler or signal.SIG_DFL)


def _parts(folder: Path) -> list[dict[str, Any]]:
    """Read what the processes wrote. One that outlives the program has five seconds to end.

    The process from which ``forkserver`` starts others ends only after the program.
    """
    until = time.monotonic() + OUTLIVES_S
    while True:
        parts = [json.loads(path.read_bytes()) for path in folder.glob("*.json")]
        running = any(not part["ended"] and _is_running(part["pid"]) for part in parts)
        if not running or time.monotonic() > until:
            break
        time.sleep(0.02)
    for part in parts:
        if not part["ended"]:
            part["open_calls"] = _open_calls(folder / f"{part['pid']}-{part['started']:.6f}{CALLS}")
    return parts


def _open_calls(path: Path) -> list[tuple[str, int, str]]:
    """Return file, line and conversion of calls that had not returned."""
    with suppress(OSError, ValueError):
        content = path.read_bytes()
        slots, lines = content[: 8 * SLOTS], content[8 * SLOTS :].splitlines()
        rows = {number: entry for number, *entry in map(json.loads, lines)}
        return [tuple(rows[number]) for number in {*memoryview(slots).cast("q")} if number in rows]
    return []


def _is_running(pid: int) -> bool:
    with suppress(OSError):
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
        return state not in (b"Z", b"X")
    return False


@contextmanager
def traced_block(include: tuple[str, ...], keep: Callable[[Trace], None]) -> Iterator[None]:
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


def completed(fields: Mapping[str, Any]) -> Trace:
    """Return the trace of these ``fields``, with what the source of its lines says.

    Names and text of the program are sanitized.
    """
    return Trace.model_validate(sanitised({**fields, **_with_source(fields)}))


class File:
    """The source of one file."""

    def __init__(self, name: str) -> None:
        self.lines: list[str] = []
        with suppress(OSError, ValueError):  # code may name any file as its own
            if not Path(name).exists() or files.is_readable(Path(name)):
                self.lines = [line.rstrip("\n") for line in linecache.getlines(name)]
        self.statements: dict[int, tuple[int, int, tuple[str, ...]]] = {}
        """By line: first and last line of its statement, without blocks, and its copies."""
        self.expressions: dict[tuple[int | None, ...], ast.expr] = {}
        """By first and last line, and columns."""
        with suppress(*NOT_PYTHON):
            for node in ast.walk(ast.parse("\n".join(self.lines))):  # the innermost is the last
                if isinstance(node, ast.expr):
                    span = node.lineno, node.end_lineno, node.col_offset, node.end_col_offset
                    self.expressions[span] = node
                elif isinstance(node, ast.stmt) and not hasattr(node, "decorator_list"):
                    body = getattr(node, "body", None)
                    last = max(node.lineno, body[0].lineno - 1) if body else node.end_lineno
                    entry = node.lineno, last or node.lineno, _copies(node, last or node.lineno)
                    self.statements.update(dict.fromkeys(range(entry[0], entry[1] + 1), entry))

    def around(self, lines: Iterable[int]) -> list[tuple[int, str]]:
        """Return the text around ``lines``, with its numbers."""
        near = {other for line in lines for other in range(line - AROUND, line + AROUND + 1)}
        numbers = sorted(near & {*range(1, len(self.lines) + 1)})
        return [(number, self.lines[number - 1][:WIDEST]) for number in numbers]

    def text(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the row's expression, or its line if that has no call, and what it allows."""
        line, span = row["line"], row["span"] or ()
        node = self.expressions.get(tuple(span))
        expression = "".join(self.lines[line - 1 : line]).split("#")[0].strip()
        with suppress(RecursionError):  # a long chain of operands
            if node is not None and any(isinstance(part, ast.Call) for part in ast.walk(node)):
                expression = ast.unparse(node)
        first, last = span[:2] or (line, line)
        comments = "\n".join(self.lines[max(min(first, line) - 1, 0) : max(last, line)])
        words = {word.strip() for found in ALLOW.findall(comments) for word in found.split(",")}
        return {"expression": expression[:WIDEST], "allowed": sorted(words)}


def _copies(statement: ast.stmt, last: int) -> tuple[str, ...]:
    """Return the calls up to the line ``last`` that copy arrays and that have no row."""
    found: dict[str, None] = {}
    for target in getattr(statement, "targets", ()):
        if any(isinstance(part, ast.Slice) for part in ast.walk(target)):
            found[f"{ast.unparse(target)} ="] = None
    for node in ast.walk(statement):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        name = node.func.attr
        arguments = map(ast.unparse, (*node.args, *node.keywords))
        is_cast = name == "to" and any(map(DTYPE.search, arguments))
        if node.lineno > last:
            continue
        if METHODS.fullmatch(name) or is_cast:
            found[f".{name}()"] = None
        elif FUNCTIONS.fullmatch(name) and isinstance(node.func.value, ast.Name):
            found[f"{node.func.value.id}.{name}()"] = None
    return tuple(found)


def _with_source(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the source says: rows with it, the text around them, and ``uncounted``."""
    linecache.checkcache()
    least_ns = fields["wall_ns"] / LEAST_SHARE
    times_ns = {(file, line): ns for file, line, ns in fields["lines"]}
    long = [place for place, ns in times_ns.items() if ns >= least_ns]
    places = dict.fromkeys([*((row["file"], row["line"]) for row in fields["rows"]), *long])
    main = map(os.path.abspath, fields["program"][:1])
    found = {name: File(name) for name in {*(file for file, _ in places), *main}}
    for name, file in found.items():
        for first, _, copies in file.statements.values():
            if any(call.endswith("Tensor()") for call in copies):  # of immutable types
                places[name, first] = None
    conversions = {
        (
            row["file"],
            row["line"],
            re.sub(r"^[xt](?=\.)", "", row["conversion"]).replace("(x)", "()"),
        )
        for row in fields["rows"]
    }
    statements = {}
    for file, line in places:
        first, last, copies = found[file].statements.get(line, (line, line, ()))
        copies = tuple(call for call in copies if (file, line, call) not in conversions)
        took_ns = sum(times_ns.get((file, number), 0) for number in range(first, last + 1))
        statements[file, line] = first, took_ns, copies
    uncounted = {
        (file, first): (file, first, took_ns, copies)
        for (file, _), (first, took_ns, copies) in statements.items()
        if copies and not {*fields["frameworks"]} <= {"numpy"}
    }
    lines_by_file: dict[str, list[int]] = defaultdict(list)
    for row in fields["rows"]:
        lines_by_file[row["file"]].append(row["line"])
    by_place = {
        "arguments": fields["arguments"],
        "lines": fields["lines"],
        "uncounted": sorted(uncounted.values(), key=lambda entry: -entry[2]),
    }
    return {
        "rows": [
            {
                **row,
                **found[row["file"]].text(row),
                "file": _cell(row["file"]),
                "origin": row["origin"] and (_cell(row["origin"][0]), row["origin"][1]),
                "line_ns": statements[row["file"], row["line"]][1],
            }
            for row in fields["rows"]
        ],
        "sources": {
            _cell(name): found[name].around(lines) for name, lines in lines_by_file.items()
        },
        **{
            key: [(_cell(file), *entry) for file, *entry in entries]
            for key, entries in by_place.items()
        },
    }


def _cell(name: str) -> str:
    """Return ``In[5]`` for the file of a notebook's cell, and any other name as it is."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    found = shell and shell.compile.format_code_name(name)
    return found[1] if found else name


def merged(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what the processes of a program wrote, as fields of :class:`Trace`."""
    parts = sorted(parts, key=lambda part: part["started"])
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for part in parts:
        for row in part["rows"]:
            key = _identity(row)
            if key in rows:
                _add(rows[key], row)
            else:
                rows[key] = {**row, "processes": []}
            rows[key]["processes"].append(part["pid"])
    for row in rows.values():
        row["result"] = _result(row)
    rows = dict(sorted(rows.items(), key=lambda item: -item[1]["total_ns"]))
    places = {key: place for place, key in enumerate(rows)}
    longest: dict[tuple[str, int], int] = {}  # processes run at once
    for file, line, took_ns in (entry for part in parts for entry in part["lines"]):
        longest[file, line] = max(took_ns, longest.get((file, line), 0))
    timeline: list[tuple[int, ...]] = []
    events: list[tuple[int, ...]] = []
    for index, part in enumerate(parts):
        shift_ns = round((part["started"] - parts[0]["started"]) * 1e9)
        row_places = [places[_identity(row)] for row in part["rows"]]
        timeline += [
            (begin + shift_ns, end + shift_ns, row_places[row], took, index)
            for begin, end, row, took in part["timeline"]
        ]
        events += [
            (began + shift_ns, took, row_places[row], index, thread)
            for began, took, row, thread in part["events"]
        ]
    return {
        "python": parts[0]["python"] if parts else "",
        "versions": {name: text for part in parts for name, text in part["versions"].items()},
        "processes": [
            {key: part[key] for key in TracedProcess.model_fields if key in part} for part in parts
        ],
        "rows": list(rows.values()),
        "arguments": _summed([entry for part in parts for entry in part["arguments"]], 2),
        "lines": sorted(
            ((*place, took_ns) for place, took_ns in longest.items()), key=lambda entry: -entry[2]
        ),
        "frameworks": sorted({name for part in parts for name in part["frameworks"]}),
        "timeline": timeline,
        "events": events,
        "troubles": sorted({text for part in parts for text in part["troubles"]}),
    }


def _identity(row: Mapping[str, Any]) -> tuple[Any, ...]:
    names = ("file", "line", "function", "conversion", "producer", "consumer", "via")
    return (*(row[name] for name in names), tuple(row["span"] or ()))


def _add(row: dict[str, Any], other: Mapping[str, Any]) -> None:
    for name in SUMMED:
        row[name] += other[name]
    row["crossings"] = _summed([*row["crossings"], *other["crossings"]], 2)
    arrays = [
        (dtype, tuple(shape), size, calls)
        for dtype, shape, calls, size in (*row["arrays"], *other["arrays"])
    ]
    summed = sorted(_summed(arrays, 3), key=lambda entry: entry[0] == OTHERS)
    row["arrays"] = [(dtype, list(shape), calls, size) for dtype, shape, size, calls in summed]
    row["retyped"] = sorted({*row["retyped"], *other["retyped"]})
    for name in ("device", "waits_in", "origin", "is_argument"):
        row[name] = row[name] or other[name]


def _result(row: Mapping[str, Any]) -> str:
    """Return the word for the calls of a line. Empty arrays are neither view nor copy."""
    unknown = max(row["unknown"] - empty_calls(row["arrays"]), 0)
    counts = {"view": row["views"], "copy": row["copies"], "read": row["reads"], "unknown": unknown}
    found = [word for word, count in counts.items() if count]
    if found:
        return found[0] if len(found) == 1 else "mixed"
    return "raised" if row["raised"] and not row["unknown"] else "unknown"


def empty_calls(arrays: Iterable[Sequence[Any]]) -> int:
    """Return the number of calls for arrays without elements, which have no memory."""
    return sum(calls for _, shape, calls, _ in arrays if 0 in shape)


def _summed(entries: Iterable[Sequence[Any]], names: int) -> list[tuple[Any, ...]]:
    """Add up the counts of entries with the same first ``names`` items, and sort by the last."""
    found: dict[tuple[Any, ...], list[int]] = {}
    for entry in entries:
        key, counts = tuple(entry[:names]), tuple(entry[names:])
        others = found.get(key, [0] * len(counts))
        found[key] = [count + other for count, other in zip(counts, others, strict=True)]
    return sorted(((*key, *counts) for key, counts in found.items()), key=lambda item: -item[-1])


def load(path: Path) -> Trace:
    """Read a trace. Raises :class:`SessionError` with one sentence that says why not."""
    try:
        return Trace.model_validate(json_text.loads(files.read_bytes(path).decode("utf-8-sig")))
    except (json.JSONDecodeError, ValidationError, RecursionError) as error:
        first = str(error).split("\n")[0]
        raise SessionError(f"{path} is not a whole trace of dlprof: {first}") from None
    except (OSError, ValueError) as error:
        raise SessionError(f"cannot read the trace {path}: {error}") from None


def write(path: Path, trace: Trace) -> None:
    """Write a trace. Raises :class:`UsageError` if it cannot be written."""
    with files.atomic(path) as file:
        file.write(text(trace))


def text(trace: Trace) -> str:
    return json_text.dump(trace.model_dump(by_alias=True)) + "\n"


def checked(words: Iterable[str]) -> tuple[str, ...]:
    """Return words of :data:`FAULTS`. Raises :class:`UsageError` for any other."""
    found = tuple(words)
    for word in found:
        if word not in FAULTS:
            raise UsageError(f"{word}: expected {', '.join(FAULTS)}")
    return found


def faults(row: TraceRow) -> list[str]:
    """Return what the line does that ``--fail-on`` may name and that is not allowed there."""
    found = {
        COPY: row.copies > 0,
        WAIT: row.waits > 0,
        CROSSING: bool(row.crossings),
    }
    return [word for word, does in found.items() if does and word not in row.allowed]


def doubts(row: TraceRow) -> list[str]:
    """Return the words of :data:`FAULTS` that may apply to the line, but are not known to."""
    is_unknown = row.unknown > empty_calls(row.arrays)
    found = {
        COPY: is_unknown,
        WAIT: row.maybe_waits > 0,
        CROSSING: is_unknown and row.device in {"", "?"},
    }
    return [word for word, may in found.items() if may and word not in row.allowed]
