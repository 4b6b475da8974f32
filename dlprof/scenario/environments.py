"""The interpreters of a scenario: named by a path, or made from requirements and kept."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from dlprof.errors import UsageError
from dlprof.plan.scenario_record import Environment
from dlprof.scenario.model import EnvironmentSpec
from dlprof.session import files
from dlprof.text.clean import clean

FORMAT = 1
"""Part of the name of what is kept: to be counted up where it is made in another way."""
WHOLE = "dlprof-environment.json"
"""Written last, so that a folder without it is half an environment."""
LOG = "install.log"

Say = Callable[[str], None]


def environment(spec: EnvironmentSpec, scenario: Path, say: Say) -> Environment:
    """The interpreter of an environment; made first where it is to be made and is not kept.

    ``say`` is told before something is installed. Raises :class:`UsageError` for an interpreter
    that is not there, and for requirements that cannot be installed.
    """
    if spec.python is not None:
        return Environment(spec.name, _named(spec, scenario))
    requirements = spec.requirements or []
    folder = folder_of(requirements)
    with _locked(folder, spec.name):
        if not (folder / WHOLE).is_file():
            tool = _tool()
            say(f"environment {spec.name}: {Path(tool[0]).name} installs it in {folder}, once")
            _make(folder, requirements, tool, spec.name)
    return Environment(spec.name, str(folder / "bin" / "python"))


def is_made(spec: EnvironmentSpec) -> bool:
    """Whether nothing has to be installed."""
    return spec.python is not None or (folder_of(spec.requirements or []) / WHOLE).is_file()


def folder_of(requirements: Sequence[str]) -> Path:
    """Where an environment is kept: the same requirements under the same Python are one."""
    what = [FORMAT, sys.version_info[:2], sys.base_prefix, sorted(requirements)]
    name = hashlib.sha256(json.dumps(what).encode()).hexdigest()[:16]
    return cache_folder() / "environments" / name


def cache_folder() -> Path:
    """The user's folder for what can be made again."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    if Path(base).is_absolute():  # the XDG specification has others ignored
        return Path(base) / "dlprof"
    try:
        return Path.home() / ".cache" / "dlprof"
    except RuntimeError:  # no HOME, and no entry for the user
        return Path(tempfile.gettempdir()) / f"dlprof-{os.getuid()}"


def _named(spec: EnvironmentSpec, scenario: Path) -> str:
    path = scenario.parent / files.at_home(Path(spec.python or ""))
    if not path.is_file():
        raise UsageError(f"environment {spec.name}: there is no interpreter {spec.python}")
    return str(path.absolute())


def _tool() -> tuple[str, ...]:
    """The installer: uv where there is one, else pip."""
    uv = shutil.which("uv")
    return (uv,) if uv else ("pip",)


def _make(folder: Path, requirements: Sequence[str], tool: Sequence[str], name: str) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    python = str(folder / "bin" / "python")
    if tool == ("pip",):
        create: list[str] = [sys.executable, "-m", "venv", str(folder)]
        quiet = ("--disable-pip-version-check", "--no-input")  # nobody would see what it asks
        install = [python, "-m", "pip", "install", *quiet]
    else:
        create = [*tool, "venv", "--python", sys.executable, str(folder)]
        install = [*tool, "pip", "install", "--python", python]
    _run(create, folder, f"environment {name} cannot be made")
    _run([*install, *requirements], folder, f"environment {name} cannot be installed")
    try:
        (folder / WHOLE).write_text(json.dumps({"requirements": list(requirements)}), "utf-8")
    except OSError as error:
        raise UsageError(f"environment {name} cannot be kept: {error.strerror}") from None


def _run(command: Sequence[str], folder: Path, failure: str) -> None:
    try:
        done = subprocess.run(  # noqa: S603 - what the scenario asks for
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    except OSError as error:
        raise UsageError(f"{failure}: {error.strerror}") from None
    kept = ""
    with suppress(OSError):  # a full disk: the cause below tells of it
        if folder.is_dir():
            with (folder / LOG).open("a", encoding="utf-8") as log:
                log.write(done.stdout + done.stderr)
            kept = f"; all of it is in {folder / LOG}"
    if done.returncode:
        raise UsageError(f"{failure}: {_cause(done.stderr)}{kept}")


def _cause(output: str) -> str:
    """The line that tells why: the last error, else the last line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith("error")]
    return clean(next(iter(errors[-1:] or lines[-1:]), "it says nothing"))


@contextmanager
def _locked(folder: Path, name: str) -> Iterator[None]:
    """Nobody else makes this environment meanwhile."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock = folder.with_suffix(".lock").open("w")
    except OSError as error:
        raise UsageError(
            f"environment {name} cannot be kept in {folder.parent}: {error.strerror}"
        ) from None
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
