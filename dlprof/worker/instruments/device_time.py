"""Device time: for how long does the device work on a conversion, in the consumer's stream?

Two CUDA events stand around the call, behind a spin kernel, so that there are no launch gaps. The
cost of two events with nothing between them is subtracted. A view then takes 0 within
``resolution_ns``. Proof: the start event has not been passed when the end event has been queued.

Verdicts: ``ok``, ``unknown`` (the consumer's stream is not known, the call waits on the stream, or
the host is too slow). Times are taken with warm and with cold L2 cache.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from dlprof.device.cuda import LONGEST_SPIN_NS, Gpu
from dlprof.worker.subject import Subject

SHORTEST_SPIN_NS = 100_000
HEADROOM, MOST_HEADROOM_NS = 4, 30_000_000
"""The spin lasts this many times as long as the host took to queue everything, and at most so much
longer: calls of 50 ms that wait took 3 s of a run each."""
ATTEMPTS = 3
MIN_SAMPLES = 5
MAX_SAMPLES = 50
MOST_TRIES = 2 * MIN_SAMPLES
EVENT_RESOLUTION_NS = 500.0
"""From the driver's documentation of ``cuEventElapsedTime``."""

WAITS = "the call waits on the stream; device time cannot be separated from the gaps"
SLOW = "the host was slower than the spin kernel, so launch gaps cannot be ruled out"
NO_STREAM = "the consumer does not say which stream it uses"

Call = Callable[[], Any]


class DeviceSample(NamedTuple):
    """One run between two events; ``gapless`` if all was queued before the start event passed."""

    device_ns: float
    host_ns: int
    gapless: bool


@dataclass(frozen=True)
class EventTimer:
    gpu: Gpu
    stream: int
    start: Any
    end: Any

    def run(self, call: Call, spin_ns: int, *, cold: bool) -> DeviceSample:
        """Measure ``call`` once behind a spin kernel; ``cold`` empties the L2 cache first."""
        gpu, stream = self.gpu, self.stream
        if cold:
            gpu.flush_l2(stream)
        else:
            call()
        gpu.synchronize_device()
        began = gpu.host_ns()
        gpu.spin(stream, spin_ns)
        gpu.record(self.start, stream)
        result = call()
        gpu.record(self.end, stream)
        host_ns = gpu.host_ns() - began
        gapless = not gpu.is_done(self.start)
        gpu.synchronize(stream)
        del result  # freed after the measurement: freeing may queue work or wait
        return DeviceSample(gpu.elapsed_ns(self.start, self.end), host_ns, gapless)


def measure(
    subject: Subject, gpu: Gpu, stream_handle: int | None, budget_ns: int
) -> dict[str, Any]:
    """Return the answer; ``stream_handle`` is the consumer's current stream."""
    if stream_handle is None:
        return {"verdict": "unknown", "reason": NO_STREAM}
    timer = EventTimer(gpu, stream_handle, gpu.event(), gpu.event())
    subject.convert()  # the first call may load code, which waits for the device
    gpu.speed_up()
    spin_ns = _outlast(timer, subject.convert)
    if isinstance(spin_ns, str):
        return {"verdict": "unknown", "reason": spin_ns}
    series = _series(timer, subject.convert, spin_ns, budget_ns)
    if min(len(samples) for samples in series.values()) < MIN_SAMPLES:
        return {"verdict": "unknown", "reason": SLOW}
    answer: dict[str, Any] = {"verdict": "ok"}
    spread_ns = 0.0
    for name, samples in series.items():
        empty = [
            timer.run(lambda: None, spin_ns, cold=name == "cold").device_ns
            for _ in range(MIN_SAMPLES)
        ]
        spread_ns = max(spread_ns, max(empty) - min(empty))
        samples_ns = [sample.device_ns - statistics.median(empty) for sample in samples]
        answer[name] = {"median_ns": statistics.median(samples_ns), "samples_ns": samples_ns}
    return answer | {"resolution_ns": max(EVENT_RESOLUTION_NS, spread_ns)}


def _outlast(timer: EventTimer, call: Call) -> int | str:
    """Return the ns of a spin that outlasts the queueing of ``call``, or why none does.

    A call that waits on the stream takes as long as the spin, for every length of it.
    """
    spin_ns = SHORTEST_SPIN_NS
    waited = True
    for _ in range(ATTEMPTS):
        sample = timer.run(call, spin_ns, cold=False)
        if sample.gapless:
            return max(SHORTEST_SPIN_NS, _outlasting_ns(sample.host_ns))
        waited = waited and sample.host_ns >= spin_ns
        spin_ns = _outlasting_ns(max(spin_ns, sample.host_ns))
    return WAITS if waited else SLOW


def _outlasting_ns(host_ns: int) -> int:
    return min(HEADROOM * host_ns, host_ns + MOST_HEADROOM_NS, LONGEST_SPIN_NS)


def _series(
    timer: EventTimer, call: Call, spin_ns: int, budget_ns: int
) -> dict[str, list[DeviceSample]]:
    """Take gapless samples, warm and cold in turn, so that a drift touches both alike."""
    series: dict[str, list[DeviceSample]] = {"warm": [], "cold": []}
    began = timer.gpu.host_ns()
    for number in range(MAX_SAMPLES):
        least = min(map(len, series.values()))
        # A sample with a gap is lost, and another one is taken in its place.
        is_enough = least >= MIN_SAMPLES or number >= MOST_TRIES
        if is_enough and timer.gpu.host_ns() - began > budget_ns:
            break
        for name, samples in series.items():
            sample = timer.run(call, spin_ns, cold=name == "cold")
            if sample.gapless:
                samples.append(sample)
    return series
