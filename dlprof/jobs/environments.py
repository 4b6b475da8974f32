"""Environments of jobs: resolved once, then made by uv or pip, cached, locked and shared."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.util
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from dlprof.errors import DlprofError, UsageError
from dlprof.runner import files
from dlprof.text import private_folder

LAST_LINES = 12
LIMIT_S = 3600.0
READY, LOCK = "ready.json", ".lock"
PASSWORD = re.compile(
    r"\b40[13] (unauthorized|forbidden|client error)|http error 40[13]\b|authentication credentials"
    r"|authentication failed|could not read (username|password)|terminal prompts disabled",
    re.IGNORECASE,
)
"""How uv, pip and git say that a login is missing."""
SILENT = {"GIT_TERMINAL_PROMPT": "0", "GIT_SSH_COMMAND": "ssh -o BatchMode=yes", "NO_COLOR": "1"}


class Unmade(DlprofError):
    """An environment that cannot be made; ``lines`` are the installer's last ones.

    ``needs_login`` says if an index or a repository asked for one.
    """

    def __init__(self, lines: Sequence[str], output: str = "") -> None:
        super().__init__("its environment cannot be made")
        self.lines = tuple(lines)
        self.needs_login = PASSWORD.search(output) is not None


def resolved(written: Mapping[str, Any], name: str) -> dict[str, Any]:
    """An environment with its ``installer`` and ``pins``: every package with its version.

    Raises :class:`Unmade`, and :class:`UsageError` where an index or a repository wants a login.
    """
    if not written.get("requirements"):
        return {**written, "pins": []}
    installer = written.get("installer") or ("uv" if _uv() else "pip")
    try:
        pins = (_resolved_by_uv if installer == "uv" else _resolved_by_pip)(written)
    except Unmade as error:
        if error.needs_login:
            raise UsageError(
                f"environment {name} needs a password: log in with the installer's own files"
            ) from None
        raise
    return {**written, "installer": installer, "pins": pins}


@contextmanager
def made(environment: Mapping[str, Any], limit_bytes: float) -> Iterator[str]:
    """The interpreter of a resolved environment, which stays until the end of the block.

    Raises :class:`Unmade`.
    """
    if not environment["pins"]:
        yield str(environment["python"])
        return
    folder = _folder(environment)
    with (folder.parent / f"{folder.name}{LOCK}").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)  # many jobs may use it, and one may make it
        while not (folder / READY).is_file():
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (folder / READY).is_file():
                _make(folder, environment)
            fcntl.flock(lock, fcntl.LOCK_SH)
        os.utime(folder / READY)
        _keep_within(folder, limit_bytes)
        yield str(folder / "bin" / "python")


def _resolved_by_uv(written: Mapping[str, Any]) -> list[str]:
    asked = written.get("python")
    flag = "--python-version" if _is_version(asked or "") else "--python"
    python = [flag, asked] if asked else []
    command = [*_uv_or_refuse(), "pip", "compile", "--no-header", "--no-annotate", "--quiet"]
    text = "\n".join(written["requirements"])
    found = output([*command, *python, *_index_options(written), "-"], text)
    return [line.strip() for line in found.splitlines() if line.strip()]


def _resolved_by_pip(written: Mapping[str, Any]) -> list[str]:
    command = [*pip(_interpreter(written)), "install", "--dry-run", "--ignore-installed"]
    with tempfile.NamedTemporaryFile("r", encoding="utf-8", suffix=".json") as file:
        # Only a verbose pip says that an index asked for a login.
        command += ["-vv", "--no-input", "--report", file.name, *_index_options(written)]
        output([*command, *written["requirements"]])
        return sorted(map(_pin, json.load(file)["install"]))


def _pin(package: Mapping[str, Any]) -> str:
    name, version = package["metadata"]["name"], package["metadata"]["version"]
    if not package.get("is_direct"):
        return f"{name}=={version}"
    origin = package["download_info"]
    source = origin.get("vcs_info")
    return f"{name} @ " + (
        f"{source['vcs']}+{origin['url']}@{source['commit_id']}" if source else str(origin["url"])
    )


def _folder(environment: Mapping[str, Any]) -> Path:
    cache = private_folder.cache()
    if cache is None:
        raise Unmade(["no home folder keeps environments: set XDG_CACHE_HOME"])
    keys = ("pins", "python", "installer", "index_url", "extra_index_urls", "find_links")
    contents = {key: environment.get(key) for key in keys}
    contents["here"] = [platform.machine(), *platform.libc_ver(), sys.version_info[:2]]
    digest = hashlib.sha256(json.dumps(contents, sort_keys=True).encode()).hexdigest()[:16]
    try:
        for folder in (cache, cache / "environments"):
            private_folder.make(folder)
    except OSError as error:
        raise Unmade([f"{cache}: {error.strerror}"]) from None
    return cache / "environments" / digest


def _make(folder: Path, environment: Mapping[str, Any]) -> None:
    """Make an environment anew; :data:`READY` in it says that it is whole."""
    shutil.rmtree(folder, ignore_errors=True)
    python, options = str(folder / "bin" / "python"), _index_options(environment)
    try:
        if environment["installer"] == "uv":
            uv = _uv_or_refuse()
            base = environment.get("python") or sys.executable
            output([*uv, "venv", "--quiet", "--python", base, str(folder)])
            install = [*uv, "pip", "install", "--quiet", "--no-deps", "--python", python]
        else:
            base = _interpreter(environment)
            output([base, "-m", "venv", "--without-pip", str(folder)])
            install = [*pip(python), "install", "--quiet", "--no-input", "--no-deps"]
        output([*install, *options, *environment["pins"]])
        content = {"size_bytes": _own_bytes(folder), "pins": environment["pins"]}
        with files.atomic(folder / READY) as file:
            json.dump(content, file)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _own_bytes(folder: Path) -> int:
    """What removing a folder frees: a file that uv linked here is in its cache as well."""
    found = [path.lstat() for path in folder.rglob("*")]
    return sum(one.st_blocks * 512 for one in found if one.st_nlink == 1)


def _keep_within(used: Path, limit_bytes: float) -> None:
    """Remove environments that no job uses, the longest unused first, down to the limit."""
    found = [path.parent for path in used.parent.glob(f"*/{READY}")]
    sizes: dict[Path, int] = {}
    for folder in sorted(found, key=lambda one: (one / READY).stat().st_mtime, reverse=True):
        with contextlib.suppress(OSError, ValueError, KeyError):  # another process removed it
            sizes[folder] = json.loads((folder / READY).read_text())["size_bytes"]
    total = sum(sizes.values())
    while total > limit_bytes and sizes:
        folder, size = sizes.popitem()
        with _free(folder) as is_free:
            if folder != used and is_free:
                (folder / READY).unlink(missing_ok=True)
                shutil.rmtree(folder, ignore_errors=True)
                total -= size


@contextmanager
def _free(folder: Path) -> Iterator[bool]:
    """Whether no job has the environment; none can take it meanwhile."""
    file: IO[str]
    with (folder.parent / f"{folder.name}{LOCK}").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def _index_options(written: Mapping[str, Any]) -> list[str]:
    found = [f"--index-url={written['index_url']}"] if written.get("index_url") else []
    found += [f"--extra-index-url={url}" for url in written.get("extra_index_urls") or ()]
    return found + [f"--find-links={place}" for place in written.get("find_links") or ()]


def _is_version(python: str) -> bool:
    return python[:1].isdigit()


def _interpreter(written: Mapping[str, Any]) -> str:
    """The interpreter below an environment that pip makes."""
    asked = written.get("python")
    if asked is None:
        return sys.executable
    found = shutil.which(f"python{asked}" if _is_version(asked) else asked)
    if found is None:
        raise Unmade([f"there is no Python {asked} here; uv would download one"])
    return found


def _uv() -> list[str]:
    """The command of uv; empty where there is none."""
    if found := shutil.which("uv"):
        return [found]
    return [sys.executable, "-m", "uv"] if importlib.util.find_spec("uv") else []


def _uv_or_refuse() -> list[str]:
    if not (found := _uv()):
        raise Unmade(["uv is not installed: pip install uv"])
    return found


def pip(python: str) -> list[str]:
    """Pip for an interpreter, which need not have one itself."""
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip", "--python", python]
    if found := shutil.which("pip"):
        return [found, "--python", python]
    raise Unmade(["neither uv nor pip is installed here"])


def releases(package: str) -> list[str]:
    """The releases that this Python can install. Raises :class:`UsageError`."""
    try:
        told = output([*pip(sys.executable), "index", "versions", package])
    except Unmade as error:
        why = (error.lines or ("no answer",))[-1]
        raise UsageError(f"pip cannot list the releases of {package}: {why}") from None
    return told.partition("Available versions: ")[2].partition("\n")[0].split(", ")


def output(command: Sequence[str], text: str = "") -> str:
    """What an installer prints. Raises :class:`Unmade` with its last lines."""
    try:
        done = subprocess.run(  # noqa: S603 - the words are a list, and no shell reads them
            command,
            input=text,
            capture_output=True,
            text=True,
            errors="replace",
            env={**os.environ, **SILENT},
            timeout=LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unmade([str(error)]) from None
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise Unmade(lines[-LAST_LINES:], done.stdout + done.stderr)
    return done.stdout
