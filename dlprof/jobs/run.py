"""Run a plan to its end: submit what is not done, run again what was lost, keep every answer."""

from __future__ import annotations

import fcntl
import json
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from dlprof.errors import UsageError
from dlprof.jobs.engine import Engine, Local, Task
from dlprof.jobs.environments import Unmade, resolved
from dlprof.jobs.plan import Job, Machine, Plan
from dlprof.jobs.store import KEEPS_RUNNING, Record, Store, checked, is_alive, parts_of, record_of
from dlprof.runner.state import state_folder
from dlprof.text import private_folder

MOST_AGAIN = 3
"""How often a lost job is run again."""
UNDER_WAY = ("waiting", "running")
HEAR_S = 2.0
"""How often a run looks whether jobs of it are to be cancelled."""

Watch = Callable[["Run", Record | None], None]
"""Hears of each job that ended, and now and then of nothing new."""


@dataclass
class Run:
    """A plan at work. ``records`` say how far each job is."""

    plan: Plan
    store: Store
    parallel: int = 1
    watch: Watch = lambda _run, _record: None
    records: dict[str, Record] = field(default_factory=dict)
    environments: dict[str, dict[str, Any]] = field(default_factory=dict)
    engines: dict[str, Engine] = field(default_factory=dict)
    begun: float = field(default_factory=time.monotonic)
    finished: int = 0
    heard: float = field(default_factory=time.monotonic)

    @property
    def counts(self) -> Counter[str]:
        return Counter(record.status for record in self.records.values())

    @property
    def left_s(self) -> float | None:
        """The time left, if the rest goes as fast as what was finished here."""
        left = len(self.jobs(*UNDER_WAY))
        if not self.finished or not left:
            return None
        return left * (time.monotonic() - self.begun) / self.finished

    def jobs(self, *states: str) -> list[Job]:
        return [job for job in self.plan.jobs if self.records[job.id].status in states]

    def engine(self, job: Job) -> Engine:
        """The engine of a job; names of this machine share one, which does one thing at a time."""
        machine = self.plan.written.machines[job.machine]
        key = "local" if machine.executor == "local" else f"machine {job.machine}"
        if key not in self.engines:
            self.engines[key] = engine_for(machine, self.parallel, self.store.asked)
        return self.engines[key]


def run(work: Run) -> None:
    """Run all jobs that are not done. Raises :class:`UsageError` before anything is submitted.

    Ctrl-C ends the jobs of engines that end with this process.
    """
    with exclusive(work):
        _run(work)


@contextmanager
def exclusive(work: Run) -> Iterator[None]:
    """One dlprof at a time runs jobs on this machine: the times of two would disturb each other.

    What such jobs left as running was lost.
    """
    machines = work.plan.written.machines
    own = [job for job in work.plan.jobs if machines[job.machine].executor == "local"]
    if not own:
        yield
        return
    with (private_folder.make(state_folder()) / "jobs.lock").open("w", encoding="ascii") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            message = "another dlprof runs jobs on this machine: wait for it, or stop it"
            raise UsageError(message) from None
        for job in set(own) & set(work.jobs(*UNDER_WAY)):
            record = work.records[job.id]
            if (record.by or ("",))[0] == socket.gethostname():
                work.records[job.id] = record.model_copy(update={"status": "lost"})
        yield


def _check_free(work: Run) -> None:
    """Raise :class:`UsageError` if another dlprof runs the plan, or files are in its way."""
    for job in work.jobs(*UNDER_WAY):
        if is_alive(work.records[job.id]) and not keeps_running(work, job):
            raise UsageError(f"another dlprof runs {work.plan.file}: wait for it, or stop it")
    for job in work.jobs("foreign"):
        raise UsageError(f"{work.store.folder.shown}: {work.records[job.id].why}")


def _run(work: Run) -> None:
    _check_free(work)
    taken_up = work.jobs(*UNDER_WAY)
    kept = {*taken_up, *work.jobs("done")}
    new = [job for job in work.plan.jobs if job not in kept]
    work.plan.variables()
    for job in (*taken_up, *new):
        work.engine(job)
    work.store.forget(work.store.asked() & {job.id for job in new})
    _resolve(work, new)
    try:
        _submit(work, new)
        while under_way := work.jobs(*UNDER_WAY):
            for job in under_way:
                _look(work, job)
            _hear(work)
            work.watch(work, None)
            if work.jobs(*UNDER_WAY):
                time.sleep(min(work.engine(job).poll_s for job in under_way))
    except KeyboardInterrupt:
        ends = [job for job in work.jobs(*UNDER_WAY) if not keeps_running(work, job)]
        for job in sorted(ends, key=lambda job: work.records[job.id].status == "running"):
            cancel(work, job, "stopped")
        raise


def collect(work: Run) -> None:
    """Keep the answers of jobs that an engine finished while nothing watched it."""
    for job in work.jobs(*UNDER_WAY):
        if keeps_running(work, job) and work.records[job.id].handle:
            _look(work, job, again=False)


def _hear(work: Run) -> None:
    """Now and then, cancel the jobs that another process wants cancelled."""
    if time.monotonic() - work.heard < HEAR_S:
        return
    asked = work.store.asked() & work.records.keys()
    for job in work.jobs(*UNDER_WAY):
        if job.id in asked:
            cancel(work, job)
    work.store.forget(asked)
    work.heard = time.monotonic()


