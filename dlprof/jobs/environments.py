"""The interpreters of environments. uv resolves and installs them, and caches what it downloads."""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from dlprof.errors import UsageError
from dlprof.jobs.plan import Environment


class Unmade(UsageError):
    """An environment that cannot be made; the message is the last line of uv."""


def interpreter(environment: Environment, environments: Path, folder: Path) -> str:
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
    found, is_whole = str(place / "bin" / "python"), place / "whole"
    if not is_whole.is_file():
        shutil.rmtree(place, ignore_errors=True)
        uv("venv", "--quiet", "--python", python or sys.executable, str(place))
        packages = (*environment.uv_options, *environment.requirements)
        uv("pip", "install", "--quiet", "--python", found, *packages, folder=folder)
        is_whole.touch()
    return found


def releases(package: str) -> list[str]:
    """Return the releases that this Python can install. Raises :class:`UsageError`."""
    told = uv(
        *("tool", "run", "--quiet", "--python", sys.executable),
        *("pip", "index", "versions", package),
    )
    return told.partition("Available versions: ")[2].partition("\n")[0].split(", ")


def uv(*words: str, folder: Path | None = None) -> str:
    """Run uv, and return what it prints. Raises :class:`Unmade`."""
    command: Sequence[str] = [shutil.which("uv") or ""]
    if not command[0]:
        if importlib.util.find_spec("uv") is None:
            raise UsageError("uv is not installed: pip install uv")
        command = [sys.executable, "-m", "uv"]
    done = subprocess.run(  # noqa: S603
        [*command, *words], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"uv ended with exit code {done.returncode}"]
        raise Unmade(lines[-1].strip())
    return done.stdout
