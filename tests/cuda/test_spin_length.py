"""The spin kernel takes the given time by the device's own timer, and always ends.

Truth is ``%globaltimer``, read by a kernel of this folder before and after the spin.
"""

import subprocess
import sys

import pytest

from dlprof.device.cuda import LONGEST_SPIN_NS, CudaUnavailable, open_gpu

try:
    GPU = open_gpu()
except CudaUnavailable as reason:
    pytest.skip(str(reason), allow_module_level=True)

import device_truth

MS = 1_000_000
KINDS = ("legacy", "per-thread", "blocking", "non-blocking")
LEFT_ALONE = """
import sys
from dlprof.device.cuda import LEGACY_STREAM, LONGEST_SPIN_NS, open_gpu
gpu = open_gpu()
streams = [LEGACY_STREAM, 2] + [gpu.new_stream(blocking=b) for b in (True, False)]
for stream in streams:
    gpu.spin(stream, LONGEST_SPIN_NS // 4)
print("queued", flush=True)
"""


@pytest.fixture(scope="module")
def stamps():
    return device_truth.Stamps()


@pytest.fixture(scope="module")
def streams():
    return device_truth.streams()


@pytest.fixture(params=KINDS)
def stream(request, streams):
    yield streams[request.param]
    GPU.synchronize_device()


def spun_ns(stamps, stream, duration_ns):
    return stamps.between(stream, lambda: GPU.spin(stream, duration_ns))


@pytest.mark.parametrize("duration_ns", [5 * MS, 50 * MS, 500 * MS])
def test_by_the_devices_timer_a_spin_lasts_as_told_within_two_percent(stamps, stream, duration_ns):
    assert spun_ns(stamps, stream, duration_ns) == pytest.approx(duration_ns, rel=0.02)


def test_a_spin_is_never_shorter_than_it_was_told(stamps, stream):
    assert min(spun_ns(stamps, stream, MS) for _ in range(20)) >= MS


def test_the_longest_spin_ends_by_itself(stamps, stream):
    assert spun_ns(stamps, stream, LONGEST_SPIN_NS) == pytest.approx(LONGEST_SPIN_NS, rel=0.02)


def test_spins_of_all_streams_end_with_a_process_that_waits_for_none():
    command = [sys.executable, "-c", LEFT_ALONE]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "queued\n"), done.stderr
