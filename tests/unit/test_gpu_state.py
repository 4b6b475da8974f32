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
    """A GPU at rest."""
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
    module.nvmlSystemGetDriverVersion = lambda: "580.95"
    monkeypatch.setitem(sys.modules, "pynvml", module)
    return module


def using(**percent):
    """NVML samples of each process's GPU use since a moment."""
    return lambda handle, since_us: [
        SimpleNamespace(pid=int(pid[1:]), smUtil=used, timeStamp=since_us + 1)
        for pid, used in percent.items()
    ]


def trouble(nvml, uuid="", **answers):
    """Return the disturbances between a GPU at rest and one with these answers."""
    before = gpu_state.read()
    for name, answer in answers.items():
        setattr(nvml, name, answer)
    return gpu_state.trouble(before, gpu_state.read(), uuid)


@pytest.mark.parametrize("bits", [0x1, 0x2, 0x4, 0x10, 0x100])
def test_rest_a_setting_or_the_power_limit_is_no_disturbance(nvml, bits):
    throttled = {"nvmlDeviceGetCurrentClocksThrottleReasons": lambda handle: bits}
    assert trouble(nvml, **throttled) is None


def test_throttling_is_a_disturbance(nvml):
    throttled = {"nvmlDeviceGetCurrentClocksThrottleReasons": lambda handle: 0x48}
    assert trouble(nvml, **throttled) == (
        "GPU 0 (H200) lowered its clocks: hardware slowdown, thermal slowdown by the hardware"
    )


def test_foreign_load_is_a_disturbance_unless_it_has_another_namespace(nvml):
    used = {"nvmlDeviceGetProcessUtilization": using(p1=40, **{f"p{os.getpid()}": 90})}
    assert trouble(nvml, **used) == "GPU 0 (H200) was also used by 1 other process"
    nvml.nvmlDeviceGetProcessUtilization = using(p1=40, p40000000=90)
    assert gpu_state.read()[0]["busy_processes"] is None


@pytest.mark.parametrize(
    ("uuid", "blamed"), [("abc1", "GPU 1"), ("abc0", None), ("mig-of-another-name", "GPU 1")]
)
def test_only_the_gpu_in_use_counts_if_it_is_known_and_once(nvml, uuid, blamed):
    nvml.nvmlDeviceGetCount = lambda: 2
    throttled = {"nvmlDeviceGetCurrentClocksThrottleReasons": lambda handle: 0x8 * int(handle[-1])}
    found = trouble(nvml, uuid, **throttled)
    assert found == (blamed and f"{blamed} (H200) lowered its clocks: hardware slowdown")
