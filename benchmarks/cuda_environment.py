"""Write down what a CUDA suite runs on: device, driver, versions. Needs nothing that is installed.

Asks the driver alone, so that no framework can spoil the answer.
"""

from __future__ import annotations

import importlib.metadata
import json
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from dlprof.device.cuda import driver_devices

STATE = (
    "name,driver_version,memory.total,memory.used,clocks.sm,clocks.mem,temperature.gpu,power.draw"
)
ASK_LIMIT_S = 20
NAMES = ("torch", "cupy", "jax", "numba", "cuda", "nvidia-", "onnx", "tensorflow", "numpy")
OTHERS = ("pandas", "scipy", "pyarrow", "pydantic", "altair", "typer", "rich", "jinja2", "pytest")


def found() -> dict[str, Any]:
    """What can be known in a second or two."""
    devices = driver_devices()
    return {
        "no_cuda": devices if isinstance(devices, str) else None,
        "devices": 0 if isinstance(devices, str) else devices,
        "state": nvidia_smi(),
        "python": sys.version,
        "executable": sys.executable,
        "platform": platform.platform(),
        "packages": packages(),
    }


def nvidia_smi() -> str:
    """Clocks, memory and temperature as they were found; nothing of them is changed."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return "there is no nvidia-smi"
    command = [program, f"--query-gpu={STATE}", "--format=csv,noheader"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=ASK_LIMIT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"nvidia-smi does not answer: {error}"
    return (done.stdout or done.stderr).strip()


def packages() -> dict[str, str]:
    """Versions of everything that is measured, or that measures."""
    every = {
        str(one.metadata["Name"]).lower(): one.version for one in importlib.metadata.distributions()
    }
    return {
        name: version
        for name, version in sorted(every.items())
        if name.startswith(NAMES) or name in OTHERS
    }


if __name__ == "__main__":
    answer = found()
    Path(sys.argv[1]).write_text(json.dumps(answer, indent=1) + "\n", encoding="utf-8")
    for package, version in answer["packages"].items():
        print(f"{package} {version}")
    print(answer["no_cuda"] or answer["state"])
