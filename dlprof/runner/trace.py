"""Run a program under the tracer, and keep what its processes wrote as one trace.

Times are in ns, sizes in bytes. A trace has the schema ``dlprof.trace/1``; additive changes keep
the version.
"""

from __future__ import annotations

import datetime
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from pydantic import Field, ValidationError, model_validator

from dlprof.errors import SessionError, UsageError
from dlprof.runner import files, trace_source
from dlprof.runner.evidence import Maybe, Model, Number, Whole
from dlprof.runner.interrupts import uninterrupted
from dlprof.runner.worker_client import same_interpreter
from dlprof.simulated import environment
from dlprof.text import json_text
from dlprof.text.clean import sanitised
from dlprof.tracer.calls import Tracer
from dlprof.tracer.install import Installed
from dlprof.tracer.place import Places
from dlprof.tracer.program import MAIN
from dlprof.tracer.rows import OTHERS, SCHEMA, Rows, result_word
from dlprof.tracer.targets import ALWAYS_UNSEEN, UNSEEN

COPY, WAIT, CROSSING = "copy", "wait", "device-crossing"
FAULTS = (COPY, WAIT, CROSSING)
OUTLIVES_S = 5.0
SUMMED = (
    *("calls", "total_ns", "first_ns", "bytes", "views", "copies", "unknown"),
    *("raised", "waits", "maybe_waits", "waited_ns", "reads", "parallel_ns"),
)
Result = Literal["view", "copy", "read", "mixed", "raised", "unknown"]


class TraceRow(Model):
    """A conversion on a line of the program.

    ``library`` is the package that the line calls, and ``via`` its function that converts.
    ``span`` is where the expression stands. ``arrays`` has dtype, shape, calls and bytes; of many
    it has ``others`` last. ``crossings`` has two devices and calls. ``device`` is that of the
    first source; ``retyped`` has the dtypes of results that differ from their sources. ``allowed``
    names what the program says it expects. ``first_ns`` is what the first calls of all processes
    took, and ``parallel_ns`` is what threads took at once, which ``total_ns`` has once.
    ``line_ns`` is what the whole statement took, by samples.
    """

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
    first_ns: Whole = 0
    expression: str = ""
    via: str = ""
    library: str = ""
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
    trouble: str = ""
    allowed: list[str] = Field(default_factory=list)
    processes: list[Whole] = Field(default_factory=list)

    @property
    def empty(self) -> int:
        """Return the number of calls for arrays without elements, which have no memory."""
        return _empty(self.arrays)


class TracedProcess(Model):
    """A process of the program. ``wall_ns`` is how long it was counted.

    ``ended`` is false if it was killed, still runs, or could not write its last counts.
    """

    pid: Whole
    argv: list[str] = Field(default_factory=list)
    started: Number = 0.0
    wall_ns: Whole = 0
    ended: bool = True


class Trace(Model):
    """Conversions of a program. All times count from its start.

    ``timeline`` has begin, end, row, time and process: what the calls of a row took meanwhile.
    ``events`` has begin, duration, row, process and thread of single conversions, if requested.
    ``sources`` has numbered lines of each file around its rows. ``arguments`` has file, line,
    calls and bytes of NumPy arrays that compiled functions took. ``frameworks`` were imported.
    ``lines`` has file, line and time of the lines that took longest, by samples. ``uncounted`` has
    file, line, time and calls of statements that may copy without a row.
    """

    schema_: str = Field(SCHEMA, alias="schema")
    program: list[str]
    exit_code: Whole
    wall_ns: Whole
    created: str = ""
    simulated: Whole = 0
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

    @model_validator(mode="after")
    def _has_known_rows(self) -> Trace:
        known = range(len(self.rows))
        if any(entry[2] not in known for entry in (*self.timeline, *self.events)):
            raise ValueError("its timeline names a row that is not there")
        return self


@dataclass(frozen=True)
class Program:
    """A command as after ``python``; ``include`` names packages whose lines count as own."""

    words: tuple[str, ...]
    as_module: bool = False
    include: tuple[str, ...] = ()
    events: bool = False
    simulated: int = 0
    """The number of simulated CUDA devices; 0 for the machine's own."""
    python: str = sys.executable
    """The interpreter; dlprof need not be installed there."""


