"""What a node does for a job: make its environment, measure in a clean process, hand all back.

``python -m dlprof.jobs.node`` reads a task as JSON from stdin and prints the answer as JSON.
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dlprof.errors import DlprofError, Interrupted, UsageError
from dlprof.jobs.environments import Unmade, made
from dlprof.jobs.plan import CONFORMANCE, GATE
from dlprof.runner.interrupts import STOPS
from dlprof.runner.state import state_folder
from dlprof.text import private_folder

COMMAND = (sys.executable, "-m", "dlprof.jobs.node")
KEPT_VARIABLES = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR", "LD_LIBRARY_PATH"),
    *("XDG_STATE_HOME", "XDG_CACHE_HOME", "CUDA_VISIBLE_DEVICES", "CUDA_HOME", "SSL_CERT_FILE"),
)
"""What the measured process sees of the node. Engines set ``OMP_NUM_THREADS`` and more of that."""
KEPT_PREFIXES = ("LC_", "NVIDIA_")
MEASURED = (0, 1, 3, 4)
"""Exit codes with a whole result: done, found, unsure; and no path that could be measured."""
WITH_YES = ("run", "survey", "matrix")
STOP_S = 30.0
LAST_LINES = 12
PARENT_DEATH_SIGNAL = 1
"""``PR_SET_PDEATHSIG`` of ``linux/prctl.h``."""
LIBC = ctypes.CDLL(None)


def call(task: str) -> str:
    """Work on a task in a fresh process, and give its answer; any engine calls this."""
    process = subprocess.Popen(  # noqa: S603
        COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        output, _ = process.communicate(task.encode())
    except BaseException:  # an engine stops a task by what it raises here
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=STOP_S)
        process.kill()
        raise
    return output.decode() or lost(f"its process ended with exit code {process.returncode}")


def lost(why: str) -> str:
    """The answer that stands for a task without one."""
    return json.dumps({"status": "lost", "why": why})


def answer(task: Mapping[str, Any]) -> dict[str, Any]:
    """Do a task. Whatever happens is in the answer."""
    begun = time.monotonic()
    found: dict[str, Any] = {"host": socket.gethostname(), **_niceness()}
    try:
        with contextlib.ExitStack() as kept:
            pythons = [
                kept.enter_context(made(one, task["disk_limit_bytes"]))
                for one in task["environments"]
            ]
            found["environment_s"] = round(time.monotonic() - begun, 1)
            found |= _measured(task, pythons)
    except Unmade as error:
        found |= {"status": "failed", "why": str(error), "lines": error.lines}
    except (KeyboardInterrupt, Interrupted):
        found |= {"status": "stopped", "why": "it was stopped"}
    except (DlprofError, OSError) as error:
        found |= {"status": "failed", "why": str(error)}
    return {**found, "seconds": round(time.monotonic() - begun, 1)}


def _measured(task: Mapping[str, Any], pythons: Sequence[str]) -> dict[str, Any]:
    folder = _own_folder(task["id"])
    here = _written(folder, task)
    session = folder / "session.json"
    shutil.rmtree(folder / "gate", ignore_errors=True)
    found = _run(_words(task["words"], folder, pythons), here, task["variables"], folder)
    if found["exit_code"] == UsageError.exit_code and session.is_file():
        session.unlink()  # of other versions: no beginning for this run
        found = _run(_words(task["words"], folder, pythons), here, task["variables"], folder)
    code = found["exit_code"]
    results = {
        suffix: path.read_text(encoding="utf-8")
        for suffix, path in _results(task["words"][0], folder).items()
        if path.is_file()
    }
    if code in MEASURED and _is_whole(results, task["words"][0]):
        shutil.rmtree(folder, ignore_errors=True)
        return {**found, "status": "done", "files": results}
    if code < 0:
        why = f"killed by {signal.Signals(-code).name}"
        return {**found, "status": "lost", "why": why}
    if code == Interrupted.exit_code:
        return {**found, "status": "stopped", "why": "it was stopped", "lines": []}
    return {**found, "status": "failed", "why": f"dlprof ended with exit code {code}"}


def _is_whole(results: Mapping[str, str], verb: str) -> bool:
    """Whether the results are those of a run that came to its end: refusals are results, too."""
    if "" not in results:
        return False
    last = json.loads(results[""].splitlines()[-1])
    return verb == CONFORMANCE or bool(last.get("end", {}).get("complete"))


def _own_folder(name: str) -> Path:
    """The folder of a job on this node; what a killed job measured is still there."""
    folder: Path = state_folder() / "jobs" / name
    for one in (folder.parent.parent, folder.parent, folder):
        private_folder.make(one)
    return folder


def _written(folder: Path, task: Mapping[str, Any]) -> Path:
    """Write the files of a task; the folder where its command runs."""
    root = folder / "files"
    shutil.rmtree(root, ignore_errors=True)
    for name, content in task["files"].items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(content))
    here: Path = root / task["folder"]
    here.mkdir(parents=True, exist_ok=True)
    return here


def _words(words: Sequence[str], folder: Path, pythons: Sequence[str]) -> list[str]:
    """The command of a task. A gate has both sides in one process, which takes turns."""
    if words[0] == GATE:
        base, head = pythons
        sides = ["--base-python", base, "--head-python", head]
        return [*words, *sides, "-o", str(folder / "gate")]
    kept = ["--json" if words[0] == CONFORMANCE else "-o", str(folder / "session.json")]
    yes = ["--yes"] if words[0] in WITH_YES else []
    return [*words, "--python", pythons[0], *kept, *yes]


def _results(verb: str, folder: Path) -> dict[str, Path]:
    """What a task leaves, by what its name in the store has behind the id."""
    if verb != GATE:
        return {"": folder / "session.json"}
    return {"": folder / "gate" / "head.json", ".base": folder / "gate" / "base.json"}


def _run(
    words: Sequence[str], here: Path, variables: Mapping[str, str], folder: Path
) -> dict[str, Any]:
    """Run dlprof to its end; a stop becomes a Ctrl-C, which keeps what was measured."""
    log = folder / "log"
    with log.open("wb") as file:
        process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", "dlprof", *words],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            cwd=here,
            env={**_environment(os.environ), **variables},
            preexec_fn=lambda: _end_with_parent(signal.SIGINT),  # noqa: PLW1509 - of one thread
        )
        try:
            process.wait()
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(STOP_S)
            process.kill()
            process.wait()
    lines = log.read_text("utf-8", "replace").strip().splitlines()
    return {"exit_code": process.returncode, "lines": lines[-LAST_LINES:]}


def _environment(found: Mapping[str, str]) -> dict[str, str]:
    """Of a node's variables those that say nothing of the engine or of its user's settings."""
    return {
        name: value
        for name, value in found.items()
        if name in KEPT_VARIABLES or name.startswith(KEPT_PREFIXES)
    }


def _niceness() -> dict[str, int]:
    """Undo the priority that Ray gives its workers; what is left of it disturbs times."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, 0)
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    return {"nice": nice} if nice else {}


def _end_with_parent(number: signal.Signals) -> None:
    """Have this process sent a signal when its parent dies."""
    LIBC.prctl(PARENT_DEATH_SIGNAL, int(number), 0, 0, 0)


def main() -> None:
    """Answer the task on stdin. If the engine's process dies, this one stops in order."""
    parent = os.getppid()
    _end_with_parent(signal.SIGTERM)
    for number in STOPS:  # Ray ignores some, and children would inherit that
        signal.signal(number, signal.default_int_handler)
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)  # Slurm tells all that the time is nearly over
    if os.getppid() == parent:
        found = answer(json.loads(sys.stdin.buffer.read()))
        sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
