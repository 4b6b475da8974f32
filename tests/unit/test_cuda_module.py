"""The CUDA layer on a machine without CUDA: it says why, and costs nothing before it is asked."""

from __future__ import annotations

import ctypes
import sys
from types import ModuleType, SimpleNamespace

import pytest

from dlprof.device import cuda

pytestmark = pytest.mark.unit

NO_DRIVER = "there is no CUDA driver: libcuda.so.1 cannot be loaded"


@pytest.fixture(autouse=True)
def forget_devices():
    cuda._opened.cache_clear()
    yield
    cuda._opened.cache_clear()


def driver(monkeypatch, *, status=0, devices=0, version=12080):
    """Put a fake libcuda in place."""

    def count(reference):
        reference._obj.value = devices
        return 0

    def describe(_, reference):
        reference._obj.value = b"no CUDA-capable device is detected"
        return 0

    def supported(reference):
        reference._obj.value = version
        return 0

    library = SimpleNamespace(
        cuInit=lambda flags: status,
        cuDeviceGetCount=count,
        cuGetErrorString=describe,
        cuDriverGetVersion=supported,
    )
    monkeypatch.setattr(ctypes, "CDLL", lambda name: library)


@pytest.fixture
def no_driver(monkeypatch):
    def missing(name):
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(ctypes, "CDLL", missing)


def test_without_a_driver_the_reason_names_the_library(no_driver):
    assert cuda.driver_devices() == NO_DRIVER


def test_a_driver_that_does_not_start_gives_its_own_words(monkeypatch):
    driver(monkeypatch, status=100)
    reason = cuda.driver_devices()
    assert reason == "the CUDA driver does not start: no CUDA-capable device is detected"


@pytest.mark.parametrize(
    ("version", "extra"), [(12080, "cu12"), (12000, "cu12"), (13000, "cu13"), (0, "cu13")]
)
@pytest.mark.parametrize("missing", ["cuda.core", "cuda.bindings.driver"])
def test_opening_without_cuda_core_or_its_bindings_names_the_extra(
    monkeypatch, missing, version, extra
):
    driver(monkeypatch, devices=1, version=version)
    modules = {"cuda": ModuleType("cuda"), "cuda.core": ModuleType("cuda.core")}
    modules["cuda.core"].Device = None
    for name, module in {**modules, missing: None}.items():
        monkeypatch.setitem(sys.modules, name, module)
    with pytest.raises(cuda.CudaUnavailable) as refusal:
        cuda.open_gpu()
    assert f'pip install "cuda-core[{extra}]"' in str(refusal.value)


def test_whatever_cuda_core_raises_becomes_one_sentence(monkeypatch):
    driver(monkeypatch, devices=1)

    def broken():
        raise RuntimeError("NVRTC\n  is missing")

    monkeypatch.setattr(cuda, "Gpu", broken)
    with pytest.raises(cuda.CudaUnavailable) as refusal:
        cuda.open_gpu()
    assert str(refusal.value) == "cuda-core cannot use the CUDA device: NVRTC is missing"
