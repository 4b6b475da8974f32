"""Does tf.constant(x) take longer because its result lies in small pages? No dlprof.

Fresh processes leave it to the allocator where the result lies; every second one is told to ask for
huge pages (glibc.malloc.hugetlb=1). The kernel tells the pages of memory only to root, on Linux. A
number behind the name of the script asks for so many processes.
"""

import os
import struct
import subprocess
import sys
import time
from pathlib import Path

import numpy

SIZE = 4 << 20
PAGE = 4096
HUGE = 1 << 22  # KPF_THP in linux/kernel-page-flags.h
PROCESSES = 16


def huge_share(address):
    """The share of an array's pages that are parts of huge ones."""
    found = []
    itself = Path("/proc/self/pagemap")
    with itself.open("rb") as places, Path("/proc/kpageflags").open("rb") as flags:
        for page in range(address // PAGE, (address + SIZE) // PAGE):
            places.seek(page * 8)
            place = struct.unpack("Q", places.read(8))[0]
            if not place >> 63:
                continue
            flags.seek((place & ((1 << 55) - 1)) * 8)
            found.append(bool(struct.unpack("Q", flags.read(8))[0] & HUGE))
    return sum(found) / max(len(found), 1)


def low_us(call, calls=400):
    """The tenth percentile."""
    found = []
    for _ in range(calls):
        begin = time.perf_counter_ns()
        result = call()
        found.append(time.perf_counter_ns() - begin)
        del result
    return sorted(found)[calls // 10] / 1e3


if sys.argv[1:] == ["--one"]:
    import tensorflow as tf

    x = numpy.arange(SIZE // 4, dtype="float32").reshape(1024, 1024)
    y = numpy.empty_like(x)
    copying = low_us(lambda: numpy.copyto(y, x))
    taken = low_us(lambda: tf.constant(x))
    result = tf.constant(x)
    share = huge_share(numpy.from_dlpack(result).ctypes.data)
    print(
        f"{taken:.0f} us, {share:4.0%} of the result in huge pages; a copy of NumPy {copying:.0f} us"
    )
    sys.exit()

count = int(sys.argv[1]) if sys.argv[1:] else PROCESSES
for number in range(count):
    asked = number % 2
    tunables = {"GLIBC_TUNABLES": f"glibc.malloc.hugetlb={asked}"}
    command = [sys.executable, __file__, "--one"]
    said = subprocess.run(
        command, env={**os.environ, **tunables}, capture_output=True, check=True, text=True
    )
    print(f"{'asked for huge pages: ' if asked else 'as it is:             '}{said.stdout.strip()}")
print(sys.version.split()[0], "numpy", numpy.__version__)
