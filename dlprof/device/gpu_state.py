"""The state of the GPUs: clocks, throttling, and other processes on them.

By ``nvidia-ml-py`` (module ``pynvml``) if it is installed. A value that this driver, GPU or
container does not give is None.
"""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Reading = list[dict[str, Any]] | str

SLOWING = {
    0x008: "hardware slowdown",
    0x020: "thermal slowdown by the driver",
    0x040: "thermal slowdown by the hardware",
    0x080: "power brake",
    0x200: "board limit",
    0x400: "reliability voltage",
}
"""Reasons for low clocks that change during a run (nvml.h, nvmlClocksEventReason*).

The others are settings, rest, and the power limit of a busy GPU.
"""
RECENT_NS = 1_000_000_000


def read(since_ns: int | None = None) -> Reading:
    """Return the state of every GPU now, or the reason why it cannot be read.

    Clocks are in MHz. ``busy_processes`` counts the processes of other programs that ran a kernel
    ``since_ns`` (``time.time_ns``), by default in the last second.
    """
    since_us = (time.time_ns() - RECENT_NS if since_ns is None else since_ns) // 1000
    try:
        nvml = importlib.import_module("pynvml")
    except ImportError:
        return "nvidia-ml-py is not installed: pip install nvidia-ml-py"
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        return f"NVML cannot be used: {error}"
    try:
        return [
            _gpu(nvml, index, since_us) for index in range(_ask(nvml, "nvmlDeviceGetCount") or 0)
        ]
    finally:
        _ask(nvml, "nvmlShutdown")


def watch(run: Callable[[], None], gpu: Any) -> str | None:
    """Call ``run`` and return the trouble on ``gpu`` during the call, or None."""
    if gpu is None or gpu.is_simulated:
        run()
        return None
    began_ns = time.time_ns()
    before = read()
    run()
    return trouble(before, read(began_ns), gpu.uuid)


def trouble(before: Reading, after: Reading, uuid: str) -> str | None:
    """Return the trouble for measurements between two readings; None if there is none.

    Only the GPU with this ``uuid`` counts. Every GPU counts if NVML lists none by that name: a GPU
    and its MIG instances have different names.
    """
    found = []
    for reading in (before, after):
        if not isinstance(reading, str):
            used = [gpu for gpu in reading if uuid in (gpu["uuid"] or "")]
            found += [words for gpu in used or reading for words in _complaints(gpu)]
    return "; ".join(dict.fromkeys(found)) or None


def _complaints(gpu: dict[str, Any]) -> Iterator[str]:
    name = f"GPU {gpu['index']} ({gpu['name'] or 'unnamed'})"
    if gpu["slowed_by"]:
        yield f"{name} lowered its clocks: {', '.join(gpu['slowed_by'])}"
    if busy := gpu["busy_processes"]:
        yield f"{name} was also used by {busy} other process{'es' if busy > 1 else ''}"


def _gpu(nvml: Any, index: int, since_us: int) -> dict[str, Any]:
    handle = _ask(nvml, "nvmlDeviceGetHandleByIndex", index)
    reasons = _ask(nvml, "nvmlDeviceGetCurrentClocksThrottleReasons", handle) or 0
    return {
        "index": index,
        "name": _ask(nvml, "nvmlDeviceGetName", handle),
        "uuid": _ask(nvml, "nvmlDeviceGetUUID", handle),
        "sm_clock_max_mhz": _ask(nvml, "nvmlDeviceGetMaxClockInfo", handle, nvml.NVML_CLOCK_SM),
        "memory_clock_max_mhz": _ask(
            nvml, "nvmlDeviceGetMaxClockInfo", handle, nvml.NVML_CLOCK_MEM
        ),
        "slowed_by": [words for bit, words in SLOWING.items() if reasons & bit],
        "busy_processes": _busy_processes(nvml, handle, since_us),
        "driver_version": _ask(nvml, "nvmlSystemGetDriverVersion"),
    }


def _busy_processes(nvml: Any, handle: Any, since_us: int) -> int | None:
    """Return how many processes of other programs ran kernels; None if that is unknown.

    NVML does not answer for an instance of MIG, or if no process ran. It gives the host's process
    ids, which are unknown in most containers.
    """
    samples = _ask(nvml, "nvmlDeviceGetProcessUtilization", handle, since_us)
    if samples is None:
        return None
    busy = {sample.pid for sample in samples if sample.smUtil and sample.timeStamp > since_us}
    try:
        own_parent = _dlprof_pid(os.getpid())
        return sum(_dlprof_pid(pid) != own_parent for pid in busy - {os.getpid(), os.getppid()})
    except OSError:
        return None


def _dlprof_pid(pid: int) -> int:
    """Return the dlprof that started a worker; the worker's supervisor is between the two.

    Other workers of this dlprof take turns with this one.
    """
    parent = _parent_pid(pid)
    return _parent_pid(parent) if parent else 0


def _parent_pid(pid: int) -> int:
    stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    return int(stat.rpartition(")")[2].split()[1])


def _ask(nvml: Any, question: str, *arguments: Any) -> Any:
    """Return NVML's answer; None if it has none or lacks the function."""
    try:
        return getattr(nvml, question)(*arguments)
    except (AttributeError, nvml.NVMLError):
        return None