def cancel_all(work: Run, jobs: list[Job]) -> None:
    """Cancel jobs: those of Slurm here; the dlprof that runs others does it, and is waited for."""
    others = {job.id for job in jobs if not keeps_running(work, job)}
    for job in jobs:
        if job.id in others:
            work.store.ask(job.id)
        else:
            cancel(work, job)
    while others & work.store.asked() and any(is_alive(work.records[job]) for job in others):
        time.sleep(HEAR_S / 4)
    work.records = work.store.records(work.plan.jobs)


def cancel(work: Run, job: Job, status: str = "cancelled") -> None:
    """End a job that is waiting or running. If it ended meanwhile, its answer is kept."""
    engine, handle = work.engine(job), work.records[job.id].handle
    if engine.poll(handle) != "ended":
        engine.cancel(handle)
    if engine.poll(handle) == "ended":
        _keep(work, job, checked(job, engine.fetch(handle)))
    if work.records[job.id].status in (*UNDER_WAY, "stopped", "lost", "cancelled"):
        _note(work, job, status=status, handle="")
    work.watch(work, work.records[job.id])


def keeps_running(work: Run, job: Job) -> bool:
    """Whether a job goes on without this process."""
    return work.records[job.id].executor in KEEPS_RUNNING


def _resolve(work: Run, jobs: list[Job]) -> None:
    """Resolve the environments that jobs need; one that cannot be made costs its jobs only."""
    unmade: dict[str, Unmade] = {}
    for job in jobs:
        for name in work.plan.environments(job):
            if name not in work.environments and name not in unmade:
                written = work.plan.environment(name)
                try:
                    work.environments[name] = resolved(written, name)
                except Unmade as error:
                    unmade[name] = error
    for job in jobs:
        names = work.plan.environments(job)
        before = work.records[job.id]
        pins = [pin for name in names for pin in work.environments.get(name, {}).get("pins", ())]
        again = before.tries if before.status == "lost" else 0
        work.records[job.id] = record_of(work.plan, job, pins).model_copy(update={"tries": again})
        for failed in [unmade[name] for name in names if name in unmade][:1]:
            _note(work, job, status="failed", why=str(failed), lines=list(failed.lines))
            work.watch(work, work.records[job.id])


def _submit(work: Run, jobs: list[Job]) -> None:
    """Give jobs to their engines, those of one engine together."""
    jobs = [job for job in jobs if work.records[job.id].status != "failed"]
    # An engine elsewhere may take none. Then nothing runs here either.
    machines = work.plan.written.machines
    elsewhere = sorted(jobs, key=lambda job: machines[job.machine].executor == "local")
    for engine in dict.fromkeys(map(work.engine, elsewhere)):
        own = [job for job in jobs if work.engine(job) is engine]
        handles = engine.submit([_task(work, job) for job in own])
        for job, handle in zip(own, handles, strict=True):
            tries = work.records[job.id].tries + 1
            _note(work, job, status="waiting", handle=handle, tries=tries)


def _task(work: Run, job: Job) -> Task:
    content = {
        "id": job.id,
        "words": job.scenario.words,
        "files": work.plan.files_of(job),
        "folder": work.plan.folder,
        "environments": [work.environments[name] for name in work.plan.environments(job)],
        "variables": work.plan.variables(),
        "disk_limit_bytes": work.plan.written.disk_limit_gb * 1e9,
    }
    return Task(job.id, json.dumps(content), job.scenario.may_share)


def _look(work: Run, job: Job, again: bool = True) -> None:
    """See how far a job is; of one that has ended the answer is kept."""
    record, engine = work.records[job.id], work.engine(job)
    progress = engine.poll(record.handle)
    if progress != "ended":
        if progress != record.status:
            _note(work, job, status=progress)
        return
    answer = checked(job, engine.fetch(record.handle))
    if answer["status"] == "lost" and work.store.records([job])[job.id].status == "cancelled":
        answer = {"status": "cancelled", "why": "it was cancelled"}  # by another process
    ended = record.model_copy(update={**parts_of(answer), "handle": ""})
    if ended.status == "lost" and ended.tries <= MOST_AGAIN and again:
        work.records[job.id] = ended
        work.store.keep(job, ended, {**answer, "files": {}})
        _resolve(work, [job])
        _submit(work, [job])
        return
    if ended.status == "lost" and ended.tries > MOST_AGAIN:
        answer |= {"status": "failed", "why": f"lost {ended.tries} times: {ended.why}"}
    _keep(work, job, answer)
    work.watch(work, work.records[job.id])


def _keep(work: Run, job: Job, answer: dict[str, Any]) -> None:
    """Keep the answer of a job that has ended."""
    ended = work.records[job.id].model_copy(update={**parts_of(answer), "handle": ""})
    work.records[job.id] = work.store.keep(job, ended, answer)
    work.finished += 1


def _note(work: Run, job: Job, **changes: Any) -> None:
    work.records[job.id] = work.records[job.id].model_copy(update=changes)
    work.store.note(work.records[job.id])


def engine_for(machine: Machine, parallel: int, cancelled: Callable[[], set[str]]) -> Engine:
    """The engine of a machine kind. Raises :class:`UsageError` if it is not installed."""
    if machine.executor == "local":
        return Local(parallel, cancelled)
    package = {"slurm": "submitit", "ray": "ray"}[machine.executor]
    try:
        import_module(package)
    except ImportError:
        extra = f"pip install 'dlprof[{machine.executor}]'"
        raise UsageError(f"{package} is not installed: {extra}") from None
    if machine.executor == "slurm":
        from dlprof.jobs.slurm import Slurm

        return Slurm(machine)
    from dlprof.jobs.ray import Ray

    return Ray(machine)
