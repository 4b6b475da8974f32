"""CUDA for instruments: streams, events, a spin kernel, and memory by address.

A thin layer over ``cuda-core`` (0.5 and newer), and over ``cuda.bindings.driver`` for names that
changed between its versions. It works in the device's
primary context, as frameworks do. Streams are plain handles (int): 0 and 1 are the legacy default
stream, 2 is the per-thread default stream.

Only the standard library is imported before :func:`open_gpu` is called.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import statistics
import time
from typing import Any

LEGACY_STREAM = 1
PER_THREAD_STREAM = 2

LONGEST_SPIN_NS = 2_000_000_000

# For the host to queue a copy and two events before the device gets to them.
_HEAD_START_NS = 200_000
_COPIES = 9
_SPEED_UP_NS = 200_000_000

# An iteration takes many clocks of 0.4 ns or more. So one iteration per nanosecond never cuts a
# spin short, and ends it if the timer stands still.
_SPIN_SOURCE = r"""
extern "C" __global__ void spin(unsigned long long duration_ns)
{
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    for (unsigned long long i = 0; i < duration_ns; ++i) {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
        if (now - start >= duration_ns) return;
    }
}
"""


class CudaUnavailable(Exception):
    """CUDA cannot be used here; the message says why in one sentence."""


class CudaError(Exception):
    """A driver call failed; the message holds the call's error name."""


class Gpu:
    """The first CUDA device in its primary context, which is made current on the calling thread.

    Calls that take a ``stream`` only queue work on it. All times are in ns. The tests' simulated
    device has the same methods.
    """

    def __init__(self) -> None:
        self._core = importlib.import_module("cuda.core")
        self._driver = importlib.import_module("cuda.bindings.driver")
        self._device = self._core.Device(0)
        self._device.set_current()
        self.uuid = str(self._device.uuid)
        self._streams: dict[int, Any] = {}
        self._flush_address = 0
        self._is_fast = False
        self._private = self.new_stream(blocking=False)
        self._events = (self.event(), self.event())
        major, minor = self._device.compute_capability
        options = self._core.ProgramOptions(std="c++17", arch=f"sm_{major}{minor}")
        program = self._core.Program(_SPIN_SOURCE, code_type="c++", options=options)
        self._spin = program.compile("cubin").get_kernel("spin")
        # The first launch loads the kernel's code and may wait for the device.
        self.spin(self._private, 1)
        self.synchronize(self._private)

    def host_ns(self) -> int:
        """The host's clock; a simulated device has its own."""
        return time.perf_counter_ns()

    def new_stream(self, *, blocking: bool) -> int:
        """Make a stream; a blocking one is ordered with the legacy default stream."""
        options = self._core.StreamOptions(nonblocking=not blocking)
        stream = self._device.create_stream(options=options)
        handle = int(stream.handle)
        self._streams[handle] = stream  # its owner: a stream that is collected is destroyed
        return handle

    def spin(self, stream: int, duration_ns: int) -> None:
        """Queue a kernel that runs this long and always ends by itself.

        Raises ValueError beyond :data:`LONGEST_SPIN_NS`.
        """
        if not 0 <= duration_ns <= LONGEST_SPIN_NS:
            raise ValueError(f"a spin lasts 0 to {LONGEST_SPIN_NS} ns, not {duration_ns}")
        handle = _handle(stream)
        if handle not in self._streams:
            self._streams[handle] = self._core.Stream.from_handle(handle)
        config = self._core.LaunchConfig(grid=1, block=1)
        duration = ctypes.c_uint64(int(duration_ns))
        self._core.launch(self._streams[handle], config, self._spin, duration)

    def event(self) -> Any:
        # By the driver, because cuda-core renamed the option that asks for timing.
        return self._call("cuEventCreate", 0)

    def record(self, event: Any, stream: int) -> None:
        self._call("cuEventRecord", event, _handle(stream))

    def is_done(self, event: Any) -> bool:
        """Say, without waiting, whether the work before a recorded event has been done."""
        (status,) = self._driver.cuEventQuery(event)
        if status == self._driver.CUresult.CUDA_ERROR_NOT_READY:
            return False
        _check("cuEventQuery", status)
        return True

    def elapsed_ns(self, start: Any, end: Any) -> float:
        """The time between two events that have been done."""
        return float(self._call("cuEventElapsedTime", start, end)) * 1e6

    def wait_event(self, stream: int, event: Any) -> None:
        """Let what is queued on the stream from now on run after the event."""
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
        """The address of new device memory; the driver may wait for the device."""
        return int(self._call("cuMemAlloc", size_bytes))

    def free(self, address: int) -> None:
        self._call("cuMemFree", address)

    def read(self, address: int, size_bytes: int) -> bytes:
        """What device memory holds now; waits for no other stream."""
        buffer = ctypes.create_string_buffer(size_bytes)
        place = ctypes.addressof(buffer)
        self._call("cuMemcpyDtoHAsync", place, address, size_bytes, self._private)
        self.synchronize(self._private)
        return buffer.raw

    def write(self, address: int, data: bytes) -> None:
        """Overwrite device memory now; returns when it is done, waits for no other stream."""
        buffer = ctypes.create_string_buffer(data, len(data))
        place = ctypes.addressof(buffer)
        self._call("cuMemcpyHtoDAsync", address, place, len(data), self._private)
        self.synchronize(self._private)

    def copy(self, destination: int, source: int, size_bytes: int, stream: int) -> None:
        self._call("cuMemcpyDtoDAsync", destination, source, size_bytes, _handle(stream))

    def flush_l2(self, stream: int) -> None:
        """Queue a memset twice as large as the L2 cache, which drives everything else out."""
        size_bytes = 2 * int(self._device.properties.l2_cache_size)
        if not self._flush_address:
            self._flush_address = self.allocate(size_bytes)
        self._call("cuMemsetD8Async", self._flush_address, 0, size_bytes, _handle(stream))

    def memcpy_ns(self, size_bytes: int) -> float:
        """Measure a copy of this size from device memory to device memory on an idle device."""
        source, destination = self.allocate(size_bytes), self.allocate(size_bytes)
        try:
            self.copy(destination, source, size_bytes, self._private)  # touches both
            self._speed_up(destination, source, size_bytes)
            taken = [self._copy_ns(destination, source, size_bytes) for _ in range(_COPIES)]
            gapless = [time_ns for time_ns in taken if time_ns is not None]
            if len(gapless) <= _COPIES // 2:
                raise CudaError("the host was slower than the spin before the copies")
            return statistics.median(gapless)
        finally:
            self.free(source)
            self.free(destination)

    def _speed_up(self, destination: int, source: int, size_bytes: int) -> None:
        """Keep the device busy once until its clocks are high: at rest they are low."""
        if self._is_fast:
            return
        end_ns = time.perf_counter_ns() + _SPEED_UP_NS
        while time.perf_counter_ns() < end_ns:
            for _ in range(_COPIES):
                self.copy(destination, source, size_bytes, self._private)
            self.synchronize(self._private)
        self._is_fast = True

    def _copy_ns(self, destination: int, source: int, size_bytes: int) -> float | None:
        """None where the device was done with the spin before all had been queued."""
        start, end = self._events
        self.synchronize_device()
        self.spin(self._private, _HEAD_START_NS)
        self.record(start, self._private)
        self.copy(destination, source, size_bytes, self._private)
        self.record(end, self._private)
        gapless = not self.is_done(start)
        self.synchronize(self._private)
        return self.elapsed_ns(start, end) if gapless else None

    def _call(self, name: str, *arguments: Any) -> Any:
        """Call a driver function; its one result, a tuple of several, or None."""
        status, *results = getattr(self._driver, name)(*arguments)
        _check(name, status)
        return tuple(results) if len(results) > 1 else results[0] if results else None


