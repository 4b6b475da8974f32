"""A user's program that plays a framework: JSON lines over its stdin and stdout.

The protocol is in ``docs/harness.md``. Linux lets a process use the memory of its own children by
``/proc/PID/mem`` (proc_pid_mem(5)).
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from typing import IO, Any, ClassVar

from dlprof.probes.base import CPU, Export, Import, Probe, Protocol, Unsupported
from dlprof.protocol.messages import ending
from dlprof.protocol.statement import ProgramSource
from dlprof.worker import memory

PROTOCOL = 1
FIELDS: Mapping[str, Mapping[str, type]] = {
    "hello": {"protocol": int, "language": str, "name": str, "paths": list},
    "make": {"address": int},
    "time": {"ns": int},
    "look": {"address": int, "shape": list, "dtype": str, "sees_write": bool},
    "drop": {},
}
"""The requests, with what an answer must have."""
LONGEST = 1 << 20
"""An answer has fewer characters. The longest one, to ``hello``, names the paths."""
SHOWN = 60
CALLS_PER_NS = 100
"""As many are not made: the compiler has removed them."""
END_S = 1.0


class ProgramFailed(BaseException):
    """The program ended. No instrument catches it."""


class WrongAnswer(ProgramFailed):
    """The program answered what it must not."""


class Program:
    """One process of the program at a time, started when it is needed."""

    def __init__(self, source: ProgramSource) -> None:
        self._source = source
        self._process: Any = None
        self._owner = 0
        """The process that started it. A fork of that starts its own."""

    @property
    def pid(self) -> int:
        return int(self._running().pid)

    def ask(self, do: str, **fields: Any) -> dict[str, Any]:
        """Return the answer to a request.

        Raises :class:`Unsupported` in the words of the program, and :class:`ProgramFailed`.
        """
        process = self._running()
        with suppress(OSError):  # it has ended: there is no answer
            request = json.dumps({"do": do, **fields}, separators=(",", ":"))
            print(request, file=process.stdin, flush=True)
        line = process.stdout.readline(LONGEST)
        if not line:
            raise self._ended(f"before it answered {do}")
        answer = None
        with suppress(ValueError, RecursionError):
            answer = json.loads(line)
        if not isinstance(answer, dict):
            text = line.strip()[:SHOWN]
            raise self.fault(f"answers {do} with {text!r} instead of a JSON object")
        if "unsupported" in answer:
            raise Unsupported(str(answer["unsupported"]))
        for name, kind in FIELDS[do].items():
            if type(value := answer.get(name)) is not kind:
                raise self.fault(f"answers {do} with {name} {value!r:.{SHOWN}}, no {kind.__name__}")
        return answer

    def time(self, path: int, calls: int) -> int:
        """Return the ns that ``calls`` conversions took."""
        begin = time.perf_counter_ns()
        ns: int = self.ask("time", path=path, calls=calls)["ns"]
        elapsed_ns = time.perf_counter_ns() - begin
        if not 0 <= ns <= elapsed_ns:
            raise self.fault(f"answers time with {ns} ns after {elapsed_ns} ns")
        if ns < calls // CALLS_PER_NS:
            raise self.fault(f"answers time with {ns} ns for {calls} calls: they are not made")
        return ns

    def read(self, address: int, size_bytes: int) -> bytes:
        """Read the program's memory. Raises :class:`Unsupported` where it has none."""
        with self._memory(address, "rb") as file:
            found = file.read(size_bytes)
            if len(found) < size_bytes:
                raise ValueError
        return found

    def write(self, address: int, data: bytes) -> None:
        """Write the program's own memory. Raises :class:`Unsupported` for any other."""
        mapping = memory.find_mapping(address, self.pid)
        if mapping is not None and (mapping.shared or not mapping.writable):
            raise Unsupported(f"the program's array at {address:#x} is shared or read-only")
        with self._memory(address, "r+b") as file:
            file.write(data)

    def fault(self, does: str) -> WrongAnswer:
        """End the program. Return the error that says what it does wrong."""
        self._kill()
        return WrongAnswer(f"the program {does}")

    def _ended(self, when: str) -> ProgramFailed:
        how = "closed its stdout"
        with suppress(subprocess.TimeoutExpired):
            how = ending(self._process.wait(END_S))
        self._kill()
        return ProgramFailed(f"the program {how.replace('killed', 'was killed')} {when}")

    def _kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._process = None

    @contextmanager
    def _memory(self, address: int, mode: str) -> Iterator[IO[bytes]]:
        try:
            with open(f"/proc/{self.pid}/mem", mode) as file:  # noqa: PTH123
                file.seek(address)
                yield file
        except (OSError, OverflowError, ValueError):
            raise Unsupported(f"the program has no memory at {address:#x}") from None

    def _running(self) -> Any:
        if self._process is None or self._owner != os.getpid():
            self._owner = os.getpid()
            try:
                self._process = subprocess.Popen(  # noqa: S603 - the command that the user typed
                    shlex.split(self._source.command) or [""],
                    cwd=self._source.folder,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    encoding="utf-8",
                    errors="replace",
                )
            except (OSError, ValueError) as error:  # ValueError: an open quotation
                why = f"{error.strerror}: {error.filename}" if isinstance(error, OSError) else error
                raise ProgramFailed(f"the program cannot be started: {why}") from None
        return self._process


class ProgramProbe(Probe):
    """One side of a program: the language that makes the arrays, or the library that takes them."""

    array_name = module = "the source"
    distributions = ()
    program: ClassVar[Program]
    version: ClassVar[str | None] = None


@cache
def load(reference: str) -> list[Probe]:
    """Start the program of a source, and make its two probes of what it says."""
    program = Program(ProgramSource.read(reference))
    hello = program.ask("hello")
    if hello["protocol"] != PROTOCOL:
        raise program.fault(f"speaks protocol {hello['protocol']}, and dlprof {PROTOCOL}")
    ways = {str(way.get("code")): way for way in hello["paths"] if isinstance(way, dict)}
    if not ways or len(ways) < len(hello["paths"]):
        raise program.fault("must name one path or more, each as an object with its own code")
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
    exports = (Export("source", Protocol.PROGRAM, "{x}", CPU),)
    versions = {
        hello["language"]: None,
        hello["name"]: hello.get("version") and str(hello["version"]),
    }
    members = {"exports": exports, "imports": imports, "program": program}
    return [
        type("OwnProgram", (ProgramProbe,), {**members, "name": name, "version": version})()
        for name, version in versions.items()
    ]
