"""Engines: they run jobs somewhere, and yield each one when it has ended.

All machines share the folder of the plan. A stopped engine stops its jobs.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from dlprof.errors import UsageError
from dlprof.jobs.plan import Job

Task = tuple[Job, str]
"""A job and its interpreter."""
Run = Callable[[Sequence[Task], Mapping[str, Any]], Iterator[Job]]
POLL_S = 1.0
STOP_S = 30.0


def call(job: Job, python: str, threads: str | None) -> None:
    """Run one job here, and keep its output and exit code in its log.

    ``threads`` is the user's ``OMP_NUM_THREADS``, which engines change.
    """
    words = [*job.words, "--python", python, "-o", str(job.session)]
    environment = {name: text for name, text in os.environ.items() if name != "OMP_NUM_THREADS"}
    environment |= {"OMP_NUM_THREADS": threads} if threads is not None else {}
    with job.log.open("w", encoding="utf-8") as log:
        process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", "dlprof", *words],
            cwd=job.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            process.wait()
        except BaseException:  # the engine stops it: it keeps what it measured
            process.send_signal(signal.SIGINT)
            process.wait(STOP_S)
            raise
    with job.log.open("a", encoding="utf-8") as log:
        log.write(f"\nexit code {process.returncode}\n")


def local(tasks: Sequence[Task], _: Mapping[str, Any]) -> Iterator[Job]:
    """Run one job after the other, since times disturb each other."""
    for job, python in tasks:
        call(job, python, os.environ.get("OMP_NUM_THREADS"))
        yield job


def slurm(tasks: Sequence[Task], options: Mapping[str, Any]) -> Iterator[Job]:
    """Run an array of jobs through submitit, and wait for them."""
    try:
        import submitit
    except ImportError:
        raise UsageError("slurm needs submitit: pip install 'dlprof[slurm]'") from None
    given = dict(options)
    threads = os.environ.get("OMP_NUM_THREADS")
    folder = tasks[0][0].session.parent / "slurm"
    try:
        executor = submitit.AutoExecutor(folder, cluster=given.pop("cluster", "slurm"))
        executor.update_parameters(name="dlprof", **given)
        with executor.batch():
            handles = {executor.submit(call, *task, threads): task[0] for task in tasks}
    except (submitit.core.utils.FailedJobError, RuntimeError, NameError) as error:
        raise UsageError(f"Slurm takes no jobs: {error}") from None
    try:
        while handles:
            for handle in [one for one in handles if one.done()]:
                yield handles.pop(handle)
            time.sleep(POLL_S)
    finally:
        for handle in handles:
            handle.cancel()


def ray(tasks: Sequence[Task], options: Mapping[str, Any]) -> Iterator[Job]:
    """Run each job as a task of Ray. ``address`` is that of ``ray.init``."""
    try:
        import ray as library
    except ImportError:
        raise UsageError("ray needs Ray: pip install 'dlprof[ray]'") from None
    given = dict(options)
    threads = os.environ.get("OMP_NUM_THREADS")
    os.environ.setdefault("RAY_worker_niceness", "0")  # a low priority disturbs times
    try:
        library.init(
            address=given.pop("address", "local"), log_to_driver=False, logging_level="error"
        )
    except (OSError, ValueError, RuntimeError) as error:
        raise UsageError(f"cannot reach Ray: {error}") from None
    remote = library.remote(call).options(max_retries=0, **given)
    handles = {remote.remote(*task, threads): task[0] for task in tasks}
    try:
        while handles:
            for handle in library.wait(list(handles))[0]:
                with contextlib.suppress(library.exceptions.RayError):  # its log says so
                    library.get(handle)
                yield handles.pop(handle)
    finally:
        for handle in handles:
            library.cancel(handle)
        if handles:
            library.wait(list(handles), num_returns=len(handles), timeout=STOP_S)
        library.shutdown()


ENGINES: dict[str, Run] = {"local": local, "slurm": slurm, "ray": ray}
