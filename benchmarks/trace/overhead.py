"""What tracing costs: a recorded conversion, a call that passes through, and a training loop.

Each time is the smallest of many: other programs only add to it. Run it on a quiet machine.

    python benchmarks/trace/overhead.py
"""

from __future__ import annotations

import platform
import subprocess
import sys
import tempfile
import time
import timeit
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dlprof.tracer.arrays import HEADS
from dlprof.tracer.install import Installed
from dlprof.tracer.place import Places
from dlprof.tracer.rows import Rows
from dlprof.tracer.state import Tracer
from dlprof.tracer.wrappers import Builtin

CALLS, REPEATS, LOOPS = 1_000, 200, 4
GOAL_RECORDED_NS, GOAL_PASSED_NS, GOAL_LOOP_PERCENT = 1200, 100, 3.0
LOOP = """\
import time
import numpy as np
import torch

torch.manual_seed(0)
torch.set_num_threads(1)
rng = np.random.default_rng(0)
data = [(rng.random((64, 784), dtype="float32"), rng.integers(0, 10, 64)) for _ in range(100)]
model = torch.nn.Sequential(torch.nn.Linear(784, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
best = float("inf")
for epoch in range(8):
    began = time.perf_counter()
    for x, y in data:
        loss = torch.nn.functional.cross_entropy(model(torch.from_numpy(x)), torch.from_numpy(y))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss.detach().numpy()
    best = min(best, time.perf_counter() - began)
print(best)
"""

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
    return min(timeit.repeat(call, number=CALLS, repeat=REPEATS)) / CALLS * 1e9


def empty(original: Callable[..., Any]) -> Callable[..., Any]:
    """A wrapper that does nothing, in the form that a function in C needs."""

    def traced(source: Any, /, *_: Any, **__: Any) -> Any:
        return original(source)

    return Builtin(traced)


def least(original: Callable[..., Any]) -> Callable[..., Any]:
    """A wrapper that only asks what a row needs of each call, and decides nothing."""
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


def loop_s(*start: str) -> float:
    """The best epoch of the training loop in one process."""
    path = Path(tempfile.gettempdir(), "dlprof-trace-loop.py")
    path.write_text(LOOP, encoding="utf-8")
    command = [sys.executable, *start, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout)


def main() -> None:
    print(f"Python {platform.python_version()}, NumPy {np.__version__}, torch {torch.__version__}")
    plain = {call: best_ns(call) for call in (*RECORDED, *PASSED)}
    installed = Installed(Tracer(Places(("benchmarks",)), Rows(None)))
    installed.start()
    traced = {call: best_ns(call) for call in (*RECORDED, *PASSED)}
    installed.stop()
    for calls, goal in ((RECORDED, GOAL_RECORDED_NS), (PASSED, GOAL_PASSED_NS)):
        for call in calls:
            cost = traced[call] - plain[call]
            print(f"{call.__name__:<18}{plain[call]:8.0f} ns  {cost:+8.0f} ns  (goal {goal} ns)")
    torch.from_numpy, np.asarray = least(FROM_NUMPY), empty(ASARRAY)
    floor = best_ns(from_numpy) - plain[from_numpy], best_ns(passed) - plain[passed]
    torch.from_numpy, np.asarray = FROM_NUMPY, ASARRAY
    print(f"the least wrapper of torch.from_numpy takes {floor[0]:.0f} ns")
    print(f"an empty wrapper of numpy.asarray takes {floor[1]:.0f} ns")
    began = time.perf_counter()
    pairs = [(loop_s(), loop_s("-m", "dlprof", "trace")) for _ in range(LOOPS)]
    plain_s, traced_s = map(min, zip(*pairs, strict=True))
    share = 100 * (traced_s / plain_s - 1)
    print(
        f"training loop     {plain_s * 1e3:8.0f} ms  {share:+8.1f} %  (goal {GOAL_LOOP_PERCENT} %)"
    )
    print(f"took {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
