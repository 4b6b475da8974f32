"""CUDA for instruments: streams, events, a spin kernel, and memory by address.

A thin layer over the driver, ``libcuda.so.1``, through :mod:`ctypes`: it needs no package. It works
in the device's primary context, as frameworks do. Streams are plain handles (int): 0 and 1 are the
legacy default stream, 2 is the per-thread default stream.
"""

from __future__ import annotations

import ctypes
import functools
import os
import statistics
import time
import uuid
from ctypes import byref, c_float, c_int, c_size_t, c_uint64, c_void_p
from enum import Enum
from typing import Any

LEGACY_STREAM = 1

SIMULATED_DEVICES = "DLPROF_SIMULATED_DEVICES"
"""The driver's own variable: a process that has it runs on the simulated driver."""
DEVICE_FILE = "/dev/nvidia0"
SIMULATED_UUID = b"dlprof-simulate"
"""Begins the identity of a simulated device; the last byte is the device's number."""

LONGEST_SPIN_NS = 2_000_000_000

# For the host to queue a copy and two events before the device gets to them.
_HEAD_START_NS = 200_000
_COPIES = 9
_SPEED_UP_NS = 200_000_000
_SPEED_UP_BYTES = 16 << 20

_NON_BLOCKING = 1
_L2_CACHE_SIZE = 38  # CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE
_ORDINAL = 9  # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
_NOT_READY = 600

# Text for the driver's own compiler, made by NVRTC 12.9 in an old version of the language that all
# drivers read. The kernel reads the timer until the time is over. An iteration takes more than a
# nanosecond. So a limit of one iteration per nanosecond never cuts a spin short, and ends it if the
# timer stands still.
_SPIN_PTX = rb"""
.version 6.0
.target sm_52
.address_size 64

.visible .entry spin(.param .u64 duration_ns)
{
    .reg .pred %p<5>;
    .reg .b64 %rd<10>;

    ld.param.u64 %rd4, [duration_ns];
    mov.u64 %rd5, %globaltimer;
    setp.eq.s64 %p1, %rd4, 0;
    @%p1 bra END;
    mov.u64 %rd9, 0;
AGAIN:
    mov.u64 %rd7, %globaltimer;
    sub.s64 %rd8, %rd7, %rd5;
    setp.lt.u64 %p2, %rd8, %rd4;
    add.s64 %rd9, %rd9, 1;
    setp.lt.u64 %p3, %rd9, %rd4;
    and.pred %p4, %p2, %p3;
    @%p4 bra AGAIN;
END:
    ret;
}
"""


class CudaUnavailable(Exception):
    """CUDA cannot be used here; the message says why in one sentence."""


class CudaError(Exception):
    """A driver call failed; the message holds the call's error name."""


class Gate(Enum):
    """The gate of a simulated device, which holds up a kernel and all that depends on it.

    ``WAITED`` is open because the thread that closed it waited for work behind it, ``LIMIT``
    because its time was over.
    """

    OPEN, ARMED, CLOSED, WAITED, LIMIT = range(5)


