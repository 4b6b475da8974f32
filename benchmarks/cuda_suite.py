"""All that dlprof has to show on a CUDA device, in one go of less than ten minutes.

    python benchmarks/cuda_suite.py --prepare WHEELS            where there is a package index
    python benchmarks/cuda_suite.py FOLDER --wheels WHEELS      on the machine with the device

Tests, selftest, matrices, scenarios, report and ticket run one after another, the most important
first, until the total time is spent. Sessions, tables and what each step printed are in FOLDER, and
a short table is printed last. Nothing needs to be installed but the frameworks; without a device it
says so and ends. ``--device cpu`` rehearses the same commands on the host.

The exit code is 0 if all that ran went well, 1 if not, and 4 where nothing could be run.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

import cuda_wheels
from cuda_steps import ROOT, Suite, environment, steps
from step_runner import FAILED, OK, TIMED_OUT, Done, Runner, Step, table

TOTAL_S = 570.0


def main() -> int:
    parser = options()
    given = parser.parse_args()
    if given.prepare is not None:
        return prepare(given.prepare)
    if given.folder is None:
        parser.error("name a folder for what is found")
    return run(given)


def prepare(folder: Path) -> int:
    """Download wheels; the exit code."""
    try:
        print(cuda_wheels.prepare(folder))
    except (cuda_wheels.Unfit, subprocess.CalledProcessError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, nargs="?", metavar="FOLDER")
    parser.add_argument("--prepare", type=Path, metavar="WHEELS", help="only download wheels")
    parser.add_argument("--wheels", type=Path, metavar="WHEELS", help="install these first")
    parser.add_argument("--total", type=float, default=TOTAL_S, metavar="SECONDS")
    parser.add_argument("--only", metavar="STEP,STEP", help="leave all other steps out")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--archive", type=Path, metavar="FILE", help="pack FOLDER into a .tar.gz")
    return parser


def run(given: argparse.Namespace) -> int:
    """Run the suite as it was asked for; the exit code."""
    signal.signal(signal.SIGTERM, _interrupt)  # so that what was found by then is told
    folder = given.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    suite = Suite(sys.executable, folder, given.device)
    with tempfile.TemporaryDirectory(prefix="dlprof-site-") as site:
        variables = surroundings(suite, Path(site))
        runner = Runner(folder, given.total, ROOT, variables, say=_say)
        done = runner.run([*first(suite, given.wheels, Path(site)), *chosen(suite, given.only)])
    text = table(done)
    (folder / "table.txt").write_text(text, encoding="utf-8")
    if given.archive is not None:
        pack(folder, given.archive)
    print(text, end="", flush=True)
    return exit_code(done)


def first(suite: Suite, wheels: Path | None, site: Path) -> list[Step]:
    """What all other steps need; none of it can be left out."""
    if wheels is None:
        return [environment(suite)]
    command = cuda_wheels.install_command(suite.python, wheels.resolve(), site)
    return [environment(suite), Step("wheels", command, 120, why_not=suite.no_device)]


def chosen(suite: Suite, only: str | None) -> list[Step]:
    """The steps that were asked for, all of them if none is named."""
    every = steps(suite)
    if only is None:
        return every
    wanted = set(only.split(","))
    unknown = wanted - {step.name for step in every}
    if unknown:
        known = ", ".join(step.name for step in every)
        raise SystemExit(f"there is no step {', '.join(sorted(unknown))}: known are {known}")
    return [step for step in every if step.name in wanted]


def surroundings(suite: Suite, site: Path) -> dict[str, str]:
    """The variables of each step: this checkout, the wheels, and a state folder of its own."""
    paths = [str(ROOT), str(site), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONUNBUFFERED": "1",
        "XDG_STATE_HOME": str(suite.file("state")),
        # JAX would take three quarters of the device's memory for itself.
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        # Each worker would compile the same for some seconds.
        "JAX_COMPILATION_CACHE_DIR": str(suite.file("jax")),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        **toolkit(),
    }


def toolkit() -> dict[str, str]:
    """Where the compiler is that Numba needs, unless somebody has said so."""
    if os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH"):
        return {}
    nvcc = shutil.which("nvcc")
    folder = Path(nvcc).resolve().parents[1] if nvcc else Path("/usr/local/cuda")
    return {"CUDA_HOME": str(folder)} if (folder / "nvvm").is_dir() else {}


def pack(folder: Path, archive: Path) -> None:
    """Put everything into one file, under the folder's name."""
    with tarfile.open(archive, "w:gz") as file:
        file.add(folder, arcname=folder.name)


def exit_code(done: Sequence[Done]) -> int:
    """Of a whole suite; the environment alone is no result."""
    outcomes = {one.outcome for one in done if one.name not in ("environment", "wheels")}
    if outcomes & {FAILED, TIMED_OUT}:
        return 1
    return 0 if OK in outcomes else 4  # as dlprof says that nothing was measured


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
