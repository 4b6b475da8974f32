"""The CUDA layer and device time on a real device.

The tests establish the truth: lengths of spins by the host's clock and by events, contents of
memory by a write.
"""

import pytest

from dlprof.device.cuda import LEGACY_STREAM, CudaError, CudaUnavailable, open_gpu
from dlprof.worker.instruments import device_time

try:
    GPU = open_gpu()
except CudaUnavailable as reason:
    pytest.skip(str(reason), allow_module_level=True)

MS = 1_000_000
SIZE = 64 * 2**20
STREAMS = ["legacy", "per-thread", "blocking", "non-blocking"]


@pytest.fixture
def gpu():
    yield GPU
    GPU.synchronize_device()


@pytest.fixture(params=STREAMS)
def stream(request):
    if request.param == "legacy":
        return LEGACY_STREAM
    if request.param == "per-thread":
        return 2  # CU_STREAM_PER_THREAD
    return GPU.new_stream(blocking=request.param == "blocking")


@pytest.fixture
def memory(gpu):
    addresses = [gpu.allocate(SIZE), gpu.allocate(SIZE)]
    yield addresses
    for address in addresses:
        gpu.free(address)


class Conversion:
    """A stand-in for a subject: device time uses only ``convert``."""

    def __init__(self, convert):
        self.convert = convert


def test_queueing_a_spin_does_not_wait_for_it(gpu, stream):
    gpu.synchronize_device()
    done = gpu.event()
    gpu.spin(stream, 100 * MS)
    gpu.record(done, stream)
    assert not gpu.is_done(done)
    gpu.synchronize(stream)
    assert gpu.is_done(done)


def test_memory_can_be_reached_in_the_middle(gpu, memory):
    gpu.write(memory[0], b"dlprof")
    gpu.write(memory[0] + 2, b"PR")
    assert gpu.read(memory[0] + 1, 4) == b"lPRo"


@pytest.mark.parametrize("busy", [LEGACY_STREAM, None], ids=["default", "other"])
def test_reading_waits_for_no_other_stream(gpu, memory, busy):
    busy, done = busy or gpu.new_stream(blocking=False), gpu.event()
    gpu.spin(busy, 100 * MS)
    gpu.record(done, busy)
    gpu.read(memory[0], 4)
    assert not gpu.is_done(done)


def test_a_driver_call_that_fails_says_which(gpu):
    with pytest.raises(CudaError, match=r"cuMemFree(_v2)?: CUDA_ERROR_\w+"):
        gpu.free(1)


def test_device_time_of_a_copy_is_that_of_a_memcpy(gpu, memory, stream):
    copy = Conversion(lambda: gpu.copy(memory[1], memory[0], SIZE, stream))
    found = device_time.measure(copy, gpu, stream, 0.0)
    assert found["verdict"] == "ok"
    assert found["warm"]["median_ns"] == pytest.approx(gpu.memcpy_ns(SIZE), rel=0.3)


def test_device_time_of_a_known_spin_is_its_length(gpu, stream):
    spin = Conversion(lambda: gpu.spin(stream, 2 * MS))
    found = device_time.measure(spin, gpu, stream, 0.0)
    assert found["warm"]["median_ns"] == pytest.approx(2 * MS, rel=0.02)


def test_device_time_of_a_view_is_nothing(gpu, memory, stream):
    view = Conversion(lambda: memory[0])
    found = device_time.measure(view, gpu, stream, 0.0)
    assert found["verdict"] == "ok"
    assert abs(found["warm"]["median_ns"]) <= found["resolution_ns"]
    assert abs(found["cold"]["median_ns"]) <= found["resolution_ns"]


def test_device_time_of_a_call_that_waits_is_unknown(gpu, stream):
    waits = Conversion(lambda: gpu.synchronize(stream))
    found = device_time.measure(waits, gpu, stream, 0.0)
    assert (found["verdict"], found["reason"]) == ("unknown", device_time.WAITS)
