"""GPU state, read from a fake NVML."""

from __future__ import annotations

import os
import subprocess
import sys
from types import ModuleType, SimpleNamespace

import pytest

from dlprof.device import gpu_state

pytestmark = pytest.mark.unit


class NVMLError(Exception):
    pass


def refuse(*_):
    raise NVMLError("Not Supported")


@pytest.fixture
def nvml(monkeypatch):
    """One GPU at rest."""
    module = ModuleType("pynvml")
    module.NVMLError = NVMLError
    module.NVML_CLOCK_SM, module.NVML_CLOCK_MEM, module.NVML_TEMPERATURE_GPU = 1, 2, 0
    module.nvmlInit = lambda: None
    module.nvmlShutdown = lambda: None
    module.nvmlDeviceGetCount = lambda: 1
    module.nvmlDeviceGetHandleByIndex = lambda index: f"handle {index}"
    module.nvmlDeviceGetName = lambda handle: "H200"
    module.nvmlDeviceGetUUID = lambda handle: f"GPU-abc{handle[-1]}"
    module.nvmlDeviceGetClockInfo = lambda handle, clock: {1: 1200, 2: 3000}[clock]
    module.nvmlDeviceGetMaxClockInfo = lambda handle, clock: {1: 1980, 2: 3201}[clock]
    module.nvmlDeviceGetCurrentClocksThrottleReasons = lambda handle: 0x1
    module.nvmlDeviceGetTemperature = lambda handle, sensor: 41
    module.nvmlDeviceGetPowerUsage = lambda handle: 76_500
    module.nvmlDeviceGetComputeRunningProcesses = lambda handle: []
    module.nvmlSystemGetDriverVersion = lambda: "580.95"
    monkeypatch.setitem(sys.modules, "pynvml", module)
    return module


def running(*pids):
    return lambda handle: [SimpleNamespace(pid=pid) for pid in pids]


def test_a_reading_has_units_in_its_names(nvml):
    assert gpu_state.read() == [
        {
            "index": 0,
            "name": "H200",
            "uuid": "GPU-abc0",
            "sm_clock_mhz": 1200,
            "sm_clock_max_mhz": 1980,
            "memory_clock_mhz": 3000,
            "memory_clock_max_mhz": 3201,
            "throttle_reasons": ["idle"],
            "temperature_c": 41,
            "power_w": 76.5,
            "other_processes": 0,
            "driver_version": "580.95",
        }
    ]


def test_everything_that_nvml_does_not_tell_is_none(nvml):
    for name in [name for name in vars(nvml) if name.startswith("nvmlDeviceGet")]:
        if name not in ("nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex"):
            setattr(nvml, name, refuse)
    (gpu,) = gpu_state.read()
    assert {key for key, value in gpu.items() if value is not None} == {"index", "driver_version"}


def test_a_worker_of_the_same_parent_is_ours(nvml, monkeypatch):
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as sibling:
        nvml.nvmlDeviceGetComputeRunningProcesses = running(sibling.pid)
        assert gpu_state.read()[0]["other_processes"] == 1
        monkeypatch.setattr(os, "getppid", os.getpid)
        assert gpu_state.read()[0]["other_processes"] == 0


def trouble_with(nvml, **answers):
    """The trouble between a GPU at rest and one that gives these answers."""
    before = gpu_state.read()
    for name, answer in answers.items():
        setattr(nvml, name, answer)
    return gpu_state.trouble(before, gpu_state.read())


def throttled(bits):
    return {"nvmlDeviceGetCurrentClocksThrottleReasons": lambda handle: bits}


def test_throttling_is_trouble_and_rest_or_a_setting_is_none(nvml):
    assert trouble_with(nvml, **throttled(0x48)) == (
        "GPU 0 (H200) lowered its clocks: hardware slowdown, thermal slowdown by the hardware"
    )
    for setting in (0x1, 0x2, 0x10, 0x100):
        nvml.nvmlDeviceGetCurrentClocksThrottleReasons = lambda handle, bits=setting: bits
        assert gpu_state.trouble(gpu_state.read(), gpu_state.read()) is None


def test_foreign_load_is_trouble_unless_a_process_is_of_another_namespace(nvml, monkeypatch):
    monkeypatch.setattr(gpu_state, "_exists_here", lambda pid: pid < 1000)
    for pids, words in (((7,), "1 other process"), ((7, 8), "2 other processes")):
        nvml.nvmlDeviceGetComputeRunningProcesses = running()
        found = trouble_with(nvml, nvmlDeviceGetComputeRunningProcesses=running(*pids))
        assert found == f"GPU 0 (H200) was also used by {words}"
    nvml.nvmlDeviceGetComputeRunningProcesses = running(7, 4_000_000)
    assert gpu_state.read()[0]["other_processes"] is None


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
    nvml.nvmlDeviceGetCurrentClocksThrottleReasons = lambda handle: 0x4 * int(handle[-1])
    trouble = gpu_state.trouble(gpu_state.read(), gpu_state.read(), uuid) or ""
    assert [name for name in ("GPU 0", "GPU 1") if name in trouble] == blamed
    assert trouble.count("power cap") == len(blamed)
