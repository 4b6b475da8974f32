"""A plan: environments times scenarios, with the session file of each, and engines to run them.

uv resolves and installs environments, and caches what it downloads. All machines of an engine share
the folder of the plan.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dlprof._version import __version__
from dlprof.errors import SessionError, UsageError
from dlprof.runner import files
from dlprof.runner.session_file import first_error, load
from dlprof.text.clean import clean

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

VERBS = ("run", "survey", "matrix", "time")
"""The verbs that a scenario may begin with. A file alone is a ``run``."""
EXIT_CODE = re.compile(r"^exit code (-?\d+)$")

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]


class Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class JobEnvironment(Part):
    """Packages for uv to install, or an interpreter that is there."""

    requirements: list[str] = []
    python: str | None = None
    uv_options: list[str] = []


class Engine(Part):
    """The engine for the jobs. ``options`` are those of submitit, or of a task of Ray."""

    name: Literal["local", "slurm", "ray"] = "local"
    options: dict[str, Any] = {}


class JobsPlan(Part):
    """The keys of a plan. Paths begin at the plan."""

    store: str
    environments: dict[Name, JobEnvironment] = Field(min_length=1)
    scenarios: list[str] = Field(min_length=1)
    engine: Engine = Engine()


@dataclass(frozen=True)
class Job:
    """One scenario in one environment; ``words`` are its command, without the interpreter."""

    environment: str
    scenario: str
    words: tuple[str, ...]
    folder: Path
    """The working folder of the command."""
    session: Path

    @property
    def log(self) -> Path:
        return self.session.with_suffix(".log")

    def check_places(self) -> None:
        """Raise :class:`UsageError` if a file of the job would be written elsewhere, or blocks."""
        for place in (self.session, self.log):
            if place.is_symlink() or (place.exists() and not place.is_file()):
                raise UsageError(f"{place} is not a regular file: remove it")

    @property
    def title(self) -> str:
        return f"{self.environment}  {self.scenario}"

    @property
    def is_done(self) -> bool:
        """Whether its session exists and is complete."""
        try:
            return self.session.is_file() and load(self.session).complete
        except SessionError:  # torn
            return False

    @property
    def exit_code(self) -> int | None:
        """Return the exit code of its last run, from its log."""
        found = EXIT_CODE.match(self._last_lines()[-1])
        return int(found[1]) if found else None

    @property
    def last_line(self) -> str:
        """Return the last line of its output."""
        return next((line for line in reversed(self._last_lines()[:-1]) if line.strip()), "")

    def _last_lines(self) -> list[str]:
        text = self.log.read_text("utf-8", "replace") if self.log.is_file() else ""
        return text.splitlines() or [""]


def read(path: Path) -> tuple[JobsPlan, list[Job]]:
    """Read a plan and return it with its jobs. Raises :class:`UsageError`."""
    try:
        plan = JobsPlan.model_validate(tomllib.loads(files.read_bytes(path).decode("utf-8")))
    except OSError as error:
        raise UsageError(f"cannot read the plan {path}: {error.strerror}") from None
    except ValidationError as error:
        raise UsageError(f"{path}: {clean(first_error(error))}") from None
    except ValueError as error:
        raise UsageError(f"{path} is not TOML: {clean(str(error))}") from None
    for name, environment in plan.environments.items():
        if not environment.requirements and not environment.python:
            raise UsageError(f"{path}: environments.{name}: name requirements or a python")
    folder = path.parent.resolve()
    pairs = product(plan.environments, plan.scenarios)
    return plan, list(dict.fromkeys(_job(plan, folder, *pair) for pair in pairs))


def _job(plan: JobsPlan, folder: Path, name: str, scenario: str) -> Job:
    words = shlex.split(scenario)
    if words and words[0].endswith(".toml"):
        words = ["run", *words]
    if not words or words[0] not in VERBS:
        raise UsageError(
            f"scenario {scenario!r}: expected a scenario file, or a command: {', '.join(VERBS)}"
        )
    contents = [__version__, words, plan.environments[name].model_dump()]
    file = folder / words[1] if len(words) > 1 else folder
    if file.suffix == ".toml" and file.is_file():
        contents.append(file.read_text("utf-8", "replace"))
    digest = hashlib.sha256(repr(contents).encode()).hexdigest()[:12]
    session = folder / plan.store / f"{name}-{digest}.json"
    return Job(name, scenario, tuple(words), folder, session)


class Unmade(UsageError):
    """An environment that cannot be made; the message is the last line of uv."""


def interpreter(environment: JobEnvironment, environments: Path, folder: Path) -> str:
    """Return the interpreter of an environment, which is made below ``environments``.

    Paths begin at ``folder``. Raises :class:`Unmade`.
    """
    python = environment.python
    if python and "/" in python:
        python = str(folder / python)
    if python and not environment.requirements:
        return python
    digest = hashlib.sha256(repr(environment).encode()).hexdigest()[:12]
    place = environments / digest
    path, is_whole = str(place / "bin" / "python"), place / "whole"
    if not is_whole.is_file():
        shutil.rmtree(place, ignore_errors=True)
        uv("venv", "--quiet", "--python", python or sys.executable, str(place))
        packages = (*environment.uv_options, *environment.requirements)
        uv("pip", "install", "--quiet", "--python", path, *packages, folder=folder)
        is_whole.touch()
    return path


def releases(package: str) -> list[str]:
    """Return the releases that this Python can install. Raises :class:`UsageError`."""
    printed = uv(
        *("tool", "run", "--quiet", "--python", sys.executable),
        *("pip", "index", "versions", package),
    )
    return printed.partition("Available versions: ")[2].partition("\n")[0].split(", ")


def uv(*words: str, folder: Path | None = None) -> str:
    """Run uv, and return what it prints. Raises :class:`Unmade`."""
    command: Sequence[str] = [shutil.which("uv") or ""]
    if not command[0]:
        if importlib.util.find_spec("uv") is None:
            raise UsageError("uv is not installed: pip install uv")
        command = [sys.executable, "-m", "uv"]
    process = subprocess.run(  # noqa: S603
        [*command, *words], cwd=folder, capture_output=True, text=True, check=False
    )
    if process.returncode:
        lines = process.stderr.strip().splitlines() or [
            f"uv ended with exit code {process.returncode}"
        ]
        raise Unmade(lines[-1].strip())
    return process.stdout


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
            for handle in [handle for handle in handles if handle.done()]:
                yield handles.pop(handle)
            time.sleep(POLL_S)
    finally:
        for handle in handles:
            handle.cancel()


def ray(tasks: Sequence[Task], options: Mapping[str, Any]) -> Iterator[Job]:
    """Run each job as a Ray task. ``ray.init`` gets ``address``."""
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
