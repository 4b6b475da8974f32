"""Compare dlprof's median host times, and its speed, with pyperf's.

Proves that, on at least 11 of 12 CPU paths between 0.2 us and 30 ms, dlprof's median host time is
within 3 % of the one of pyperf's rigorous mode (40 processes of three values), while dlprof takes
at most a fifth of pyperf's time. Both measure the same setup and statement, in turns in one run, so
that a drift of the machine affects both alike.

It needs a quiet machine: a value of pyperf is a mean over 100 ms, which holds every time that
another program takes the processor, while most of dlprof's samples of 1 ms hold none.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from dataclasses import dataclass, field
from pathlib import Path

import outcome
import pyperf  # type: ignore[import-untyped]
from outcome import duration_text

TURNS, PROCESSES = 8, 40
WITHIN = 0.03
NUMPY = "import numpy\nx = numpy.ones({}, 'float32')"
TORCH = "import torch\nx = torch.ones({})"
ALIGNED = (
    "import numpy, jax\nr = numpy.zeros(65536 * 4 + 64, 'uint8')\no = -r.ctypes.data % 64\n"
    "x = r[o:o + 65536 * 4].view('float32').reshape(256, 256)"
)

# Left out are copies of 100 KiB to a few MiB, and larger ones into pages of 4 KiB: their time
# depends on what else the process has allocated and on where its pages are, so that a process may
# take twice as long as the next under either program. NumPy asks for huge pages.
PATHS = (
    (NUMPY.format((16, 16)), "numpy.array(x)"),
    (f"import torch\n{NUMPY.format((4096, 4096))}", "torch.from_numpy(x)"),
    (TORCH.format((4096, 4096)), "x.numpy()"),
    (f"import torch\n{NUMPY.format((4096, 4096))}", "torch.from_dlpack(x)"),
    (
        f"import onnxruntime\n{NUMPY.format((4096, 4096))}",
        "onnxruntime.OrtValue.ortvalue_from_numpy(x)",
    ),
    (f"import numpy\n{TORCH.format((4096, 4096))}", "numpy.from_dlpack(x)"),
    (
        "import numpy, jax.numpy as jnp\nx = jnp.ones((256, 256)).block_until_ready()",
        "numpy.from_dlpack(x)",
    ),
    (
        f"import tensorflow as tf\n{TORCH.format((4096, 4096))}",
        "tf.experimental.dlpack.from_dlpack(x.__dlpack__())",
    ),
    (f"import tensorflow as tf\n{NUMPY.format((16, 16))}", "tf.constant(x)"),
    (ALIGNED, "jax.dlpack.from_dlpack(x)"),
    ("import tensorflow as tf\nx = tf.ones((4096, 4096))", "x.numpy()"),
    (f"import numpy\n{TORCH.format((8192, 4096))}", "numpy.array(x)"),
)


@dataclass
class Rivals:
    """Times of one statement under both programs: a list per process, in ns."""

    setup: str
    statement: str
    dlprof_ns: list[list[float]] = field(default_factory=list)
    pyperf_ns: list[list[float]] = field(default_factory=list)
    dlprof_s: float = 0.0
    pyperf_s: float = 0.0
    loops: int | None = None

    def turn(self, processes: int) -> None:
        words = ("time", "-s", self.setup, self.statement, "--no-diagnose", "--rounds", "1")
        found, seconds = outcome.session(*words)
        (result,) = found["results"]
        self.dlprof_ns += [one["samples_ns"] for one in result["host_time"]["processes"]]
        self.dlprof_s += seconds
        self.pyperf(processes)

    def pyperf(self, processes: int) -> None:
        """Some more processes; the number of loops that the first ones found holds for all.

        pyperf runs the setup inside the timed function, which makes its names local there. In a
        user's module they are global, which costs a nanosecond or two for each name, so here they
        are made global as well.
        """
        with tempfile.TemporaryDirectory() as folder:
            kept = Path(folder) / "values.json"
            command = [sys.executable, "-m", "pyperf", "timeit", "--quiet", "--copy-env"]
            command += ["--processes", str(processes), "--output", str(kept)]
            command += ["--loops", str(self.loops)] if self.loops else []
            setup = f"exec({self.setup!r}, globals())"
            begun = time.monotonic()
            subprocess.run(
                [*command, "--setup", setup, self.statement], check=True, capture_output=True
            )
            self.pyperf_s += time.monotonic() - begun
            found = pyperf.Benchmark.load(str(kept))
        self.loops = found.get_loops()
        runs = [run.values for run in found.get_runs()]
        self.pyperf_ns += [[1e9 * value for value in run] for run in runs if run]


def measure(given: Namespace) -> outcome.Outcome:
    rivals = [Rivals(*path) for path in PATHS if given.path in path[1]]
    empty = Rivals("", "pass")
    processes = given.processes or (4 if given.short else PROCESSES)
    turns = given.turns or (2 if given.short else TURNS)
    for turn in range(turns):
        outcome.tell(f"turn {turn + 1} of {turns}")
        share = len(range(turn, processes, turns))
        empty.pyperf(share)
        for one in rivals:
            one.turn(share)
    empty_ns = median_ns(empty.pyperf_ns)
    close = sum(abs(ratio(one, empty_ns) - 1) <= WITHIN for one in rivals)
    needed = len(rivals) - len(rivals) // 12
    dlprof_s, pyperf_s = (
        sum(one.dlprof_s for one in rivals),
        sum(one.pyperf_s for one in rivals),
    )
    return outcome.Outcome(
        title="Accuracy: dlprof against pyperf's rigorous mode",
        columns=("statement", "dlprof", "pyperf", "difference", "+/- dlprof", "+/- pyperf"),
        rows=[row(one, empty_ns) for one in rivals],
        caption=(
            f"Medians. dlprof: {turns} processes, {dlprof_s:.0f} s. pyperf: {processes} processes "
            f"of 3 values each, {pyperf_s:.0f} s.\npyperf leaves the cost of its loop in; a loop "
            f"over 'pass' took it {empty_ns:.2f} ns, which is taken off here.\n+/- is half the "
            "distance of the quartiles of the processes."
        ),
        targets=[
            outcome.Target(
                f"median host time within {WITHIN:.0%} of pyperf's on {needed} of {len(rivals)}",
                f"{close} of {len(rivals)}",
                close >= needed,
            ),
            outcome.Target(
                "dlprof takes at most a fifth of pyperf's time",
                f"{dlprof_s / pyperf_s:.1%}",
                5 * dlprof_s <= pyperf_s,
            ),
        ],
        shortened=processes < PROCESSES or len(rivals) < len(PATHS),
        details={one.statement: [one.dlprof_ns, one.pyperf_ns] for one in rivals},
    )


def median_ns(processes: list[list[float]]) -> float:
    return statistics.median(statistics.median(values) for values in processes)


def ratio(one: Rivals, empty_ns: float) -> float:
    return median_ns(one.dlprof_ns) / (median_ns(one.pyperf_ns) - empty_ns)


def row(one: Rivals, empty_ns: float) -> tuple[str, ...]:
    return (
        one.statement,
        duration_text(median_ns(one.dlprof_ns)),
        duration_text(median_ns(one.pyperf_ns) - empty_ns),
        f"{ratio(one, empty_ns) - 1:+.1%}",
        f"{spread(one.dlprof_ns):.1%}",
        f"{spread(one.pyperf_ns):.1%}",
    )


def spread(processes: list[list[float]]) -> float:
    """Half the distance of the quartiles of the processes, as a share of the median."""
    medians = [statistics.median(values) for values in processes]
    if len(medians) < 2:
        return 0.0
    low, middle, high = statistics.quantiles(medians, n=4, method="inclusive")
    return (high - low) / 2 / middle


if __name__ == "__main__":
    parser = outcome.options(__doc__)
    parser.add_argument("--turns", type=int, help=f"processes of dlprof; default: {TURNS}")
    parser.add_argument("--processes", type=int, help=f"of pyperf; default: {PROCESSES}")
    parser.add_argument("--path", default="", help="only statements that contain this")
    sys.exit(outcome.report(measure, parser.parse_args()))
