"""The state of the GPUs: clocks, throttling, temperature, and other processes on them.

By ``nvidia-ml-py`` (module ``pynvml``) if it is installed. A value that this driver, GPU or
container does not give is None. NVML lists processes by the host's numbers. If one of them is
unknown here, as in most containers, the numbers of other processes are None.
"""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

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
SLOWING = frozenset({0x008, 0x020, 0x040, 0x080, 0x200, 0x400})
"""Reasons that change during a run; the others are settings, or rest."""
POWER_CAP = 0x004
"""Normal under load: a GPU that keeps to its power limit is no broken one."""
RECENT_NS = 1_000_000_000


class Doubt(NamedTuple):
    """What speaks against measurements, each in one sentence; None if nothing."""

    trouble: str | None = None
    """Makes them invalid."""
    note: str | None = None
    """Is normal on a machine that others use, too."""


def read(since_ns: int | None = None) -> Reading:
    """The state of every GPU now, or the reason why it cannot be read.

    Clocks are in MHz. This process, its parent and the parent's other children are ours. Others are
    busy if they ran a kernel ``since_ns``, by the clock of the day; by default in the last second.
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


def watch(run: Callable[[], None], gpu: Any) -> Doubt:
    """Call ``run``; the :func:`doubt` on ``gpu`` meanwhile: none if it is None or simulated."""
    if gpu is None or gpu.is_simulated:
        run()
        return Doubt()
    began_ns = time.time_ns()
    before = read()
    run()
    return doubt(before, read(began_ns), gpu.uuid)


def doubt(before: Reading, after: Reading, uuid: str = "") -> Doubt:
    """What speaks against measurements between two readings; nothing if one gives no answer.

    Only the GPU with this ``uuid`` counts, or every GPU if NVML lists none by that name (a GPU and
    its MIG instances have different names).
    """
    if isinstance(before, str) or isinstance(after, str):
        return Doubt()
    used = [gpu for reading in (before, after) for gpu in _with_uuid(reading, uuid)]
    return Doubt(
        _sentence(words for gpu in used for words in _complaints(gpu)),
        _sentence(words for gpu in used for words in _notes(gpu)),
    )


def _sentence(found: Iterable[str]) -> str | None:
    return "; ".join(dict.fromkeys(found)) or None


def _with_uuid(reading: list[dict[str, Any]], uuid: str) -> list[dict[str, Any]]:
    used = [gpu for gpu in reading if uuid and _bare(gpu["uuid"]) == _bare(uuid)]
    return used or reading


def _bare(uuid: str | None) -> str:
    return (uuid or "").removeprefix("GPU-").lower()


def _complaints(gpu: dict[str, Any]) -> Iterator[str]:
    name = _name(gpu)
    slowing = {THROTTLE_REASONS[bit] for bit in SLOWING}
    reasons = [words for words in gpu["throttle_reasons"] or () if words in slowing]
    if reasons:
        yield f"{name} lowered its clocks: {', '.join(reasons)}"
    busy = gpu["busy_processes"]
    if busy:
        yield f"{name} was also used by {_others(busy)}"


def _notes(gpu: dict[str, Any]) -> Iterator[str]:
    name, idle = _name(gpu), (gpu["other_processes"] or 0) - (gpu["busy_processes"] or 0)
    if THROTTLE_REASONS[POWER_CAP] in (gpu["throttle_reasons"] or ()):
        yield f"{name} kept to its power cap"
    if idle > 0:
        yield f"{name} was also open in {_others(idle)}"


def _name(gpu: dict[str, Any]) -> str:
    return f"GPU {gpu['index']} ({gpu['name'] or 'unnamed'})"


def _others(number: int) -> str:
    return f"{number} other process{'es' if number > 1 else ''}"


def _gpu(nvml: Any, index: int, since_us: int) -> dict[str, Any]:
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
        "other_processes": _foreign(_ask(nvml, "nvmlDeviceGetComputeRunningProcesses", handle)),
        "busy_processes": _busy_processes(nvml, handle, since_us),
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


def _busy_processes(nvml: Any, handle: Any, since_us: int) -> int | None:
    """Those that ran kernels. NVML has no answer for an instance of MIG, or where none ran."""
    samples = _ask(nvml, "nvmlDeviceGetProcessUtilization", handle, since_us)
    if samples is None:
        return None
    return _foreign([sample for sample in samples if sample.smUtil and sample.timeStamp > since_us])


def _foreign(processes: Iterable[Any] | None) -> int | None:
    """How many of them are not of this run; None if one is unknown here."""
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
