"""Run dlprof's checks on a CUDA device in two calls of less than ten minutes: ``make gpu``.

    python benchmarks/cuda_suite.py FOLDER --part 1
    python benchmarks/cuda_suite.py FOLDER --only selftest,matrix

Tests, selftest, matrices, scenarios and a ticket run one after another, the most important first,
until the total time is spent. Sessions, tables and the output of each step are in FOLDER, and a
table is printed last. ``--device cpu`` rehearses the same commands on the host, and ``--device
simulated`` those that need no time of a device.

The exit code is 0 if all that ran went well, 1 if not, and 4 if there is no device.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TOTAL_S = 570.0
GRACE_S = 10.0
"""Time for a step to write its results after its limit."""
NOTHING_MEASURED = 4
DIRECT = (
    *("*from_dlpack(x)", "*from_dlpack(x, copy=*", "*as_cuda_array(x)", "cupy.asarray(x)"),
    *("torch.as_tensor(x, device=*", "jnp.asarray(x)"),
    *("torch.from_numpy(x.cpu().numpy()).cuda()", "cupy.asarray(x.get())"),
)
"""Paths from device to device, and two through the host. All 320 paths would take too long."""


@dataclass(frozen=True)
class Step:
    name: str
    command: tuple[str, ...]
    limit_s: float
    needs_times: bool = False


def steps(folder: Path, device: str) -> tuple[list[Step], list[Step]]:
    """Return the steps of both parts, the most important first."""

    def tests(name: str, limit_s: float, *files: str) -> Step:
        options = ("-m", "cuda", "-W", "default", "-p", "no:cacheprovider", "--tb=short", "-rfEs")
        paths = (f"tests/cuda/{file}" for file in files)
        return Step(name, ("-m", "pytest", *options, *paths), limit_s, needs_times=True)

    def dlprof(name: str, limit_s: float, verb: str, *options: str) -> Step:
        outputs = (f"--{form}={folder / name}.{form}" for form in ("csv", "markdown", "html"))
        kept = ("-o", f"{folder / name}.json", "--timeout", "30", *outputs)
        return Step(
            name,
            ("-m", "dlprof", verb, *options, *kept),
            limit_s,
            options[0].endswith(".toml"),
        )

    def paths(*globs: str) -> tuple[str, ...]:
        return tuple(word for glob in globs for word in ("--path", glob))

    limit_s = 150 if device == "cuda" else 500  # on a GPU, other steps need time too
    matrix = ("--device", device, "--shape", "1024x1024")
    to_device = paths("*cuda*", "*cupy*") if device == "cuda" else ()
    ticket = ("ticket", f"{folder}/loaded.json", "--run")
    first = [
        tests("spin-and-device", 90, "test_cuda_device.py", "test_spin_length.py"),
        tests("nvbench", 90, "test_device_time_against_nvbench.py"),
        dlprof(
            "loaded", limit_s, "matrix", *matrix, "--diagnose", "--rounds", "1", *paths(*DIRECT)
        ),
        Step("ticket", ("-m", "dlprof", *ticket), 60),
        dlprof("loop", 45, "run", "scenarios/torch-numba-loop.toml"),
        dlprof("ingest", 60, "run", "scenarios/ingest.toml", "--rounds", "1", *to_device),
        dlprof("output-buffers", 60, "run", "scenarios/output-buffers.toml", "--rounds", "2"),
    ]
    second = [
        Step("selftest", ("-m", "dlprof", "selftest", "--device", device), 200),
        dlprof("matrix", 120, "matrix", *matrix, "--quick"),
        tests("selftest-on-streams", 150, "test_selftest_on_streams.py"),
        dlprof(
            "both-directions",
            45,
            *("run", "scenarios/round-trip-cuda.toml", "--no-diagnose", "--rounds", "2"),
        ),
    ]
    return first, second


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--total", type=float, default=TOTAL_S, metavar="SECONDS")
    parser.add_argument("--only", default="", metavar="STEP,STEP", help="leave all others out")
    parser.add_argument("--device", choices=("cuda", "cpu", "simulated"), default="cuda")
    parser.add_argument("--part", type=int, choices=(1, 2), help="the first or the second half")
    given = parser.parse_args()
    folder = given.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    parts = steps(folder, given.device)
    chosen = [
        step
        for step in (parts[given.part - 1] if given.part else [*parts[0], *parts[1]])
        if (not given.only or step.name in given.only.split(","))
        and not (given.device == "simulated" and step.needs_times)
    ]
    if given.device == "cuda" and shutil.which("nvidia-smi") is None:
        print("no CUDA device: there is no nvidia-smi", file=sys.stderr)
        return NOTHING_MEASURED
    end = time.monotonic() + given.total
    done = []
    for step in chosen:
        outcome = run(step, folder, min(step.limit_s, end - time.monotonic() - GRACE_S))
        print(*outcome, sep="  ", file=sys.stderr, flush=True)
        done.append(outcome)
    table = "".join(f"{name:<20}  {word:<12}  {told}\n" for name, word, told in done)
    (folder / "table.txt").write_text(table, encoding="utf-8")
    print(table, end="")
    return 1 if any(word.startswith(("failed", "timed")) for _, word, _ in done) else 0


def run(step: Step, folder: Path, limit_s: float) -> tuple[str, str, str]:
    """Run a step in its own process group: return its name, its result, and its last line."""
    if limit_s < min(step.limit_s, 20):
        return step.name, "not run", "no time is left"
    log, began = folder / f"{step.name}.log", time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, *step.command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=ROOT,
            env=environment(folder),
            start_new_session=True,
        )
        word = wait(process, limit_s)
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    told = f"{time.monotonic() - began:6.1f} s  {lines[-1].strip()[:100] if lines else ''}"
    return step.name, word, told


def wait(process: subprocess.Popen[bytes], limit_s: float) -> str:
    """Wait for a process. Interrupt it at its limit, so that it writes its results."""
    word = ""
    try:
        process.wait(limit_s)
    except subprocess.TimeoutExpired:
        word = "timed out"
        os.killpg(process.pid, signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_S)
    finally:
        # Child processes would be measured together with the next step.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    nothing = process.returncode in (NOTHING_MEASURED, 5)  # 5: pytest ran no test
    ended = "nothing" if nothing else f"failed ({process.returncode})"
    return word or (ended if process.returncode else "ok")


def environment(folder: Path) -> Mapping[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
        "PYTHONUNBUFFERED": "1",
        "XDG_STATE_HOME": str(folder / "state"),
        # Numba looks for its compiler there.
        "CUDA_HOME": os.environ.get("CUDA_HOME", "/usr/local/cuda"),
        # JAX would take three quarters of the device's memory for itself.
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        # Each worker would compile the same for some seconds.
        "JAX_COMPILATION_CACHE_DIR": str(folder / "jax"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }


if __name__ == "__main__":
    sys.exit(main())
