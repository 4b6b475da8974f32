"""The CUDA layer on a machine without CUDA: it gives the reason, and costs nothing until used."""

import ctypes
import shutil
from types import SimpleNamespace

import pytest

from dlprof.device import cuda
from dlprof.simulated.environment import LIBRARY, driver_folder


@pytest.fixture(autouse=True)
def forget_devices():
    cuda.open_gpu.cache_clear()
    yield
    cuda.open_gpu.cache_clear()


def driver(monkeypatch, *, status=0, devices=0):
    """Put a fake libcuda in place."""

    def count(reference):
        reference._obj.value = devices
        return 0

    def describe(_, reference):
        reference._obj.value = b"no CUDA-capable device is detected"
        return 0

    calls = {"cuInit": lambda _: status, "cuDeviceGetCount": count, "cuGetErrorString": describe}
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace(**calls))


def test_a_driver_that_does_not_start_gives_its_own_message(monkeypatch):
    driver(monkeypatch, status=100)
    assert cuda.driver_devices().endswith("no CUDA-capable device is detected")


@pytest.fixture
def gpu(tmp_path, monkeypatch):
    """The layer on its own simulated driver."""
    path = shutil.copy(driver_folder() / LIBRARY, tmp_path)
    load = ctypes.CDLL
    monkeypatch.setattr(ctypes, "CDLL", lambda _: load(path))
    return cuda.open_gpu()


def test_memory_holds_the_written_bytes(gpu):
    address, other = gpu.allocate(4096), gpu.allocate(4096)
    gpu.write(address, b"\x05" * 4096)
    stream = gpu.new_stream(blocking=False)
    gpu.copy(other, address, 4096, stream)
    gpu.synchronize(stream)
    assert gpu.read(other, 4096) == b"\x05" * 4096
    gpu.free(address)
    with pytest.raises(cuda.CudaError, match="cuMemFree_v2: CUDA_ERROR_INVALID_VALUE"):
        gpu.free(address)


def test_a_spin_lasts_as_long_as_requested(gpu):
    stream, start, end = gpu.new_stream(blocking=False), gpu.event(), gpu.event()
    gpu.record(start, stream)
    gpu.spin(stream, 20_000_000)
    gpu.record(end, stream)
    assert not gpu.is_done(end)
    gpu.synchronize_event(end)
    assert gpu.elapsed_ns(start, end) >= 20_000_000


def test_an_event_orders_another_stream(gpu):
    first, second = gpu.new_stream(blocking=False), gpu.new_stream(blocking=False)
    event, done = gpu.event(), gpu.event()
    gpu.spin(first, 20_000_000)
    gpu.record(event, first)
    gpu.wait_event(second, event)
    gpu.record(done, second)
    gpu.synchronize_event(done)
    assert gpu.is_done(event)


def test_a_wait_for_work_behind_the_gate_opens_it_and_no_other(gpu):
    held, free, done = gpu.new_stream(blocking=False), gpu.new_stream(blocking=False), gpu.event()
    gpu.close_gate(20_000_000_000)
    gpu.spin(held, 1)
    gpu.spin(free, 1)
    gpu.synchronize(free)
    assert gpu.gate() is cuda.Gate.CLOSED
    gpu.record(done, held)
    gpu.wait_event(free, done)
    gpu.synchronize(free)
    assert gpu.gate() is cuda.Gate.WAITED


def test_a_copy_stands_behind_a_gate_for_copies(gpu):
    source, target = gpu.allocate(64), gpu.allocate(64)
    gpu.write(source, b"a" * 64)
    gpu.close_gate(20_000_000_000, copies=True)
    gpu.copy(target, source, 64, gpu.new_stream(blocking=False))
    gpu.write(source, b"b" * 64)
    assert gpu.gate() is cuda.Gate.CLOSED
    gpu.open_gate()
    gpu.synchronize_device()
    assert gpu.read(target, 64) == b"b" * 64


def test_the_gate_opens_by_itself_after_its_limit(gpu):
    stream, done = gpu.new_stream(blocking=False), gpu.event()
    gpu.close_gate(1_000_000)
    gpu.spin(stream, 1)
    gpu.record(done, stream)
    while not gpu.is_done(done):
        pass
    assert gpu.gate() is cuda.Gate.LIMIT
