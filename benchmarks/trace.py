"""What tracing costs: a recorded conversion, a call that passes through, and a training loop.

Each time is the smallest of many: other programs only add to it. Run it on a quiet machine.

    python benchmarks/trace.py
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

import numpy as np
import torch

from dlprof.tracer.install import Installed
from dlprof.tracer.place import Places
from dlprof.tracer.rows import Rows
from dlprof.tracer.state import Tracer

CALLS, REPEATS = 1_000, 200
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


def loop_s(*start: str) -> float:
    """The best epoch of the training loop, of three processes."""
    path = Path(tempfile.gettempdir(), "dlprof-trace-loop.py")
    path.write_text(LOOP, encoding="utf-8")
    times = []
    for _ in range(2):
        command = [sys.executable, *start, str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        times.append(float(done.stdout))
    return min(times)


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
    began = time.perf_counter()
    plain_s, traced_s = loop_s(), loop_s("-m", "dlprof", "trace")
    share = 100 * (traced_s / plain_s - 1)
    print(
        f"training loop     {plain_s * 1e3:8.0f} ms  {share:+8.1f} %  (goal {GOAL_LOOP_PERCENT} %)"
    )
    print(f"took {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
