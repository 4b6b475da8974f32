"""The simulated driver keeps the promises of CUDA's documentation on streams, events and memory."""

import ctypes
import json
import shutil
import signal
import struct
import subprocess
import sys
from ctypes import byref, c_int, c_size_t, c_uint64, c_void_p

import pytest

from dlprof.simulated.environment import LIBRARY, NVML, driver_folder

NOT_READY, ILLEGAL_ADDRESS, NOT_SUPPORTED, INVALID_HANDLE = 600, 700, 801, 400
NON_BLOCKING = 1
LONG_NS = 50_000_000
SIZE = 1 << 20


class Driver:
    """A separate library, so that no test sees the streams of another."""

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
        assert self.launched(kernel, stream, *map(ctypes.addressof, parameters)) == 0

    def launched(self, kernel, stream, *pointers):
        """Return the status of a launch with its parameters present."""
        array = (c_void_p * len(pointers))(*pointers)
        return self.status("cuLaunchKernel", kernel, 1, 1, 1, 1, 1, 1, 0, stream, array, None)

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


def test_a_non_blocking_stream_is_ordered_with_no_other(driver):
    stream, memory = driver.stream(NON_BLOCKING), driver.memory()
    driver.spin(None)
    driver("cuMemsetD8Async", memory, 1, c_size_t(SIZE), stream)
    driver("cuStreamSynchronize", stream)
    assert not driver.is_done(None)


@pytest.mark.parametrize("legacy", [None, 1])
def test_the_legacy_stream_waits_for_blocking_streams(driver, legacy):
    blocking = driver.stream()
    driver.spin(blocking)
    driver("cuStreamSynchronize", legacy)
    assert driver.is_done(blocking)


@pytest.mark.parametrize("legacy_first", [False, True])
def test_the_legacy_stream_and_blocking_streams_work_one_after_the_other(driver, legacy_first):
    blocking, memory = driver.stream(), driver.memory()
    first, second = (None, blocking) if legacy_first else (blocking, None)
    driver.spin(first)
    driver("cuMemsetD8Async", memory, 1, c_size_t(SIZE), first)
    driver("cuMemsetD8Async", memory, 2, c_size_t(SIZE), second)
    driver("cuCtxSynchronize")
    assert driver.read(memory) == b"\x02"


def test_an_event_is_reached_after_the_work_before_it(driver):
    stream, event = driver.stream(NON_BLOCKING), driver.event()
    assert driver.status("cuEventQuery", event) == 0  # it marks nothing yet
    driver.spin(stream)
    driver("cuEventRecord", event, stream)
    assert driver.status("cuEventQuery", event) == NOT_READY
    driver("cuEventSynchronize", event)
    assert driver.is_done(stream)


def test_a_stream_waits_for_the_place_that_an_event_marks_at_the_call(driver):
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


def test_a_small_copy_from_pageable_memory_has_read_it_when_it_returns(driver):
    size = 1 << 16
    stream, memory = driver.stream(NON_BLOCKING), driver.memory()
    source = ctypes.create_string_buffer(b"\x01" * size, size)
    driver.spin(stream)
    driver("cuMemcpyHtoDAsync", memory, source, c_size_t(size), stream)
    assert not driver.is_done(stream)
    ctypes.memset(source, 2, size)
    assert driver.read(memory, stream=stream) == b"\x01"


def test_a_large_copy_from_pageable_memory_waits_for_its_stream(driver):
    stream, memory, event = driver.stream(NON_BLOCKING), driver.memory(), driver.event()
    driver.spin(stream)
    driver("cuEventRecord", event, stream)
    driver("cuMemcpyHtoDAsync", memory, ctypes.create_string_buffer(SIZE), c_size_t(SIZE), stream)
    assert driver.status("cuEventQuery", event) == 0


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


def attribute(driver, number, address, kind=c_int):
    value = kind()
    status = driver.status("cuPointerGetAttribute", byref(value), number, c_uint64(address))
    return value.value if status == 0 else None


def test_an_address_identifies_its_memory(driver):
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


PTX = b"""
.visible .entry fill(.param .u64 .ptr .global to, .param .align 8 .b8 other[16], .param .u32 count)
.visible .entry cupy_copy__float32_float32(
    .param .align 8 .b8 a[48], .param .align 8 .b8 b[48], .param .align 8 .b8 c[40])
.visible .entry cupy_arange(.param .align 8 .b8 out[32], .param .align 8 .b8 index[24])
"""


