"""The store: for each job a session and a record of what became of it, at any fsspec address.

No file is shared by two jobs, so writers disturb each other nowhere. The record is written before
the session: a reader of a session always finds the record. A session ends with the name of its job:
one that ends otherwise is torn, or of something else.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from dlprof.errors import SessionError
from dlprof.jobs.folder import Folder
from dlprof.jobs.plan import CONFORMANCE, Job, Plan
from dlprof.runner import session_file
from dlprof.text import json_text
from dlprof.text.clean import sanitised

MOST_LINES = 20
CANCEL = ".cancel"
KEEPS_RUNNING = ("slurm",)
"""Engines whose jobs go on without the dlprof that submitted them."""

State = Literal[
    "waiting",
    "running",
    "done",
    "failed",
    "stopped",
    "cancelled",
    "lost",
    "foreign",
    "not run",
]
Kind = Literal["own", "foreign", "torn"]


class Record(BaseModel):
    """``<id>.job.json``: the job, where it runs, and what became of it."""

    model_config = ConfigDict(extra="ignore")

    job: str
    status: State = "not run"
    environment: str = ""
    requirements: list[str] = []
    pins: list[str] = []
    python: str | None = None
    machine: str = ""
    scenario: str = ""
    dlprof: str = ""
    executor: str = ""
    handle: str = ""
    """What the engine calls it."""
    by: tuple[str, int] | None = None
    """Host and process that submitted it."""
    tries: int = 0
    host: str = ""
    nice: int = 0
    exit_code: int | None = None
    seconds: float | None = None
    why: str = ""
    lines: list[str] = []
    """The last ones of the installer, or of dlprof."""


@dataclass(frozen=True)
class Store:
    folder: Folder

    def records(self, jobs: Iterable[Job]) -> dict[str, Record]:
        """What is known of each job, by its id. A job is done if its sessions are there."""
        names = set(self.folder.names() or ())
        jobs = list(jobs)
        there = {_record_name(job): job for job in jobs if _record_name(job) in names}
        found = {job.id: Record(job=job.id) for job in jobs}
        for name, content in self.folder.read_all(there):
            record = _record(content, there[name].id)
            if record is not None:
                found[there[name].id] = record
        kinds = self._kinds([name for job in jobs for name in job.results if name in names])
        return {job.id: _settled(found[job.id], job, kinds) for job in jobs}

    def _kinds(self, names: Collection[str]) -> dict[str, Kind]:
        """What the files of jobs are that are there."""
        found = self.folder.ends(names, END_BYTES)
        return {name: _kind(name, end) for name, end in found.items()}

    def note(self, record: Record) -> None:
        content = json.dumps(record.model_dump(exclude_defaults=True), indent=1) + "\n"
        self.folder.replace(f"{record.job}.job.json", content.encode())

    def keep(self, job: Job, record: Record, answer: Mapping[str, Any]) -> Record:
        """Keep what a job answered. The record that is true then."""
        self.note(record)
        files = answer.get("files", {})
        for name, suffix in reversed(job.results.items()):
            if suffix in files:
                named = files[suffix].rstrip().removesuffix("}") + ", " + _end(job.id)
                self.put(name, named.encode())
        return _settled(record, job, self._kinds(job.results))

    def put(self, name: str, content: bytes) -> bool:
        """Write a file of a job, but not in the place of one that is something else."""
        is_free = self._kinds([name]).get(name) != "foreign"
        if is_free:
            self.folder.replace(name, content)
        return is_free

    def ask(self, job: str) -> None:
        """Ask the dlprof that runs a job to cancel it."""
        self.folder.replace(f"{job}{CANCEL}", b"")

    def asked(self) -> set[str]:
        """The jobs that are to be cancelled."""
        names = self.folder.names() or ()
        return {name.removesuffix(CANCEL) for name in names if name.endswith(CANCEL)}

    def forget(self, jobs: Iterable[str]) -> None:
        for job in jobs:
            self.folder.remove(f"{job}{CANCEL}")

    def sessions(self, jobs: Iterable[Job]) -> Iterator[tuple[str, bytes]]:
        """The results that are there, with the names of their files."""
        there = set(self.folder.names() or ())
        kinds = self._kinds([name for job in jobs for name in job.results if name in there])
        return self.folder.read_all(name for name, kind in kinds.items() if kind == "own")


def record_of(plan: Plan, job: Job, pins: Collection[str]) -> Record:
    """The record of a job that was not submitted yet."""
    sides = [plan.written.environments[name] for name in plan.environments(job)]
    return Record(
        job=job.id,
        environment=job.environment,
        requirements=[text for side in sides for text in side.requirements],
        pins=list(pins),
        python=sides[-1].python,
        machine=job.machine,
        scenario=job.scenario.text,
        dlprof=job.contents["dlprof"],
        executor=plan.written.machines[job.machine].executor,
        by=(socket.gethostname(), os.getpid()),
    )


def checked(job: Job, text: str) -> dict[str, Any]:
    """What a node answered, read as foreign: a torn session is none."""
    try:
        raw = json.loads(text)
        results = dict(raw.pop("files", {}))
        answer = {**sanitised(raw), "files": results}
        for content in results.values():
            if job.scenario.verb == CONFORMANCE:
                if not json.loads(content).items():
                    raise ValueError("a result of no check")  # noqa: TRY301
            else:
                session_file.parse(content, f"the session of {job.id}")
        Record.model_validate({**answer, "status": answer["status"], "job": job.id})
    except (
        LookupError,
        ValueError,
        TypeError,
        AttributeError,
        RecursionError,
        SessionError,
    ) as error:
        return {"status": "lost", "why": f"its answer cannot be read: {str(error)[:200]}"}
    if answer["status"] == "done" and not results.keys() >= {*job.results.values()}:
        return {"status": "lost", "why": "its answer has no session"}
    return answer


def parts_of(answer: Mapping[str, Any]) -> dict[str, Any]:
    """What a record takes from an answer."""
    kept = ("status", "host", "nice", "exit_code", "seconds", "why", "lines")
    found = {name: answer[name] for name in kept if name in answer}
    is_plain = found["status"] == "done" and not found.get("exit_code")
    lines = [] if is_plain else list(found.get("lines", ()))
    return {"why": "", **found, "lines": lines[-MOST_LINES:]}


def _record_name(job: Job) -> str:
    return f"{job.id}.job.json"


def _record(content: bytes, name: str) -> Record | None:
    try:
        return Record.model_validate({**json_text.loads(content.decode()), "job": name})
    except (ValueError, TypeError, RecursionError, ValidationError):
        return None


def _end(job: str) -> str:
    """The end of a session of a job."""
    return f'"job": "{job}"}}\n'


END_BYTES = len(_end("0" * 16))


def _kind(name: str, end: bytes) -> Kind:
    """What a file of a job is, by how it ends."""
    if end == _end(name.partition(".")[0]).encode():
        return "own"
    return "foreign" if end.rstrip().endswith(b"}") else "torn"


def _settled(record: Record, job: Job, kinds: Mapping[str, Kind]) -> Record:
    """With the status that is true now: a record may be older than what happened since."""
    for name in job.results:
        if kinds.get(name) == "foreign":
            why = f"{name} is not its session: move that file away"
            return record.model_copy(update={"status": "foreign", "why": why, "lines": []})
    if all(kinds.get(name) == "own" for name in job.results):
        return record.model_copy(update={"status": "done"})
    if record.status == "done" or (
        record.status in ("waiting", "running")
        and record.executor not in KEEPS_RUNNING
        and not is_alive(record)
    ):
        return record.model_copy(update={"status": "lost"})
    return record


def is_alive(record: Record) -> bool:
    """Whether the dlprof that submitted a job is still there; of another host that is unknown."""
    host, process = record.by or ("", 0)
    if host != socket.gethostname():
        return False
    try:
        os.kill(process, 0)
    except OSError:
        return False
    return process != os.getpid()
