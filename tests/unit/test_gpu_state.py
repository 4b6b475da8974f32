"""GPU state, read from a fake NVML."""

import os
import sys
from types import ModuleType, SimpleNamespace

import pytest

from dlprof.device import gpu_state


class NVMLError(Exception):
    pass


@pytest.fixture
def nvml(monkeypatch):
    """One GPU at rest."""
    module = ModuleType("pynvml")
    module.NVMLError = NVMLError
    module.NVML_CLOCK_SM, module.NVML_CLOCK_MEM = 1, 2
    module.nvmlInit = lambda: None
    module.nvmlShutdown = lambda: None
    module.nvmlDeviceGetCount = lambda: 1
    module.nvmlDeviceGetHandleByIndex = lambda index: f"handle {index}"
    module.nvmlDeviceGetName = lambda handle: "H200"
    module.nvmlDeviceGetUUID = lambda handle: f"GPU-abc{handle[-1]}"
    module.nvmlDeviceGetMaxClockInfo = lambda handle, clock: {1: 1980, 2: 3201}[clock]
    module.nvmlDeviceGetCurrentClocksThrottleReasons = lambda handle: 0x1
    module.nvmlDeviceGetComputeRunningProcesses = lambda handle: []
    module.nvmlSystemGetDriverVersion = lambda: "580.95"
    monkeypatch.setitem(sys.modules, "pynvml", module)
    return module


def running(*pids):
    return lambda handle: [SimpleNamespace(pid=pid) for pid in pids]


def using(**percent):
    """Samples of how much each process used the GPU, which NVML has since a moment."""
    return lambda handle, since_us: [
        SimpleNamespace(pid=int(pid[1:]), smUtil=used, timeStamp=since_us + 1)
        for pid, used in percent.items()
    ]


def doubt_with(nvml, **answers):
    """The doubt between a GPU at rest and one that gives these answers."""
    before = gpu_state.read()
    for name, answer in answers.items():
        setattr(nvml, name, answer)
    return gpu_state.doubt(before, gpu_state.read())


def throttled(bits):
    return {"nvmlDeviceGetCurrentClocksThrottleReasons": lambda handle: bits}


def test_throttling_is_trouble_and_rest_or_a_setting_is_none(nvml):
    assert doubt_with(nvml, **throttled(0x48)).trouble == (
        "GPU 0 (H200) lowered its clocks: hardware slowdown, thermal slowdown by the hardware"
    )
    for setting in (0x1, 0x2, 0x10, 0x100):
        nvml.nvmlDeviceGetCurrentClocksThrottleReasons = lambda handle, bits=setting: bits
        assert gpu_state.doubt(gpu_state.read(), gpu_state.read()) == (None, None)


def test_a_power_cap_and_an_idle_process_are_notes(nvml):
    open_in = {"nvmlDeviceGetComputeRunningProcesses": running(os.getpid(), 1)}
    used = {"nvmlDeviceGetProcessUtilization": using(p1=0)}
    found = doubt_with(nvml, **throttled(0x4), **open_in, **used)
    note = "GPU 0 (H200) kept to its power cap; GPU 0 (H200) was also open in 1 other process"
    assert found == (None, note)


def test_foreign_load_is_trouble_unless_a_process_is_of_another_namespace(nvml):
    open_in = {"nvmlDeviceGetComputeRunningProcesses": running(os.getpid(), 1)}
    used = {"nvmlDeviceGetProcessUtilization": using(p1=40, **{f"p{os.getpid()}": 90})}
    found = doubt_with(nvml, **open_in, **used)
    assert found == ("GPU 0 (H200) was also used by 1 other process", None)
    nvml.nvmlDeviceGetProcessUtilization = using(p1=40, p40000000=90)
    nvml.nvmlDeviceGetComputeRunningProcesses = running(1, 40_000_000)
    reading = gpu_state.read()[0]
    assert (reading["other_processes"], reading["busy_processes"]) == (None, None)


@pytest.mark.parametrize(
    ("uuid", "blamed"),
    [
        ("GPU-abc1", ["GPU 1"]),
        ("ABC1", ["GPU 1"]),
        ("GPU-abc0", []),
        ("MIG-of-another-name", ["GPU 1"]),
        ("", ["GPU 1"]),
    ],
)
def test_only_the_gpu_that_was_used_counts_if_it_is_known_and_once(nvml, uuid, blamed):
    nvml.nvmlDeviceGetCount = lambda: 2
    nvml.nvmlDeviceGetCurrentClocksThrottleReasons = lambda handle: 0x8 * int(handle[-1])
    trouble = gpu_state.doubt(gpu_state.read(), gpu_state.read(), uuid).trouble or ""
    assert [name for name in ("GPU 0", "GPU 1") if name in trouble] == blamed
    assert trouble.count("hardware slowdown") == len(blamed)
