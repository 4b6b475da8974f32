"""Does tf.constant(x) copy an array of NumPy once or twice? No dlprof.

First the copy that the array makes of itself is put at chosen places; then fresh processes leave
the place to the allocator. A number behind the name of the script asks for so many of those.
"""

import subprocess
import sys
import time

import numpy
import tensorflow as tf

SIZE = 4 << 20
PROCESSES = 16


class Placed(numpy.ndarray):
    """An array whose copy begins so many bytes behind a multiple of 64."""

    room = numpy.ones(SIZE + 128, numpy.uint8)
    behind = 0

    def copy(self, *_):
        start = -self.room.ctypes.data % 64 + self.behind
        found = self.room[start : start + SIZE].view(self.dtype).reshape(self.shape)
        numpy.copyto(found, numpy.asarray(self), casting="no")
        return found


def low_us(call, calls=400):
    """The tenth percentile."""
    found = []
    for _ in range(calls):
        begin = time.perf_counter_ns()
        result = call()
        found.append(time.perf_counter_ns() - begin)
        del result
    return sorted(found)[calls // 10] / 1e3


x = numpy.arange(SIZE // 4, dtype="float32").reshape(1024, 1024)

if sys.argv[1:] == ["--one"]:
    print(low_us(lambda: tf.constant(x)))
    sys.exit()

print(f"x.copy() {low_us(x.copy):.0f} us")
placed = x.view(Placed)
for behind in (0, 4, 16, 32, 48):
    Placed.behind = behind
    address = numpy.from_dlpack(tf.constant(placed)).ctypes.data
    inside = 0 <= address - Placed.room.ctypes.data < Placed.room.nbytes
    print(
        f"tf.constant(x), x.copy() at 64 k + {behind:2}: {low_us(lambda: tf.constant(placed)):3.0f} us,"
        f" the tensor is {'that copy' if inside else 'a copy of that copy'}"
    )

count = int(sys.argv[1]) if sys.argv[1:] else PROCESSES
command = [sys.executable, __file__, "--one"]
found = sorted(
    float(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
    for _ in range(count)
)
print(f"{count} fresh processes, us:", *(f"{value:.0f}" for value in found))
print(sys.version.split()[0], "numpy", numpy.__version__, "tensorflow", tf.__version__)
