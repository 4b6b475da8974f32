"""The state of the GPUs: clocks, throttling, temperature, and other processes on them.

By ``nvidia-ml-py`` (module ``pynvml``) if it is installed. A value that this driver, GPU or
container does not give is None. NVML lists processes by the host's numbers. If one of them is
unknown here, as in most containers, the number of other processes is None.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Reading = list[dict[str, Any]] | str

# nvml.h, nvmlClocksEventReason*. The names of the constants changed, their values did not.
THROTTLE_REASONS = {
    0x001: "idle",
    0x002: "application clocks setting",
    0x004: "power cap",
    0x008: "hardware slowdown",
    0x010: "sync boost",
    0x020: "thermal slowdown by the driver",
    0x040: "thermal slowdown by the hardware",
    0x080: "power brake",
    0x100: "display clock setting",
    0x200: "board limit",
    0x400: "reliability voltage",
}
SLOWING = frozenset({0x004, 0x008, 0x020, 0x040, 0x080, 0x200, 0x400})
"""Reasons that change during a run; the others are settings, or rest."""


def read() -> Reading:
    """The state of every GPU now, or the reason why it cannot be read.

    Clocks are in MHz. This process, its parent and the parent's other children are ours.
    """
    try:
        nvml = importlib.import_module("pynvml")
    except ImportError:
        return "nvidia-ml-py is not installed: pip install nvidia-ml-py"
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        return f"NVML cannot be used: {error}"
    try:
        return [_gpu(nvml, index) for index in range(_ask(nvml, "nvmlDeviceGetCount") or 0)]
    finally:
        _ask(nvml, "nvmlShutdown")


def watch(run: Callable[[], None], gpu: Any) -> str | None:
    """Call ``run``; the :func:`trouble` on ``gpu`` meanwhile. None if it is None or simulated."""
    if gpu is None or gpu.is_simulated:
        run()
        return None
    before = read()
    run()
    return trouble(before, read(), gpu.uuid)


def trouble(before: Reading, after: Reading, uuid: str = "") -> str | None:
    """What makes measurements between two readings doubtful, in one sentence; None if nothing.

    Also None if a reading gives no answer. Only the GPU with this ``uuid`` counts, or every GPU if
    NVML lists none by that name (a GPU and its MIG instances have different names).
    """
    if isinstance(before, str) or isinstance(after, str):
        return None
    found = [
        words
        for reading in (before, after)
        for gpu in _with_uuid(reading, uuid)
        for words in _complaints(gpu)
    ]
    return "; ".join(dict.fromkeys(found)) or None


def _with_uuid(reading: list[dict[str, Any]], uuid: str) -> list[dict[str, Any]]:
    used = [gpu for gpu in reading if uuid and _bare(gpu["uuid"]) == _bare(uuid)]
    return used or reading


def _bare(uuid: str | None) -> str:
    return (uuid or "").removeprefix("GPU-").lower()


def _complaints(gpu: dict[str, Any]) -> Iterator[str]:
    name = f"GPU {gpu['index']} ({gpu['name'] or 'unnamed'})"
    slowing = {THROTTLE_REASONS[bit] for bit in SLOWING}
    reasons = [words for words in gpu["throttle_reasons"] or () if words in slowing]
    if reasons:
        yield f"{name} lowered its clocks: {', '.join(reasons)}"
    others = gpu["other_processes"]
    if others:
        yield f"{name} was also used by {others} other process{'es' if others > 1 else ''}"


def _gpu(nvml: Any, index: int) -> dict[str, Any]:
    handle = _ask(nvml, "nvmlDeviceGetHandleByIndex", index)
    return {
        "index": index,
        "name": _text(_ask(nvml, "nvmlDeviceGetName", handle)),
        "uuid": _text(_ask(nvml, "nvmlDeviceGetUUID", handle)),
        "sm_clock_max_mhz": _ask(nvml, "nvmlDeviceGetMaxClockInfo", handle, nvml.NVML_CLOCK_SM),
        "memory_clock_max_mhz": _ask(
            nvml, "nvmlDeviceGetMaxClockInfo", handle, nvml.NVML_CLOCK_MEM
        ),
        "throttle_reasons": _throttle_reasons(nvml, handle),
        "other_processes": _other_processes(nvml, handle),
        "driver_version": _text(_ask(nvml, "nvmlSystemGetDriverVersion")),
    }


def _throttle_reasons(nvml: Any, handle: Any) -> list[str] | None:
    # The name changed with version 12 of the package, the bits did not.
    names = ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons")
    answers = (_ask(nvml, name, handle) for name in names)
    bits = next((found for found in answers if found is not None), None)
    if bits is None:
        return None
    return [words for bit, words in THROTTLE_REASONS.items() if bits & bit]


def _other_processes(nvml: Any, handle: Any) -> int | None:
    processes = _ask(nvml, "nvmlDeviceGetComputeRunningProcesses", handle)
    if processes is None:
        return None
    pids = {process.pid for process in processes} - {os.getpid(), os.getppid()}
    try:
        own = _run_of(os.getpid())
        runs = [_run_of(pid) for pid in pids]
    except OSError:  # a number of the host, which is unknown in a container
        return None
    return sum(run != own for run in runs)  # else it takes turns with this one


def _run_of(pid: int) -> int:
    """The dlprof that a worker belongs to; between the two is the worker's supervisor."""
    parent = _parent_of(pid)
    return _parent_of(parent) if parent else 0


def _parent_of(pid: int) -> int:
    stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    return int(stat.rpartition(")")[2].split()[1])


def _ask(nvml: Any, question: str, *arguments: Any) -> Any:
    """NVML's answer; None if it has none, or does not know the question."""
    try:
        return getattr(nvml, question)(*arguments)
    except (AttributeError, nvml.NVMLError):
        return None


def _text(answer: Any) -> str | None:
    # Versions before 12 answer in bytes.
    return answer.decode() if isinstance(answer, bytes) else answer
