"""The environment of a process that is to run on the simulated driver; the user sets nothing."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from dlprof.simulated.build import driver_folder

DEVICES = "DLPROF_SIMULATED_DEVICES"
"""How many devices the driver has. A worker that has it among its variables runs on the driver."""
PATH = "LD_LIBRARY_PATH"
LIST_PATH = "import json, sys; print(json.dumps(sys.path))"
LIMIT_S = 60.0

XLA_FLAGS = "--xla_gpu_enable_command_buffer= --xla_gpu_autotune_level=0"
"""The driver has no graphs; and no kernel is faster than another there."""
DEFAULTS = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "TF_FORCE_GPU_ALLOW_GROWTH": "true"}
"""Frameworks take most of a device's memory otherwise."""


def variables(devices: int) -> dict[str, str]:
    """Return what asks for a driver of so many devices; empty for a real one."""
    return {DEVICES: str(devices)} if devices else {}


def on_simulated_device(environment: Mapping[str, str], python: str) -> dict[str, str]:
    """Put the driver first on the library path of ``environment``, then NVIDIA's own libraries.

    A framework's wheel does not always find the libraries of other wheels, such as NVRTC. Raises
    :class:`~dlprof.errors.MissingDevice` if the driver is not built and cannot be.
    """
    folders = [str(driver_folder()), *_libraries(python), environment.get(PATH, "")]
    flags = f"{XLA_FLAGS} {environment.get('XLA_FLAGS', '')}".strip()
    joined = ":".join(filter(None, folders))
    return {**DEFAULTS, **environment, PATH: joined, "XLA_FLAGS": flags}


@functools.cache
def _libraries(python: str) -> tuple[str, ...]:
    """Return the folders of libraries in NVIDIA's wheels that an interpreter has."""
    found = (
        folder
        for place in map(Path, _search_path(python))
        for folder in sorted(place.glob("nvidia/*/lib"))
        if folder.is_dir()
    )
    return tuple(dict.fromkeys(map(str, found)))


def _search_path(python: str) -> Sequence[str]:
    if python == sys.executable:
        return [place for place in sys.path if place]
    try:
        done = subprocess.run(  # noqa: S603 - the interpreter that is measured
            [python, "-c", LIST_PATH],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=True,
        )
        return [str(place) for place in json.loads(done.stdout) if place]
    except (OSError, ValueError, subprocess.SubprocessError):
        return []  # the worker says what is wrong with it
