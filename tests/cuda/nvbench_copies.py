"""Time copies from device memory to device memory by nvbench, without dlprof.

    python nvbench_copies.py FILE.json BYTES...     (0 bytes: nothing is queued)

A separate program: nvbench keeps registered benchmarks until the process ends.
"""

import sys

import cuda.bench
from cuda.bindings import driver

LONGEST_S = 3.0
LEAST_SAMPLES = 50


def call(name, *arguments):
    status, *results = getattr(driver, name)(*arguments)
    assert int(status) == 0, f"{name}: {status}"
    return results[0] if results else None


def copies(state):
    size = state.get_int64("bytes")
    source, destination = (call("cuMemAlloc", max(size, 1)) for _ in range(2))
    call("cuMemsetD8", source, 7, max(size, 1))
    # The first copy may load code, which would wait for nvbench's blocking kernel.
    call("cuMemcpyDtoD", destination, source, max(size, 1))

    def launch(launched):
        if size:
            stream = launched.get_stream().addressof()
            call("cuMemcpyDtoDAsync", destination, source, size, stream)

    state.add_global_memory_reads(size)
    state.add_global_memory_writes(size)
    state.exec(launch, batched=False)
    for address in (source, destination):
        call("cuMemFree", address)


if __name__ == "__main__":
    output, *sizes = sys.argv[1:]
    benchmark = cuda.bench.register(copies)
    benchmark.add_int64_axis("bytes", [int(size) for size in sizes])
    benchmark.set_min_samples(LEAST_SAMPLES)
    benchmark.set_timeout(LONGEST_S)
    # Discard no sample by the processors' clock: they wait for memory during a copy.
    benchmark.set_throttle_threshold(0.01)
    cuda.bench.run_all_benchmarks([sys.argv[0], "--jsonbin", output])
