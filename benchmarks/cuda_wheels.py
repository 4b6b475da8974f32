"""Wheels for a CUDA machine without a package index: download them here, install them there.

dlprof itself is run from its checkout. CUDA, the frameworks, NumPy, pandas, SciPy, PyArrow, typer
and rich are taken to be there; brought along is what dlprof's parent needs besides, and two that
measure: ``cuda-bench`` (nvbench) and ``cupti-python``.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PYTHON = "3.12"
PLATFORMS = (
    "manylinux_2_28_x86_64",
    "manylinux_2_27_x86_64",
    "manylinux_2_24_x86_64",
    "manylinux_2_17_x86_64",
    "manylinux2014_x86_64",
    "manylinux1_x86_64",
)
"""pip takes each for exactly what it says, not for all that are older."""
WITH_NEEDS = ("altair>=5.5", "pydantic>=2.7", "vl-convert-python>=1.7")
ALONE = ("cuda-bench>=0.3", "cupti-python>=13,<13.1")
"""Their needs are hundreds of MB of CUDA, which is there. The second is the one for CUDA 13.0, that
of PyTorch's wheels: a newer one asks for a newer CUPTI."""
MOST_BYTES = 64 << 20


class Unfit(Exception):
    """What was downloaded cannot be carried along, or would not be installed."""


def prepare(folder: Path) -> str:
    """Download everything into a folder; says how much it is. Raises :class:`Unfit`."""
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.glob("*.whl")):
        raise Unfit(f"there are wheels in {folder}: two versions of one could not be installed")
    for command in download_commands(folder):
        subprocess.run(command, check=True)
    wheels = sorted(folder.glob("*.whl"))
    size_bytes = sum(wheel.stat().st_size for wheel in wheels)
    words = f"{len(wheels)} wheels, {size_bytes / 2**20:.1f} MiB"
    if size_bytes > MOST_BYTES:
        raise Unfit(f"{words}: more than {MOST_BYTES >> 20} MiB")
    return words


def download_commands(folder: Path) -> list[list[str]]:
    """One with all that is needed by what is wanted, one without."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--dest", str(folder)]
    target = ["--only-binary=:all:", "--implementation", "cp", "--python-version", PYTHON]
    target += [word for name in PLATFORMS for word in ("--platform", name)]
    return [[*pip, *target, *WITH_NEEDS], [*pip, *target, "--no-deps", *ALONE]]


def install_command(python: str, folder: Path, site: Path) -> tuple[str, ...]:
    """Install all wheels of a folder into another, without an index and without their needs."""
    options = ("--no-index", "--no-deps", "--no-compile", "--no-cache-dir", "--upgrade")
    wheels = sorted(str(wheel) for wheel in folder.glob("*.whl"))
    return (python, "-m", "pip", "install", *options, "--target", str(site), *wheels)
