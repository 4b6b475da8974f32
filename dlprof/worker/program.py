"""A user's program that plays a framework: JSON lines over its stdin and stdout.

The protocol is in ``docs/harness.md``. The program converts and takes the time. What it says of
its arrays is checked in its memory, by ``/proc/PID/mem`` (proc_pid_mem(5)). Linux lets a process
use the memory of its own children.
"""

from __future__ import annotations

import errno
import json
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from dlprof.probes.base import CPU, ArraySpec, Export, Import, Probe, Protocol, Unsupported
from dlprof.protocol.program import ProgramSource
from dlprof.worker import memory

PROTOCOL = 1
LONGEST_BYTES = 1 << 20
"""An answer is shorter. The longest one, to ``hello``, names the paths."""
SHOWN = 60
"""Characters of an unfit answer in a message."""
MOST_CALLS = 1 << 40
"""As many calls take longer than a run, unless the compiler has removed them."""
END_S = 1.0
NO_MEMORY = "where it has no memory"
KINDS = {int: "a whole number", str: "text", bool: "true or false", list: "a list"}


class ProgramFailed(BaseException):
    """The program ended, or answered what it must not. No instrument catches it."""


class Program:
    """One process of the program at a time, started when it is needed."""

    def __init__(self, source: ProgramSource) -> None:
        self._source = source
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0
        self._pid = 0

    def hello(self) -> dict[str, Any]:
        """Return the greeting of the running process, or of a new one."""
        self._start()
        answer = self._answer("hello", {})
        if answer.get("protocol") != PROTOCOL:
            raise self._faulty(f"speaks protocol {answer.get('protocol')!r}, and dlprof {PROTOCOL}")
        for name, kind in (("language", str), ("name", str), ("paths", list), ("pid", int)):
            self._field("hello", answer, name, kind)
        for path in answer["paths"]:
            if not isinstance(path, dict):
                raise self._faulty(f"names the path {path!r:.{SHOWN}}, which is no object")
            self._field("hello", path, "code", str)
        codes = [path["code"] for path in answer["paths"]]
        if not codes or len(set(codes)) < len(codes):
            raise self._faulty("names no path" if not codes else "names a path twice")
        self._pid = answer["pid"]
        try:
            is_own = os.getsid(self._pid) == os.getsid(0)
        except (OSError, OverflowError):
            is_own = False
        if not is_own:
            raise self._faulty(f"says that its process is {self._pid}, which it is not")
        return answer

    @property
    def pid(self) -> int:
        """The process that holds the arrays. A launcher may stand between."""
        if not self._is_running:
            self.hello()
        return self._pid

    def ask(self, do: str, **fields: Any) -> dict[str, Any]:
        """Return the answer to a request.

        Raises :class:`Unsupported` in the words of the program, and :class:`ProgramFailed`.
        """
        if not self._is_running:
            self.hello()
        answer = self._answer(do, fields)
        if "unsupported" in answer:
            raise Unsupported(str(answer["unsupported"]) or f"no {do}")
        return answer

    def make(self, spec: ArraySpec) -> int:
        """Make the program's source. Return its address."""
        answer = self.ask("make", shape=list(spec.shape), dtype=spec.dtype)
        address: int = self._field("make", answer, "address", int)
        return address

    def time(self, path: int, calls: int) -> int:
        """Return the ns that ``calls`` conversions took."""
        begin = time.perf_counter_ns()
        answer = self.ask("time", path=path, calls=calls)
        elapsed_ns = time.perf_counter_ns() - begin
        ns: int = self._field("time", answer, "ns", int)
        if not 0 <= ns <= elapsed_ns:
            raise self._faulty(f"answers time with {ns} ns after {elapsed_ns} ns")
        if calls > MOST_CALLS:
            raise self._faulty(f"answers time with {ns} ns for {calls} calls: they are not made")
        return ns

    def look(self, path: int) -> dict[str, Any]:
        """Convert once. The program keeps the result until the next look."""
        answer = self.ask("look", path=path)
        kinds = (("address", int), ("shape", list), ("dtype", str), ("sees_write", bool))
        return {name: self._field("look", answer, name, kind) for name, kind in kinds}

    def read(self, address: int, size_bytes: int) -> bytes:
        """Read the program's memory. Raises :class:`Unsupported` where it has none."""
        try:
            with open(f"/proc/{self.pid}/mem", "rb") as file:  # noqa: PTH123
                file.seek(address)
                found = file.read(size_bytes)
        except (OSError, OverflowError, ValueError) as error:
            raise self._unreadable(address, error) from None
        if len(found) < size_bytes:
            raise self._unreadable(address, OSError(f"it has {len(found)} of {size_bytes} bytes"))
        return found

    def write(self, address: int, data: bytes) -> None:
        """Write the program's own memory. Raises :class:`Unsupported` for any other."""
        mapping = memory.find_mapping(address, self.pid)
        if mapping is None or mapping.shared or not mapping.writable:
            why = NO_MEMORY if mapping is None else "where its memory is shared or read-only"
            raise Unsupported(f"the program says that an array is at {address:#x}, {why}")
        try:
            with open(f"/proc/{self.pid}/mem", "r+b", buffering=0) as file:  # noqa: PTH123
                file.seek(address)
                view = memoryview(data)
                while view:
                    view = view[file.write(view) or 0 :]
        except (OSError, OverflowError, ValueError) as error:
            raise self._unreadable(address, error) from None

    def resident_bytes(self) -> int:
        pages = Path(f"/proc/{self.pid}/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def _unreadable(self, address: int, error: Exception) -> Unsupported:
        why = getattr(error, "strerror", None) or error
        why = NO_MEMORY if getattr(error, "errno", None) == errno.EIO else f"which fails: {why}"
        return Unsupported(f"the program says that an array is at {address:#x}, {why}")

    @property
    def _is_running(self) -> bool:
        return self._process is not None and self._owner == os.getpid()

    def _start(self) -> None:
        """Start the program. A fork of the worker gets a process of its own."""
        if self._is_running:
            self._end()
        self._owner = os.getpid()
        try:
            self._process = subprocess.Popen(  # noqa: S603 - the command that the user typed
                shlex.split(self._source.command),
                cwd=self._source.folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
        except (OSError, ValueError, IndexError) as error:
            why = getattr(error, "strerror", None) or error
            raise ProgramFailed(f"the program cannot be started: {why}") from None

    def _answer(self, do: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            raise TypeError(process)
        request = json.dumps({"do": do, **fields}, separators=(",", ":"))
        try:
            process.stdin.write(f"{request}\n".encode())
            process.stdin.flush()
        except OSError:
            pass  # it has ended: there is no answer
        line = process.stdout.readline(LONGEST_BYTES)
        if not line:
            raise self._ended(do)
        if not line.endswith(b"\n"):
            raise self._faulty(f"answers {do} with {len(line)} bytes and no end of the line")
        try:
            answer = json.loads(line)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            text = line.decode("utf-8", "replace").strip()
            raise self._faulty(f"answers {do} with {text[:SHOWN]!r} instead of a JSON object")
        return answer

    def _field(self, do: str, answer: Mapping[str, Any], name: str, kind: type) -> Any:
        value = answer.get(name)
        if type(value) is not kind:
            raise self._faulty(f"answers {do} with {name} {value!r:.{SHOWN}}, not {KINDS[kind]}")
        return value

    def _ended(self, do: str) -> ProgramFailed:
        try:
            code = self._process.wait(END_S) if self._process else 0
        except subprocess.TimeoutExpired:
            return self._faulty(f"closed its stdout before it answered {do}")
        self._process = None
        how = f"ended with exit code {code}"
        if code < 0:
            how = f"was killed by {signal.Signals(-code).name} ({signal.strsignal(-code)})"
        return ProgramFailed(f"the program {how} before it answered {do}")

    def _faulty(self, does: str) -> ProgramFailed:
        self._end()
        return ProgramFailed(f"the program {does}")

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._process = None


class ProgramProbe(Probe):
    """One side of a program: the language that makes the arrays, or the library that takes them."""

    array_name = "the source"
    program: ClassVar[Program]
    version: ClassVar[str | None] = None


_loaded: dict[str, list[Probe]] = {}


def load(reference: str) -> list[Probe]:
    """Start the program of a source, and make its two probes of what it says. Loaded once."""
    if reference not in _loaded:
        _loaded[reference] = _probes(Program(ProgramSource.read(reference)))
    return _loaded[reference]


def _probes(program: Program) -> list[Probe]:
    hello = program.hello()
    ways = {path["code"]: path for path in hello["paths"]}
    imports = tuple(
        Import(
            code,
            (Protocol.PROGRAM,),
            code.replace("{", "{{").replace("}", "}}"),
            CPU,
            promise=way["promise"] if way.get("promise") in ("copy", "view") else None,
        )
        for code, way in ways.items()
    )
    version = str(hello["version"]) if "version" in hello else None
    exports = (Export("source", Protocol.PROGRAM, "{x}", CPU),)
    source = {"name": hello["language"], "exports": exports}
    target = {"name": hello["name"], "imports": imports, "version": version}
    if hello["language"] == hello["name"]:
        return [_probe(program, {**source, **target})]
    return [_probe(program, source), _probe(program, target)]


def _probe(program: Program, members: dict[str, Any]) -> Probe:
    name = members["name"]
    common = {"module": name, "distributions": (name,), "program": program}
    probe: Probe = type("OwnProgram", (ProgramProbe,), {**common, **members})()
    return probe