def open_gpu() -> Gpu:
    """Open the device, once per process; raises :class:`CudaUnavailable` with the reason."""
    opened = _opened()
    if isinstance(opened, CudaUnavailable):
        raise CudaUnavailable(*opened.args)
    return opened


@functools.cache
def _opened() -> Gpu | CudaUnavailable:
    """The device, or why it cannot be used: that is not tried for each case."""
    devices = driver_devices()
    if isinstance(devices, str):
        return CudaUnavailable(devices)
    try:
        return Gpu()
    except ImportError as error:
        return CudaUnavailable(_missing(error, driver_version() // 1000))
    except Exception as error:  # noqa: BLE001 - cuda-core, its bindings and NVRTC have their own
        words = " ".join(str(error).split()) or type(error).__name__
        return CudaUnavailable(f"cuda-core cannot use the CUDA device: {words}")


def driver_devices() -> int | str:
    """The number of CUDA devices by the driver alone, or the reason why there is none.

    Starts the driver in this process: a child by ``fork`` without ``exec`` cannot use CUDA then.
    """
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "there is no CUDA driver: libcuda.so.1 cannot be loaded"
    status = driver.cuInit(0)
    count = ctypes.c_int(0)
    status = status or driver.cuDeviceGetCount(ctypes.byref(count))
    if status:
        return f"the CUDA driver does not start: {_error_string(driver, status)}"
    return count.value or "the CUDA driver finds no device"


def driver_version() -> int:
    """The CUDA version that the driver supports, such as 12080 for 12.8; 0 if it does not say."""
    version = ctypes.c_int(0)
    try:
        ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(version))
    except (OSError, AttributeError):
        return 0
    return version.value


def _missing(error: ImportError, major: int) -> str:
    """What to install: the bare package ``cuda-core`` comes without bindings."""
    extra = "cu12" if 0 < major < 13 else "cu13"  # noqa: PLR2004 - versions of CUDA
    missing = (error.name or "").partition(".")[0]
    if isinstance(error, ModuleNotFoundError) and missing in ("", "cuda"):
        return f'cuda-core is not installed with its bindings: pip install "cuda-core[{extra}]"'
    words = " ".join(str(error).split())
    return f'cuda-core cannot be imported: {words}: pip install "cuda-core[{extra}]"'


def _handle(stream: int | None) -> int:
    # Where per-thread default streams are switched on, 0 would mean the other default stream.
    return stream or LEGACY_STREAM


def _check(name: str, status: Any) -> None:
    if int(status) != 0:
        raise CudaError(f"{name}: {getattr(status, 'name', status)}")


def _error_string(driver: Any, status: int) -> str:
    words = ctypes.c_char_p()
    driver.cuGetErrorString(status, ctypes.byref(words))
    return words.value.decode() if words.value else f"error {status}"
