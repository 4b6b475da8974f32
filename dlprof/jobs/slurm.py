"""Slurm as an engine, through submitit: array jobs, which go on without this process."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Sequence
from typing import Any

import submitit
from submitit.core.utils import FailedJobError, UncompletedJobError

from dlprof.errors import UsageError
from dlprof.jobs import node
from dlprof.jobs.engine import Progress, Task
from dlprof.jobs.plan import Machine
from dlprof.runner.state import state_folder
from dlprof.text import private_folder
from dlprof.text.clean import first_line

LARGEST_ARRAY = 1000
"""Slurm's own limit, unless its administrator sets another."""
MOST_WARNING_S = 90
"""How long before the end of its time a job is told to stop."""
OVER_TIME, CANCELLED, UNKNOWN = "TIMEOUT", "CANCELLED", "UNKNOWN"
LOOK_S = 10.0


class Slurm:
    """The jobs of one machine kind. A handle is the number that Slurm gives."""

    poll_s = 2.0

    def __init__(self, machine: Machine) -> None:
        self._folder = state_folder() / "slurm"
        kind = submitit.LocalJob if machine.cluster == "local" else submitit.SlurmJob
        self._kind: Any = kind
        self._jobs: dict[str, Any] = {}
        self._queue: set[str] | None = None
        self._looked = float("-inf")
        try:
            for folder in (self._folder.parent, self._folder):
                private_folder.make(folder)
            self._folder.chmod(0o700)  # what travels may be secret
            self._executor: Any = submitit.AutoExecutor(self._folder, cluster=machine.cluster)
        except (OSError, RuntimeError) as error:
            raise UsageError(f"cannot use Slurm here: {first_line(str(error))}") from None
        self._minutes = machine.minutes
        self._executor.update_parameters(
            name="dlprof",
            timeout_min=machine.minutes,
            cpus_per_task=machine.cpus,
            gpus_per_node=int(machine.gpus),
            mem_gb=machine.memory_gb,
            slurm_partition=machine.partition,
            slurm_array_parallelism=machine.at_once,
            slurm_signal_delay_s=min(MOST_WARNING_S, machine.minutes * 15),
            slurm_setup=["export SLURM_EXPORT_ENV=ALL"],  # of the job's variables, which are few
            slurm_additional_parameters={"export": "NONE", **machine.slurm},
        )

    def submit(self, tasks: Sequence[Task]) -> list[str]:
        found: list[Any] = []
        try:
            for start in range(0, len(tasks), LARGEST_ARRAY):
                with self._executor.batch():
                    some = tasks[start : start + LARGEST_ARRAY]
                    found += [self._executor.submit(node.call, task.text) for task in some]
        except (FailedJobError, OSError, subprocess.SubprocessError) as error:
            said = [line for line in str(error).splitlines() if "error:" in line]
            why = said[-1] if said else first_line(str(error))
            raise UsageError(f"Slurm takes no jobs: {why}") from None
        self._jobs |= {job.job_id: job for job in found}
        return [str(job.job_id) for job in found]

    def poll(self, handle: str) -> Progress:
        job = self._job(handle)
        if job.done() or (job.state == UNKNOWN and self._is_gone(handle)):
            return "ended"
        return "running" if job.state == "RUNNING" else "waiting"

    def fetch(self, handle: str) -> str:
        job = self._job(handle)
        try:
            return str(job.result())
        except (FailedJobError, UncompletedJobError) as error:
            state = str(job.state).upper()
            if state.startswith(OVER_TIME) or "timed-out" in str(error):
                why = f"its time is over: {self._minutes} min"
                return json.dumps({"status": "failed", "why": why})
            if state.startswith(CANCELLED):
                return json.dumps({"status": "cancelled", "why": "it was cancelled"})
            return node.lost(f"Slurm says {state}")

    def cancel(self, handle: str) -> None:
        self._job(handle).cancel()

    def _is_gone(self, handle: str) -> bool:
        """Whether the queue lacks a job. The accounts lack some that were cancelled in it."""
        if self._kind is submitit.LocalJob:
            return False
        if time.monotonic() - self._looked > LOOK_S:
            words = ("squeue", "--noheader", "--array", "--format=%i")
            done = subprocess.run(  # noqa: S603
                words, capture_output=True, text=True, check=False
            )
            self._queue = None if done.returncode else set(done.stdout.split())
            self._looked = time.monotonic()
        return self._queue is not None and handle not in self._queue

    def _job(self, handle: str) -> Any:
        if handle not in self._jobs:
            self._jobs[handle] = self._kind(self._folder, handle)
        return self._jobs[handle]
