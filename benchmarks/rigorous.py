"""The rigorous mode of pyperf, a few processes at a time.

``pyperf timeit --rigorous`` runs 40 processes of three values, each a mean over at least 100 ms,
after one process that finds the number of loops. Here the 40 come in batches, so that another
measurement can be made in turns with them; the loops found by the first batch hold for all.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyperf  # type: ignore[import-untyped]

PROCESSES = 40


@dataclass
class Rigorous:
    """One statement under pyperf. ``setup`` runs before each value, as pyperf has it.

    pyperf runs the setup inside the timed function, which makes its names local there. In dlprof
    and in the module of a user they are global, which costs a nanosecond or two for each name in
    the statement, so here they are made global as well.
    """

    setup: str
    statement: str
    values_ns: list[list[float]] = field(default_factory=list)
    loops: int | None = None
    seconds: float = 0.0

    def batch(self, processes: int) -> None:
        """Run some more processes; their wall time is added to ``seconds``."""
        with tempfile.TemporaryDirectory() as folder:
            kept = Path(folder) / "values.json"
            command = [sys.executable, "-m", "pyperf", "timeit", "--quiet", "--copy-env"]
            command += ["--processes", str(processes), "--output", str(kept)]
            if self.loops:
                command += ["--loops", str(self.loops)]
            setup = f"exec({self.setup!r}, globals())"
            begun = time.monotonic()
            done = subprocess.run(
                [*command, "--setup", setup, self.statement],
                check=False,
                capture_output=True,
                text=True,
            )
            self.seconds += time.monotonic() - begun
            if done.returncode:
                raise SystemExit(f"pyperf failed at {self.statement}:\n{done.stdout}{done.stderr}")
            found = pyperf.Benchmark.load(str(kept))
        self.loops = found.get_loops()
        runs = [run.values for run in found.get_runs()]
        self.values_ns += [[1e9 * value for value in run] for run in runs if run]

    def median_ns(self) -> float:
        """Median of all values, as pyperf gives it; the cost of the loop is in it."""
        return statistics.median(value for run in self.values_ns for value in run)


def spread(medians: Sequence[float]) -> float:
    """Half the distance of the quartiles, as a share of the median."""
    if len(medians) < 2:
        return 0.0
    low, middle, high = statistics.quantiles(medians, n=4, method="inclusive")
    return (high - low) / 2 / middle
