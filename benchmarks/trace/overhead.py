"""Measure the cost of tracing: a recorded conversion, a call that passes through, a training loop.

Times are processor times of this process. The time of a call is the smallest of many: other
programs only add to it. An epoch of the loop is compared with its neighbours, one with and one
without the tracer. Run it on a quiet machine.

    python benchmarks/trace/overhead.py
"""

from __future__ import annotations

import platform
import statistics
import sys
import tempfile
import time
import timeit
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from dlprof.tracer.arrays import HEADS
from dlprof.tracer.calls import Builtin, Tracer
from dlprof.tracer.install import Installed
from dlprof.tracer.place import Places
from dlprof.tracer.rows import Rows

CALLS, REPEATS = 300, 20
TURNS, PAIRS = 12, 40
"""Measure with and without the tracer in turns: the machine may be slow for a while."""
GOAL_RECORDED_NS, GOAL_PASSED_NS, GOAL_LOOP_PERCENT = 2000, 150, 3.0
FROM_NUMPY, ASARRAY = torch.from_numpy, np.asarray
X, T, Y = np.zeros((16, 16), "float32"), torch.zeros(4, 4), np.zeros(3)


def from_numpy() -> None:
    torch.from_numpy(X)


def to_numpy() -> None:
    T.numpy()


def asarray() -> None:
    np.asarray(T)


def copied() -> None:
    torch.tensor(Y)


def passed() -> None:
    np.asarray(Y)


RECORDED = (from_numpy, to_numpy, asarray, copied)
PASSED = (passed,)


def best_ns(call: Callable[[], None]) -> float:
    return (
        min(timeit.repeat(call, timer=time.process_time, number=CALLS, repeat=REPEATS))
        / CALLS
        * 1e9
    )


def empty(original: Callable[..., Any]) -> Callable[..., Any]:
    """A wrapper that does nothing."""

    def traced(source: Any, /, *_: Any, **__: Any) -> Any:
        return original(source)

    return Builtin(traced)


def least(original: Callable[..., Any]) -> Callable[..., Any]:
    """A wrapper that only collects what a row needs of each call."""
    numbers = [0.0, 0]

    def traced(source: Any, /, *_: Any, **__: Any) -> Any:
        frame = sys._getframe(1)  # noqa: SLF001 - CPython's own way
        place = id(frame.f_code) + frame.f_lasti
        began = time.perf_counter()
        result = original(source)
        numbers[0] += time.perf_counter() - began
        known = source.dtype, source.shape, HEADS[id(source) >> 3], result.data_ptr()
        numbers[1] += place is not None and known is not None
        return result

    return Builtin(traced)


def training_loop() -> Callable[[], tuple[float, float]]:
    """Run one epoch of a small network on NumPy arrays.

    Return its time and that of a conversion, in s.
    The work between two conversions empties the processor's caches.
    """
    torch.manual_seed(0)
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    data = [(rng.random((64, 784), "float32"), rng.integers(0, 10, 64)) for _ in range(100)]
    layers = torch.nn.Linear(784, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10)
    model = torch.nn.Sequential(*layers)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    loss_of = torch.nn.functional.cross_entropy

    def epoch() -> tuple[float, float]:
        converting, began = 0.0, time.process_time()
        for x, y in data:
            begin = time.process_time()
            x_tensor, y_tensor = torch.from_numpy(x), torch.from_numpy(y)
            converting += time.process_time() - begin
            loss = loss_of(model(x_tensor), y_tensor)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            detached = loss.detach()
            begin = time.process_time()
            detached.numpy()
            converting += time.process_time() - begin
        return time.process_time() - began, converting / (3 * len(data))

    return epoch


def main() -> None:
    print(f"Python {platform.python_version()}, NumPy {np.__version__}, torch {torch.__version__}")
    began, epoch = time.perf_counter(), training_loop()
    epoch()
    plain: dict[Any, list[Any]] = defaultdict(list)
    traced: dict[Any, list[Any]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        tracer = Tracer(Places(("benchmarks",)), Rows(folder))
        for found in turns(tracer, TURNS, plain, traced):
            for call in (*RECORDED, *PASSED):
                found[call].append(best_ns(call))
        for found in turns(tracer, PAIRS, plain, traced):
            epoch()  # fills caches and meets each place once
            found[epoch].append(epoch())
    for calls, goal in ((RECORDED, GOAL_RECORDED_NS), (PASSED, GOAL_PASSED_NS)):
        for call in calls:
            alone, cost = min(plain[call]), min(traced[call]) - min(plain[call])
            print(f"{call.__name__:<18}{alone:8.0f} ns  {cost:+8.0f} ns  (goal {goal} ns)")
    torch.from_numpy, np.asarray = least(FROM_NUMPY), empty(ASARRAY)
    floor = [min(best_ns(call) for _ in range(TURNS)) for call in (from_numpy, passed)]
    torch.from_numpy, np.asarray = FROM_NUMPY, ASARRAY
    print(f"the least wrapper of torch.from_numpy takes {floor[0] - min(plain[from_numpy]):.0f} ns")
    print(f"an empty wrapper of numpy.asarray takes {floor[1] - min(plain[passed]):.0f} ns")
    view_s, traced_view_s = (min(view for _, view in found[epoch]) for found in (plain, traced))
    cost = (traced_view_s - view_s) * 1e9
    print(f"a view in a loop  {view_s * 1e9:8.0f} ns  {cost:+8.0f} ns")
    pairs = zip(plain[epoch], traced[epoch], strict=True)
    shares = [100 * (traced_s / plain_s - 1) for (plain_s, _), (traced_s, _) in pairs]
    low, middle, high = statistics.quantiles(shares, n=4)
    print(
        f"training loop, {PAIRS} pairs of epochs: {middle:+.1f} %, half of them {low:+.1f} to"
        f" {high:+.1f} %  (goal {GOAL_LOOP_PERCENT} %)"
    )
    print(f"took {time.perf_counter() - began:.0f} s")


def turns(
    tracer: Tracer, count: int, plain: dict[Any, Any], traced: dict[Any, Any]
) -> Iterator[dict[Any, Any]]:
    """Measure without the tracer and with it, in turns."""
    for _ in range(count):
        yield plain
        installed = Installed(tracer)
        installed.start()
        yield traced
        installed.stop()


if __name__ == "__main__":
    main()