def poisoned(driver, address, size=SIZE):
    return driver.library.dlprofSimulatedPoisoned(c_uint64(address), c_size_t(size))


def kernel(driver, name, text=PTX):
    module = driver.new("cuModuleLoadData", text)
    return driver.new("cuModuleGetFunction", module, name)


def poison(driver, memory):
    """Let a kernel write values that are not computed."""
    driver.launch(kernel(driver, b"fill"), None, memory, (c_uint64 * 2)(), c_int(1))


def test_a_kernel_poisons_the_memory_that_its_arguments_point_to(driver):
    first, second, third = driver.memory(), driver.memory(), driver.memory()
    other = (c_uint64 * 2)(0, second.value + 512)
    driver.launch(kernel(driver, b"fill"), None, first, other, c_int(1))
    driver("cuCtxSynchronize")
    found = [poisoned(driver, one.value) for one in (first, second, third)]
    assert found == [1, 1, 0]
    assert not poisoned(driver, second.value, 512)


def test_an_old_address_in_the_index_of_a_cupy_kernel_poisons_nothing(driver):
    memory = driver.memory()
    array, indexer = (c_uint64 * 4)(0, 6, 6, 4), (c_uint64 * 3)(6, 6, memory.value)
    driver.launch(kernel(driver, b"cupy_arange"), None, array, indexer)
    driver("cuCtxSynchronize")
    assert not poisoned(driver, memory.value)
    in_place = (c_uint64 * 3)(memory.value, memory.value, 0)
    driver.launch(kernel(driver, b"cupy_arange"), None, array, in_place)
    driver("cuCtxSynchronize")
    assert poisoned(driver, memory.value)