class Gpu:
    """A CUDA device in its primary context. Each call leaves the thread's current device alone.

    Calls that take a ``stream`` only queue work on it. All times are in ns. The tests' simulated
    device has the same methods.
    """

    def __init__(self, ordinal: int = 0) -> None:
        self.ordinal = ordinal
        self._driver = ctypes.CDLL("libcuda.so.1")
        self._check("cuInit", self._driver.cuInit(0))
        device, identity = c_int(ordinal), (ctypes.c_char * 16)()
        self._check("cuDeviceGetUuid", self._driver.cuDeviceGetUuid(identity, device))
        self.uuid = str(uuid.UUID(bytes=identity.raw))
        self.is_simulated = identity.raw.startswith(SIMULATED_UUID)
        self._context = c_void_p()
        status = self._driver.cuDevicePrimaryCtxRetain(byref(self._context), device)
        self._check("cuDevicePrimaryCtxRetain", status)
        size_bytes = c_int()
        self._call("cuDeviceGetAttribute", byref(size_bytes), _L2_CACHE_SIZE, device)
        # A simulated device reports a real one's cache size, and has no cache to flush.
        self._l2_bytes = 1 if self.is_simulated else size_bytes.value
        self._flush_address = 0
        self._is_fast = False
        self._private = self.new_stream(blocking=False)
        self._events = (self.event(), self.event())
        module, self._spin = c_void_p(), c_void_p()
        self._call("cuModuleLoadData", byref(module), ctypes.c_char_p(_SPIN_PTX))
        self._call("cuModuleGetFunction", byref(self._spin), module, b"spin")
        # The first launch loads the kernel's code and may wait for the device.
        self.spin(self._private, 1)
        self.synchronize(self._private)

    def at(self, ordinal: int) -> Gpu:
        """Return the device of this number."""
        return self if ordinal == self.ordinal else open_gpu(ordinal)

    def host_ns(self) -> int:
        """The host's clock; a simulated device has its own."""
        return time.perf_counter_ns()

    def new_stream(self, *, blocking: bool) -> int:
        """Make a stream; a blocking one is ordered with the legacy default stream."""
        stream = c_void_p()
        self._call("cuStreamCreate", byref(stream), 0 if blocking else _NON_BLOCKING)
        return stream.value or 0

    def spin(self, stream: int, duration_ns: int) -> None:
        """Queue a kernel that runs this long and always ends by itself."""
        duration = c_uint64(int(duration_ns))
        parameters = (c_void_p * 1)(ctypes.addressof(duration))
        grid_and_block = (1, 1, 1, 1, 1, 1)
        self._call(
            "cuLaunchKernel", self._spin, *grid_and_block, 0, _handle(stream), parameters, None
        )

    def event(self) -> Any:
        event = c_void_p()
        self._call("cuEventCreate", byref(event), 0)
        return event

    def record(self, event: Any, stream: int) -> None:
        self._call("cuEventRecord", event, _handle(stream))

    def is_done(self, event: Any) -> bool:
        """Whether the work before a recorded event has been done, without waiting."""
        status = self._status("cuEventQuery", event)
        if status != _NOT_READY:
            self._check("cuEventQuery", status)
        return bool(status == 0)

    def elapsed_ns(self, start: Any, end: Any) -> float:
        """Return the time between two events that have been done."""
        time_ms = c_float()
        self._call("cuEventElapsedTime", byref(time_ms), start, end)
        return time_ms.value * 1e6

    def wait_event(self, stream: int, event: Any) -> None:
        """Make later work on the stream wait for the event."""
        self._call("cuStreamWaitEvent", _handle(stream), event, 0)

    def synchronize_event(self, event: Any) -> None:
        """Wait on the host until the work before a recorded event has been done."""
        self._call("cuEventSynchronize", event)

    def synchronize(self, stream: int) -> None:
        """Wait on the host until the stream's work has been done."""
        self._call("cuStreamSynchronize", _handle(stream))

    def synchronize_device(self) -> None:
        self._call("cuCtxSynchronize")

    def allocate(self, size_bytes: int) -> int:
        """Return the address of new device memory; the driver may wait for the device."""
        address = c_uint64()
        self._call("cuMemAlloc_v2", byref(address), c_size_t(size_bytes))
        return address.value

    def free(self, address: int) -> None:
        self._call("cuMemFree_v2", c_uint64(address))

    def read(self, address: int, size_bytes: int) -> bytes:
        """Return what device memory holds now; wait for no other stream."""
        buffer = ctypes.create_string_buffer(size_bytes)
        self._copy("cuMemcpyDtoHAsync_v2", buffer, c_uint64(address), size_bytes, self._private)
        self.synchronize(self._private)
        return buffer.raw

    def write(self, address: int, data: bytes, stream: int | None = None) -> None:
        """Overwrite device memory and wait until it is done.

        It waits for the work of ``stream``, or without one for no stream.
        """
        stream = self._private if stream is None else stream
        buffer = ctypes.create_string_buffer(data, len(data))
        self._copy("cuMemcpyHtoDAsync_v2", c_uint64(address), buffer, len(data), stream)
        self.synchronize(stream)

    def close_gate(self, limit_ns: int, *, copies: bool = False) -> None:
        """Hold up the next kernel, or also copy, on a simulated device, at most so long."""
        self._driver.dlprofSimulatedArm(c_uint64(limit_ns), copies)

    def gate(self) -> Gate:
        return Gate(self._driver.dlprofSimulatedGate())

    def open_gate(self) -> None:
        self._driver.dlprofSimulatedOpen()

    def crossed_bytes(self) -> tuple[int, int]:
        """Return how much a simulated device has copied to devices, and to the host."""
        crossed = self._driver.dlprofSimulatedCrossed
        crossed.restype = c_uint64
        return crossed(0), crossed(1)

    def uncomputed_reads(self) -> int:
        """Count the copies to the host that read what a simulated device did not compute."""
        return int(self._driver.dlprofSimulatedPoisonReads()) if self.is_simulated else 0

    def misuse(self) -> str:
        """Return the last misuse of a simulated device since the call before; empty for none."""
        if not self.is_simulated:
            return ""
        self._driver.dlprofSimulatedReport.restype = ctypes.c_char_p
        return (self._driver.dlprofSimulatedReport() or b"").decode()

    def copy(self, destination: int, source: int, size_bytes: int, stream: int) -> None:
        ends = c_uint64(destination), c_uint64(source)
        self._copy("cuMemcpyDtoDAsync_v2", *ends, size_bytes, stream)

    def _copy(self, name: str, to: Any, source: Any, size_bytes: int, stream: int) -> None:
        self._call(name, to, source, c_size_t(size_bytes), _handle(stream))

    def flush_l2(self, stream: int) -> None:
        """Queue a memset twice as large as the L2 cache, so that nothing else stays in it."""
        size_bytes = 2 * self._l2_bytes
        if not self._flush_address:
            self._flush_address = self.allocate(size_bytes)
        target = c_uint64(self._flush_address)
        self._call("cuMemsetD8Async", target, 0, c_size_t(size_bytes), _handle(stream))

    def memcpy_ns(self, size_bytes: int) -> float:
        """Measure a copy of this size from device memory to device memory on an idle device."""
        source, destination = self.allocate(size_bytes), self.allocate(size_bytes)
        try:
            self.copy(destination, source, size_bytes, self._private)  # touches both
            self.speed_up()
            times_ns = [self._copy_ns(destination, source, size_bytes) for _ in range(_COPIES)]
            gapless = [time_ns for time_ns in times_ns if time_ns is not None]
            if len(gapless) <= _COPIES // 2:
                raise CudaError("the host was slower than the spin before the copies")
            return statistics.median(gapless)
        finally:
            self.free(source)
            self.free(destination)

    def speed_up(self) -> None:
        """Keep the device busy once until its clocks are high: at rest they are low."""
        if self._is_fast or self.is_simulated:
            return
        source, destination = self.allocate(_SPEED_UP_BYTES), self.allocate(_SPEED_UP_BYTES)
        end_ns = time.perf_counter_ns() + _SPEED_UP_NS
        while time.perf_counter_ns() < end_ns:
            for _ in range(_COPIES):
                self.copy(destination, source, _SPEED_UP_BYTES, self._private)
            self.synchronize(self._private)
        self.free(source)
        self.free(destination)
        self._is_fast = True

    def _copy_ns(self, destination: int, source: int, size_bytes: int) -> float | None:
        """Time one copy; None if the device was done with the spin before all had been queued."""
        start, end = self._events
        self.synchronize_device()
        self.spin(self._private, _HEAD_START_NS)
        self.record(start, self._private)
        self.copy(destination, source, size_bytes, self._private)
        self.record(end, self._private)
        gapless = not self.is_done(start)
        self.synchronize(self._private)
        return self.elapsed_ns(start, end) if gapless else None

    def _call(self, name: str, *arguments: Any) -> None:
        """Call a driver function on this device. Raises :class:`CudaError`."""
        self._check(name, self._status(name, *arguments))

    def _status(self, name: str, *arguments: Any) -> int:
        self._driver.cuCtxPushCurrent_v2(self._context)
        status: int = getattr(self._driver, name)(*arguments)
        self._driver.cuCtxPopCurrent_v2(byref(c_void_p()))
        return status

    def _check(self, name: str, status: int) -> None:
        if status:
            words = ctypes.c_char_p()
            self._driver.cuGetErrorName(status, byref(words))
            raise CudaError(f"{name}: {(words.value or str(status).encode()).decode()}")