def trace(program: Program) -> Trace:
    """Run the program to its end, with its own input and output.

    ``exit_code`` is negative if a signal ended it. Raises :class:`UsageError` without a file, and
    for an interpreter that cannot be started.
    """
    name = program.words[0]
    if not (program.as_module or Path(name).is_file() or Path(name, "__main__.py").is_file()):
        if Path(name).name.startswith("python") and program.words[1:]:
            words = shlex.join(program.words[1:])
            raise UsageError(f"leave out {name}: dlprof trace {words}")
        raise UsageError(f"there is no file {name or repr(name)}; -m runs a module")
    with TemporaryDirectory(prefix="dlprof-", ignore_cleanup_errors=True) as folder:
        options = {
            "folder": folder,
            "include": program.include,
            "events": program.events,
            "as_module": program.as_module,
        }
        flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # noqa: SLF001
        flags = flags if same_interpreter(program.python) else ()
        command = [program.python, *flags, MAIN, json.dumps(options)]
        variables: Mapping[str, str] = os.environ
        if program.simulated:
            simulated = {**os.environ, **environment.variables(program.simulated)}
            variables = environment.on_simulated_device(simulated, program.python)
        created, began = datetime.datetime.now(datetime.timezone.utc), time.perf_counter_ns()
        code = _run([*command, *program.words], variables)
        wall_ns = time.perf_counter_ns() - began
        with uninterrupted():  # a second Ctrl-C
            parts = _parts(Path(folder))
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
            return parts
        time.sleep(0.02)


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
    return Trace.model_validate(sanitised({**fields, **trace_source.read(fields)}))


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
    rows = dict(sorted(rows.items(), key=lambda item: -item[1]["total_ns"]))
    places = {key: place for place, key in enumerate(rows)}
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
        "arguments": _arguments(parts),
        "lines": _summed([line for part in parts for line in part["lines"]], 2),
        "frameworks": sorted({name for part in parts for name in part["frameworks"]}),
        "timeline": timeline,
        "events": events,
        "troubles": sorted({text for part in parts for text in part["troubles"]}),
    }


def _arguments(parts: Iterable[Mapping[str, Any]]) -> list[tuple[str, int, int, int]]:
    """Add up the calls and bytes of each line, the most bytes first."""
    found: dict[tuple[str, int], tuple[int, int]] = {}
    for file, line, calls, size in (entry for part in parts for entry in part["arguments"]):
        other = found.get((file, line), (0, 0))
        found[file, line] = calls + other[0], size + other[1]
    entries = [(*place, *numbers) for place, numbers in found.items()]
    return sorted(entries, key=lambda entry: -entry[3])


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
    empty = _empty(row["arrays"])
    views, copies, unknown = (row[name] for name in ("views", "copies", "unknown"))
    row["result"] = result_word(views, copies, unknown, empty, row["raised"], row["reads"])
    row["device"] = row["device"] or other["device"]
    row["retyped"] = sorted({*row["retyped"], *other["retyped"]})
    row["trouble"] = row["trouble"] or other["trouble"]
    row["waits_in"] = row["waits_in"] or other["waits_in"]


def _empty(arrays: Iterable[Sequence[Any]]) -> int:
    return sum(calls for _, shape, calls, _ in arrays if 0 in shape)


def _summed(entries: Iterable[Sequence[Any]], names: int) -> list[tuple[Any, ...]]:
    """Add up the counts of entries with the same first ``names`` items, and sort by them."""
    counts: dict[tuple[Any, ...], int] = {}
    for entry in entries:
        counts[tuple(entry[:names])] = counts.get(tuple(entry[:names]), 0) + entry[names]
    return [(*key, count) for key, count in sorted(counts.items(), key=lambda item: -item[1])]


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
    is_cut = bool(row.trouble)
    found = {
        COPY: is_cut or row.unknown > row.empty,
        WAIT: is_cut or row.maybe_waits > 0,
        CROSSING: is_cut or (row.unknown > row.empty and row.device in {"", "?"}),
    }
    return [word for word, may in found.items() if may and word not in row.allowed]