def test_the_parameters_of_a_kernel_are_read_from_compressed_code(driver):
    head, spaces = PTX.strip(b"\n"), b" " * 30
    # LZ4: head and a space unchanged, 29 more bytes like the previous one, and a last byte.
    extra = len(head) + 1 - 15
    block = bytes([0xFF, *[255] * (extra // 255), extra % 255]) + head + b" "
    block += bytes([1, 0, 29 - 4 - 15, 0x10]) + b"\n"
    whole = len(head + spaces) + 1
    entry = struct.pack("<HHIQ6I3Q", 1, 0, 64, len(block), len(block), *[0] * 5, 0x2000, 0, whole)
    code = struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entry + block)) + entry + block
    offset, size = c_size_t(), c_size_t()
    fill = kernel(driver, b"fill", ctypes.create_string_buffer(code))
    driver("cuFuncGetParamInfo", fill, c_size_t(2), byref(offset), byref(size))
    assert (offset.value, size.value) == (24, 4)


def test_a_variable_of_a_module_has_one_address_and_its_size(driver):
    module = driver.new("cuModuleLoadData", b".global .align 8 .b8 table[24];")
    size = c_size_t()
    address = driver.new("cuModuleGetGlobal", byref(size), module, b"table", kind=c_uint64)
    driver("cuMemcpyHtoD", address, bytes(range(24)), size)
    again = driver.new("cuModuleGetGlobal", None, module, b"table", kind=c_uint64)
    assert driver.read(again, 24) == bytes(range(24))
    assert driver.status("cuModuleGetGlobal", byref(address), None, module, b"other") == 500


def test_poison_follows_copies_and_ends_at_overwritten_bytes(driver):
    source, target = driver.memory(), driver.memory()
    poison(driver, source)
    driver("cuMemcpyDtoDAsync", target, source, c_size_t(SIZE), None)
    driver("cuMemsetD8Async", source, 1, c_size_t(SIZE), None)
    driver("cuCtxSynchronize")
    assert poisoned(driver, target.value)
    assert not poisoned(driver, source.value)


def test_poison_that_reaches_the_host_is_counted(driver):
    memory = driver.memory()
    driver.read(memory)
    assert driver.library.dlprofSimulatedPoisonReads() == 0
    poison(driver, memory)
    driver("cuCtxSynchronize")
    driver.read(memory)
    assert driver.library.dlprofSimulatedPoisonReads() == 1


def test_pinned_memory_keeps_no_poison_for_the_hosts_own_bytes(driver):
    memory, pinned = driver.memory(), driver.new("cuMemHostAlloc", c_size_t(SIZE), 0)
    poison(driver, memory)
    driver("cuMemcpyDtoH", pinned, memory, c_size_t(SIZE))
    driver("cuMemcpyHtoD", memory, pinned, c_size_t(SIZE))
    assert not poisoned(driver, memory.value)


def test_a_copy_kernel_of_cupy_is_recognized_by_its_name(driver):
    source, target = driver.memory(24), driver.memory(24)
    values = (ctypes.c_float * 6)(*range(6))
    driver("cuMemcpyHtoD", source, values, c_size_t(24))

    def array(address, *numbers):
        return (ctypes.c_int64 * 6)(address.value, 6, *numbers)

    arrays = array(source, 3, 2, 4, 12), array(target, 3, 2, 8, 4)  # the transpose of 2 x 3
    index = (ctypes.c_int64 * 5)()
    driver.launch(kernel(driver, b"cupy_copy__float32_float32"), None, *arrays, index)
    driver("cuCtxSynchronize")
    copied = (ctypes.c_float * 6)()
    driver("cuMemcpyDtoH", copied, target, c_size_t(24))
    assert list(copied) == [0, 3, 1, 4, 2, 5]
    assert not poisoned(driver, target.value, 24)


@pytest.fixture
def driver_with(library, tmp_path, monkeypatch):
    """A driver with settings of its own."""

    def make(**named):
        for name, value in named.items():
            monkeypatch.setenv(f"DLPROF_SIMULATED_{name}", str(value))
        number = len(list(tmp_path.glob("*.so")))
        return Driver(shutil.copy(library, tmp_path / f"{number}.so"))

    return make


def test_work_of_one_device_is_refused_on_a_stream_of_another(driver_with):
    driver = driver_with(DEVICES=2)
    stream, event, duration = driver.stream(), driver.event(), c_uint64(1)
    driver("cuCtxSetCurrent", driver.new("cuDevicePrimaryCtxRetain", 1))
    assert driver.status("cuEventRecord", event, driver.stream()) == INVALID_HANDLE
    status = driver.launched(driver.spinning, stream, ctypes.addressof(duration))
    assert status == INVALID_HANDLE
    driver("cuStreamWaitEvent", driver.stream(), event, 0)  # this goes across devices


def is_stale(driver, is_ordered):
    """Whether a reader sees the old value of memory after a write that was queued first."""
    writer, reader = driver.stream(NON_BLOCKING), driver.stream(NON_BLOCKING)
    memory, copied = driver.memory(fill=1), driver.memory(fill=0)
    driver("cuMemsetD8Async", memory, 2, c_size_t(SIZE), writer)
    if is_ordered:
        event = driver.event()
        driver("cuEventRecord", event, writer)
        driver("cuStreamWaitEvent", reader, event, 0)
    driver("cuMemcpyDtoDAsync", copied, memory, c_size_t(SIZE), reader)
    driver("cuCtxSynchronize")
    return driver.read(copied) == b"\x01"


@pytest.mark.parametrize("is_ordered", [True, False])
def test_only_a_path_without_order_races_and_it_always_does(driver_with, is_ordered):
    found = [
        is_stale(driver_with(SEED=seed, DELAY_NS=10_000_000_000), is_ordered) for seed in range(20)
    ]
    assert found == [not is_ordered] * 20


def test_two_devices_copy_to_each_other(driver_with):
    driver = driver_with(DEVICES=2)
    first = driver.memory(fill=9)
    driver("cuCtxSetCurrent", driver.new("cuDevicePrimaryCtxRetain", 1))
    second = driver.memory()
    assert attribute(driver, 9, second.value) == 1
    driver("cuMemcpy", second, first, c_size_t(SIZE))
    driver("cuCtxSynchronize")
    assert driver.read(second) == b"\x09"


IN_A_PROCESS = """
import ctypes, sys
from ctypes import byref, c_int, c_size_t, c_uint64, c_void_p
cuda, context, address = ctypes.CDLL(sys.argv[1]), c_void_p(), c_uint64()
cuda.cuInit(0)
cuda.cuDevicePrimaryCtxRetain(byref(context), 0)
cuda.cuCtxSetCurrent(context)
cuda.cuMemAlloc(byref(address), c_size_t(4096))
"""
SET_AFTER_FREE = """
cuda.cuMemFree(address)
cuda.cuMemsetD8(address, 1, c_size_t(4096))
cuda.cuCtxSynchronize()
"""
COPIED_AFTER_FREE = """
other = c_uint64()
cuda.cuMemAlloc(byref(other), c_size_t(4096))
cuda.cuMemFree(address)
cuda.cuMemcpyDtoD(other, address, c_size_t(4096))
cuda.cuCtxSynchronize()
"""
GIVEN_TO_A_KERNEL = """
kernel, module = c_void_p(), c_void_p()
cuda.cuModuleLoadData(byref(module), b".entry fill(.param .u64 to)")
cuda.cuModuleGetFunction(byref(kernel), module, b"fill")
cuda.cuMemFree(address)
given = (c_void_p * 1)(ctypes.addressof(address))
cuda.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, None, given, None)
"""
READ_BY_THE_HOST = "ctypes.string_at(address.value, 1)"


@pytest.fixture
def report(library, tmp_path, monkeypatch):
    """Run a program; return the driver's report and the exit of the program."""

    def run(program):
        monkeypatch.setenv("DLPROF_SIMULATED_REPORT", str(tmp_path / "report"))
        command = [sys.executable, "-c", IN_A_PROCESS + program, str(library)]
        status = subprocess.run(command, check=False).returncode
        lines = (tmp_path / "report").read_text().splitlines()
        return {line["what"]: line["value"] for line in map(json.loads, lines)}, status

    return run


@pytest.mark.parametrize(
    ("program", "what"),
    [
        (SET_AFTER_FREE, "a memset of memory that is not allocated"),
        (COPIED_AFTER_FREE, "a copy of memory that is not allocated"),
        (GIVEN_TO_A_KERNEL, "freed memory"),
    ],
    ids=["memset", "copy", "kernel"],
)
def test_a_use_after_free_is_reported(report, program, what):
    found, _ = report(program)
    assert [address for words, address in found.items() if what in words] != [0]
    assert any(what in words for words in found)


def test_the_host_cannot_read_device_memory(report):
    found, status = report(READ_BY_THE_HOST)
    assert status == -signal.SIGSEGV
    assert any("host" in words and address for words, address in found.items())


def test_nvml_lists_the_devices(library, monkeypatch):
    monkeypatch.setenv("DLPROF_SIMULATED_DEVICES", "2")
    nvml, count, device = ctypes.CDLL(str(library.with_name(NVML))), c_int(), c_void_p()
    assert nvml.nvmlInit_v2() == 0
    assert nvml.nvmlDeviceGetCount_v2(byref(count)) == 0
    assert count.value == 2
    assert nvml.nvmlDeviceGetHandleByPciBusId_v2(b"0000:02:00.0", byref(device)) == 0
    assert nvml.nvmlDeviceGetIndex(device, byref(count)) == 0
    assert count.value == 1
    assert nvml.nvmlDeviceGetHandleByPciBusId_v2(b"0000:03:00.0", byref(device)) != 0


@pytest.mark.parametrize(("version", "has_status"), [(11030, False), (12000, True)])
def test_a_runtime_before_cuda_12_gets_the_entry_point_with_four_arguments(
    driver, version, has_status
):
    entry, found, status = c_void_p(), c_void_p(), c_int(-1)
    driver("cuGetProcAddress", b"cuGetProcAddress", byref(entry), version, c_uint64(0))
    kinds = (ctypes.c_char_p, c_void_p, c_int, c_uint64, c_void_p)
    call = ctypes.CFUNCTYPE(c_int, *kinds)(entry.value)
    # A runtime that passes four arguments leaves anything where the fifth would be.
    assert call(b"cuInit", ctypes.addressof(found), version, 0, ctypes.addressof(status)) == 0
    assert found.value
    assert (status.value == 0) == has_status


def test_nvml_has_no_fabric_and_says_so_with_success(library):
    """JAX 0.6.0 aborts otherwise."""
    nvml, told = ctypes.CDLL(str(library.with_name(NVML))), (ctypes.c_ubyte * 128)()
    assert nvml.nvmlDeviceGetGpuFabricInfoV(None, byref(told)) == 0


def test_a_kernel_may_have_clusters(driver):
    """cublasCreate fails otherwise."""
    count = c_int()
    driver("cuOccupancyMaxActiveClusters", byref(count), driver.unknown, None)
    assert count.value > 0