@functools.cache
def open_gpu(ordinal: int = 0) -> Gpu:
    """Open a device, once per process; raises :class:`CudaUnavailable` with the reason."""
    devices = driver_devices()
    if isinstance(devices, str):
        raise CudaUnavailable(devices)
    try:
        return Gpu(ordinal)
    except (CudaError, AttributeError) as error:  # the driver lacks a function
        raise CudaUnavailable(f"the CUDA device cannot be used: {error}") from None


def admit_jax() -> None:
    """Let JAX find a device file: it looks for one before it asks the driver.

    The place is ``has_visible_nvidia_gpu`` of ``jax/_src/hardware_utils.py``, seen in JAX 0.10.2.
    """
    exists = os.path.exists
    if SIMULATED_DEVICES in os.environ:
        os.path.exists = lambda path: path == DEVICE_FILE or exists(path)


def device_ordinal(address: int | None) -> int:
    """Return the number of the device that memory belongs to; 0 if the driver does not say."""
    ordinal = c_int()
    try:
        driver = ctypes.CDLL("libcuda.so.1")
        status = driver.cuPointerGetAttribute(byref(ordinal), _ORDINAL, c_uint64(address or 0))
    except OSError:
        return 0
    return ordinal.value if status == 0 and address else 0


def driver_devices() -> int | str:
    """Return the number of CUDA devices by the driver alone, or why there is none.

    This starts the driver: afterwards, a child by ``fork`` without ``exec`` cannot use CUDA.
    """
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "there is no CUDA driver: libcuda.so.1 cannot be loaded"
    status = driver.cuInit(0)
    count = ctypes.c_int(0)
    status = status or driver.cuDeviceGetCount(ctypes.byref(count))
    if status:
        words = ctypes.c_char_p()
        driver.cuGetErrorString(status, ctypes.byref(words))
        why = words.value.decode() if words.value else f"error {status}"
        return f"the CUDA driver does not start: {why}"
    return count.value or "the CUDA driver finds no device"


def is_simulated() -> bool:
    """Whether the first device of a driver that has devices is a simulated one."""
    identity = (ctypes.c_char * 16)()
    status = ctypes.CDLL("libcuda.so.1").cuDeviceGetUuid(identity, 0)
    return bool(status == 0) and identity.raw.startswith(SIMULATED_UUID)


def _handle(stream: int | None) -> c_void_p:
    # Where per-thread default streams are switched on, 0 would mean the other default stream.
    return c_void_p(stream or LEGACY_STREAM)
