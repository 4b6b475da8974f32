"""Device time against PyTorch's own events: known spins, explicit copies, and views.

Truth is ``torch.cuda.Event`` around the same work, behind cycles of ``torch.cuda._sleep`` that
cover the time in which the host queues it.
"""

from __future__ import annotations

import statistics

import pytest

from dlprof.device.cuda import PER_THREAD_STREAM, CudaUnavailable, open_gpu
from dlprof.worker.instruments import device_time

pytestmark = pytest.mark.cuda

try:
    GPU = open_gpu()
except CudaUnavailable as reason:
    pytest.skip(str(reason), allow_module_level=True)

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("this PyTorch has no CUDA", allow_module_level=True)

AHEAD_CYCLES = 2_000_000
"""About a millisecond."""
REPEATS = 30
BUDGET_S = 0.3
KINDS = ("legacy", "per-thread", "non-blocking")


class Conversion:
    """Stands for a subject: device time looks at nothing but ``convert``."""

    def __init__(self, convert):
        self.convert = convert


@pytest.fixture(params=KINDS)
def stream(request):
    """A stream of PyTorch, which is its current one meanwhile."""
    make = {
        "legacy": torch.cuda.default_stream,  # no external one: PyTorch takes odd handles for its own
        "per-thread": lambda: torch.cuda.ExternalStream(PER_THREAD_STREAM),
        "non-blocking": torch.cuda.Stream,
    }
    found = make[request.param]()
    with torch.cuda.stream(found):
        yield found
    torch.cuda.synchronize()


def events_ns(work, stream):
    """What PyTorch's events say of ``work()``, less what they say of nothing."""
    return _events_ns(work, stream) - _events_ns(lambda: None, stream)


def _events_ns(work, stream):
    samples = []
    work()
    for _ in range(REPEATS):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        torch.cuda._sleep(AHEAD_CYCLES)
        start.record(stream)
        result = work()
        end.record(stream)
        torch.cuda.synchronize()
        del result
        samples.append(start.elapsed_time(end) * 1e6)
    return statistics.median(samples)


def test_device_time_of_cycles_is_what_torchs_events_say(stream):
    def sleep():
        torch.cuda._sleep(4 * AHEAD_CYCLES)

    truth = events_ns(sleep, stream)
    found = device_time.measure(Conversion(sleep), GPU, stream.cuda_stream, BUDGET_S)
    assert found["warm"]["median_ns"] == pytest.approx(truth, rel=0.03)


@pytest.mark.parametrize("mib", [64, 256, 1024])
def test_device_time_of_an_explicit_copy_is_what_torchs_events_say(stream, mib):
    source = torch.rand(mib << 18, device="cuda")
    truth = events_ns(source.clone, stream)
    found = device_time.measure(Conversion(source.clone), GPU, stream.cuda_stream, BUDGET_S)
    assert found["verdict"] == "ok"
    assert found["warm"]["median_ns"] == pytest.approx(truth, rel=0.03)


def _views(source):
    """Conversions that copy nothing, as their frameworks document; those that are installed."""
    yield "torch", lambda: torch.from_dlpack(source)
    for name, convert in (
        ("cupy", lambda cupy: cupy.from_dlpack(source)),
        ("numba.cuda", lambda cuda: cuda.as_cuda_array(source)),
    ):
        try:
            module = __import__(name, fromlist=["_"])
        except ImportError:
            continue
        yield name, lambda convert=convert, module=module: convert(module)


@pytest.mark.parametrize("name", ["torch", "cupy", "numba.cuda"])
def test_device_time_of_a_view_is_nothing_within_the_resolution(name):
    source = torch.rand(64 << 18, device="cuda")
    views = dict(_views(source))
    if name not in views:
        pytest.skip(f"{name} is not installed")
    found = device_time.measure(
        Conversion(views[name]), GPU, torch.cuda.default_stream().cuda_stream, BUDGET_S
    )
    assert found["verdict"] == "ok"
    for cache in ("warm", "cold"):
        assert abs(found[cache]["median_ns"]) <= found["resolution_ns"]
