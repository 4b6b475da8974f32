"""Ground truth of a device, from the driver and ``%globaltimer`` alone, without dlprof.

Imported by tests that compare with it, only on machines with a device.
"""

import ctypes
import importlib

from cuda.bindings import driver

LEGACY, PER_THREAD = 1, 2

# One thread writes its time.
_STAMP = r"""
extern "C" __global__ void stamp(unsigned long long *out)
{
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    *out = now;
}
"""
_WORD = 8


def call(name, *arguments):
    """Call a driver function. Return its one result, or None."""
    status, *results = getattr(driver, name)(*arguments)
    assert int(status) == 0, f"{name}: {status}"
    return results[0] if results else None


def streams():
    """Return a stream of each kind, as handles."""
    return {
        "legacy": LEGACY,
        "per-thread": PER_THREAD,
        "blocking": int(call("cuStreamCreate", 0)),
        "non-blocking": int(call("cuStreamCreate", 1)),
    }


class Stamps:
    """Times of ``%globaltimer`` between pieces of work on one stream; needs a current context."""

    def __init__(self):
        self._core = _cuda_core()
        device = self._core.Device()
        major, minor = device.compute_capability
        options = self._core.ProgramOptions(std="c++17", arch=f"sm_{major}{minor}")
        program = self._core.Program(_STAMP, code_type="c++", options=options)
        self._kernel = program.compile("cubin").get_kernel("stamp")
        self._place = int(call("cuMemAlloc", 2 * _WORD))
        self.between(LEGACY, lambda: None)  # the first launch loads the kernel

    def between(self, stream, work):
        """Return the device time of ``work()``, queued between two stamps, in ns."""
        self._stamp(stream, 0)
        work()
        self._stamp(stream, 1)
        call("cuStreamSynchronize", stream)
        found = (ctypes.c_uint64 * 2)()
        call("cuMemcpyDtoH", ctypes.addressof(found), self._place, 2 * _WORD)
        return found[1] - found[0]

    def _stamp(self, stream, number):
        place = ctypes.c_uint64(self._place + number * _WORD)
        config = self._core.LaunchConfig(grid=1, block=1)
        self._core.launch(self._core.Stream.from_handle(stream), config, self._kernel, place)


def _cuda_core():
    core = importlib.import_module("cuda.core")
    return core if hasattr(core, "Device") else importlib.import_module("cuda.core.experimental")
