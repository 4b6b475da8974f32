"""The simulated driver keeps what CUDA's documentation promises of streams, events and memory."""

from __future__ import annotations

import ctypes
import json
import shutil
import signal
import subprocess
import sys
from ctypes import byref, c_float, c_int, c_size_t, c_uint64, c_void_p

import pytest

from dlprof.simulated.build import LIBRARY, driver_folder

pytestmark = pytest.mark.unit

NOT_READY, ILLEGAL_ADDRESS, NOT_SUPPORTED = 600, 700, 801
NON_BLOCKING = 1
LONG_NS = 50_000_000
SIZE = 1 << 20


class Driver:
    """A library of its own, so that no test sees another one's streams."""

    def __init__(self, path):
        self.library = ctypes.CDLL(str(path))
        self("cuInit", 0)
        self.context = self.new("cuDevicePrimaryCtxRetain", 0)
        self("cuCtxSetCurrent", self.context)
        self.spinning = self.new("cuModuleGetFunction", None, b"spin")
        self.unknown = self.new("cuModuleGetFunction", None, b"some_kernel")

    def status(self, name, *arguments):
        return getattr(self.library, name)(*arguments)

    def __call__(self, name, *arguments):
        status = self.status(name, *arguments)
        assert status == 0, f"{name}: {status}"

    def new(self, name, *arguments, kind=c_void_p):
        made = kind()
        self(name, byref(made), *arguments)
        return made

    def stream(self, flags=0):
        return self.new("cuStreamCreate", flags)

    def event(self, flags=0):
        return self.new("cuEventCreate", flags)

    def memory(self, size=SIZE, fill=0):
        address = self.new("cuMemAlloc", c_size_t(size), kind=c_uint64)
        self("cuMemsetD8", address, fill, c_size_t(size))
        self("cuCtxSynchronize")
        return address

    def launch(self, kernel, stream, *parameters):
        pointers = (c_void_p * len(parameters))(*(ctypes.addressof(one) for one in parameters))
        self("cuLaunchKernel", kernel, 1, 1, 1, 1, 1, 1, 0, stream, pointers, None)

    def spin(self, stream=None, duration_ns=LONG_NS):
        self.launch(self.spinning, stream, c_uint64(duration_ns))

    def is_done(self, stream=None):
        status = self.status("cuStreamQuery", stream)
        assert status in (0, NOT_READY)
        return status == 0

    def read(self, address, size=1, stream=None):
        buffer = ctypes.create_string_buffer(size)
        own = stream or self.stream(NON_BLOCKING)
        self("cuMemcpyDtoHAsync", buffer, address, c_size_t(size), own)
        return buffer.raw


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """The driver, built from its sources."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield driver_folder() / LIBRARY


@pytest.fixture
def driver(library, tmp_path):
    return Driver(shutil.copy(library, tmp_path))


def test_a_stream_performs_its_work_in_order(driver):
    stream, memory = driver.stream(NON_BLOCKING), driver.memory()
    driver.spin(stream)
    for value in range(1, 4):
        driver("cuMemsetD8Async", memory, value, c_size_t(SIZE), stream)
    assert driver.read(memory, stream=stream) == b"\x03"


def test_a_kernel_returns_before_it_is_done(driver):
    stream = driver.stream(NON_BLOCKING)
    driver.spin(stream)
    assert not driver.is_done(stream)
    driver("cuStreamSynchronize", stream)
    assert driver.is_done(stream)


def test_a_non_blocking_stream_is_ordered_with_no_other(driver):
    stream = driver.stream(NON_BLOCKING)
    driver.spin(None)
    driver("cuStreamSynchronize", stream)
    assert not driver.is_done(None)


@pytest.mark.parametrize("legacy", [None, 1])
def test_the_legacy_stream_waits_for_blocking_streams(driver, legacy):
    blocking = driver.stream()
    driver.spin(blocking)
    driver("cuStreamSynchronize", legacy)
    assert driver.is_done(blocking)


def test_blocking_streams_wait_for_the_legacy_stream(driver):
    blocking, memory = driver.stream(), driver.memory()
    driver.spin(None)
    driver("cuMemsetD8Async", memory, 1, c_size_t(SIZE), None)
    driver("cuMemsetD8Async", memory, 2, c_size_t(SIZE), blocking)
    assert driver.read(memory, stream=blocking) == b"\x02"


def test_the_stream_of_a_thread_is_a_blocking_one(driver):
    stream = c_void_p(2)
    driver.spin(stream)
    driver("cuStreamSynchronize", None)
    assert driver.is_done(stream)


def test_the_device_is_done_when_all_streams_are(driver):
    streams = [driver.stream(NON_BLOCKING) for _ in range(3)]
    for stream in streams:
        driver.spin(stream)
    driver("cuCtxSynchronize")
    assert all(driver.is_done(stream) for stream in streams)


def test_an_event_is_reached_after_the_work_before_it(driver):
    stream, event = driver.stream(NON_BLOCKING), driver.event()
    assert driver.status("cuEventQuery", event) == 0  # it marks nothing yet
    driver.spin(stream)
    driver("cuEventRecord", event, stream)
    assert driver.status("cuEventQuery", event) == NOT_READY
    driver("cuEventSynchronize", event)
    assert driver.is_done(stream)


def test_a_stream_waits_for_the_place_that_an_event_marks_when_it_is_asked(driver):
    first, second, event = driver.stream(NON_BLOCKING), driver.stream(NON_BLOCKING), driver.event()
    driver("cuStreamWaitEvent", second, event, 0)  # nothing is recorded: no wait
    driver.spin(first)
    driver("cuEventRecord", event, first)
    driver("cuStreamSynchronize", second)
    assert not driver.is_done(first)
    driver("cuStreamWaitEvent", second, event, 0)
    driver("cuEventRecord", event, driver.stream(NON_BLOCKING))  # the mark moves, the wait stays
    driver("cuStreamSynchronize", second)
    assert driver.is_done(first)


def test_elapsed_time_is_between_two_marks(driver):
    stream, start, end = driver.stream(NON_BLOCKING), driver.event(), driver.event()
    driver("cuEventRecord", start, stream)
    driver.spin(stream)
    driver("cuEventRecord", end, stream)
    assert driver.status("cuEventElapsedTime", byref(c_float()), start, end) == NOT_READY
    driver("cuEventSynchronize", end)
    time_ms = c_float()
    driver("cuEventElapsedTime", byref(time_ms), start, end)
    assert time_ms.value >= LONG_NS / 1e6


def test_an_event_without_timing_tells_no_time(driver):
    events = [driver.event(2), driver.event(2)]
    for event in events:
        driver("cuEventRecord", event, None)
        driver("cuEventSynchronize", event)
    assert driver.status("cuEventElapsedTime", byref(c_float()), *events) != 0


def test_a_copy_from_pageable_memory_has_read_it_when_it_returns(driver):
    stream, memory = driver.stream(NON_BLOCKING), driver.memory()
    source = ctypes.create_string_buffer(b"\x01" * SIZE, SIZE)
    driver.spin(stream)
    driver("cuMemcpyHtoDAsync", memory, source, c_size_t(SIZE), stream)
    assert not driver.is_done(stream)
    ctypes.memset(source, 2, SIZE)
    assert driver.read(memory, stream=stream) == b"\x01"


def test_a_copy_to_pageable_memory_returns_when_it_is_done(driver):
    stream, memory = driver.stream(NON_BLOCKING), driver.memory(fill=7)
    driver.spin(stream)
    assert driver.read(memory, stream=stream) == b"\x07"
    assert driver.is_done(stream)


def test_a_copy_of_pinned_memory_is_asynchronous(driver):
    stream, memory = driver.stream(NON_BLOCKING), driver.memory()
    pinned = driver.new("cuMemHostAlloc", c_size_t(SIZE), 0)
    ctypes.memset(pinned, 1, SIZE)
    driver.spin(stream)
    driver("cuMemcpyHtoDAsync", memory, pinned, c_size_t(SIZE), stream)
    assert not driver.is_done(stream)
    ctypes.memset(pinned, 2, SIZE)
    assert driver.read(memory, stream=stream) == b"\x02"
    driver.spin(stream)
    driver("cuMemcpyDtoHAsync", pinned, memory, c_size_t(SIZE), stream)
    assert not driver.is_done(stream)


def test_a_copy_on_the_device_does_not_wait(driver):
    source, target = driver.memory(fill=5), driver.memory()
    driver.spin(None)
    driver("cuMemcpyDtoD", target, source, c_size_t(SIZE))
    assert not driver.is_done(None)
    driver("cuCtxSynchronize")
    assert driver.read(target) == b"\x05"


def test_freeing_memory_waits_for_the_device(driver):
    stream, memory = driver.stream(NON_BLOCKING), driver.memory()
    driver.spin(stream)
    driver("cuMemFree", memory)
    assert driver.is_done(stream)


def test_a_host_function_runs_in_the_order_of_its_stream(driver):
    stream, seen = driver.stream(NON_BLOCKING), []
    function = ctypes.CFUNCTYPE(None, c_void_p)(lambda _: seen.append(1))
    driver.spin(stream)
    driver("cuLaunchHostFunc", stream, function, None)
    assert not seen
    driver("cuStreamSynchronize", stream)
    assert seen


def test_an_unknown_kernel_takes_time_and_computes_nothing(driver):
    stream, memory = driver.stream(NON_BLOCKING), driver.memory(fill=3)
    driver.launch(driver.unknown, stream, memory)
    driver("cuStreamSynchronize", stream)
    assert driver.read(memory) == b"\x03"


def attribute(driver, number, address, kind=c_int):
    value = kind()
    status = driver.status("cuPointerGetAttribute", byref(value), number, c_uint64(address))
    return value.value if status == 0 else None


def test_an_address_tells_what_memory_it_is_in(driver):
    memory_type, device, start = 2, 9, 11
    memory = driver.memory().value
    pinned = driver.new("cuMemHostAlloc", c_size_t(SIZE), 0).value
    managed = driver.new("cuMemAllocManaged", c_size_t(SIZE), 1, kind=c_uint64).value
    pageable = ctypes.create_string_buffer(SIZE)
    assert attribute(driver, memory_type, memory + 100) == 2
    assert attribute(driver, start, memory + 100, c_uint64) == memory
    assert attribute(driver, device, memory) == 0
    assert attribute(driver, memory_type, pinned) == 1
    assert attribute(driver, 8, managed) == 1
    assert attribute(driver, memory_type, ctypes.addressof(pageable)) is None
    driver("cuMemFree", c_uint64(memory))
    assert attribute(driver, memory_type, memory) is None


def test_memory_is_used_again_and_counted(driver):
    left = [driver.new("cuMemGetInfo", byref(c_size_t()), kind=c_size_t).value]
    memory = driver.memory()
    left.append(driver.new("cuMemGetInfo", byref(c_size_t()), kind=c_size_t).value)
    driver("cuMemFree", memory)
    left.append(driver.new("cuMemGetInfo", byref(c_size_t()), kind=c_size_t).value)
    assert left == [left[0], left[0] - SIZE, left[0]]
    assert driver.memory().value == memory.value


def test_more_memory_than_there_is_is_refused(driver):
    address = c_uint64()
    assert driver.status("cuMemAlloc", byref(address), c_size_t(1 << 40)) == 2


def test_a_failed_device_stays_failed(driver):
    memory = driver.memory()
    driver("cuMemFree", memory)
    driver("cuMemsetD8Async", memory, 1, c_size_t(SIZE), None)
    assert driver.status("cuCtxSynchronize") == ILLEGAL_ADDRESS
    assert driver.status("cuStreamQuery", None) == ILLEGAL_ADDRESS
    assert driver.status("cuMemAlloc", byref(c_uint64()), c_size_t(SIZE)) == ILLEGAL_ADDRESS


def test_a_function_that_has_no_meaning_here_is_there_and_refuses(driver):
    assert driver.status("cuMemPoolCreate", None, None) == NOT_SUPPORTED
    found, status = c_void_p(), c_int()
    driver(
        "cuGetProcAddress_v2", b"cuMemPoolCreate", byref(found), 13000, c_uint64(0), byref(status)
    )
    assert found.value
    assert status.value == 0


def test_two_devices_copy_to_each_other(library, tmp_path, monkeypatch):
    monkeypatch.setenv("DLPROF_SIMULATED_DEVICES", "2")
    driver = Driver(shutil.copy(library, tmp_path))
    first = driver.memory(fill=9)
    driver("cuCtxSetCurrent", driver.new("cuDevicePrimaryCtxRetain", 1))
    second = driver.memory()
    assert attribute(driver, 9, second.value) == 1
    driver("cuMemcpy", second, first, c_size_t(SIZE))
    driver("cuCtxSynchronize")
    assert driver.read(second) == b"\x09"


IN_A_PROCESS = """
import ctypes, sys
from ctypes import byref, c_size_t, c_uint64, c_void_p
cuda, context, address = ctypes.CDLL(sys.argv[1]), c_void_p(), c_uint64()
cuda.cuInit(0)
cuda.cuDevicePrimaryCtxRetain(byref(context), 0)
cuda.cuCtxSetCurrent(context)
cuda.cuMemAlloc(byref(address), c_size_t(4096))
if len(sys.argv) > 2:
    ctypes.string_at(address.value, 1)
"""


def test_what_is_left_is_reported_at_the_end(library, tmp_path, monkeypatch):
    monkeypatch.setenv("DLPROF_SIMULATED_REPORT", str(tmp_path / "report"))
    command = [sys.executable, "-c", IN_A_PROCESS, str(library)]
    subprocess.run(command, check=True)
    lines = [json.loads(line) for line in (tmp_path / "report").read_text().splitlines()]
    assert {"what": "device memory that was not freed, in bytes", "value": 4096} in lines


def test_the_host_cannot_read_device_memory(library):
    command = [sys.executable, "-c", IN_A_PROCESS, str(library), "read"]
    assert subprocess.run(command, check=False).returncode == -signal.SIGSEGV
