"""Does dlprof's own memory grow with the sweep?

Proves that the process that the user starts stays under 300 MB and does not grow with the number of
cases: 10,000 cases of a fake framework against 100 of them. What counts is the peak of its resident
memory, to its very end, report included and workers not. The samples are cut short, which the
parent does not see.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from pathlib import Path

import outcome

LIMIT_MB, GROWTH_MB = 300.0, 30.0
PATHS = 10
DTYPES = (
    *("float32", "float64", "int8", "int16", "int32"),
    *("int64", "uint8", "uint16", "uint32", "uint64"),
)
PROBE = """
from dlprof.probes.base import CPU, Export, Import, Probe, Protocol

CODES = ("numpy.asarray({x})", "{x}.view()", "{x}[...]", "numpy.atleast_1d({x})", "{x}.real",
         "numpy.array({x})", "{x}.copy()", "{x}.astype({x}.dtype)", "{x} + 0", "+{x}")

class Fake(Probe):
    name = "fake"
    module = "numpy"
    distributions = ("numpy",)
    setup = "import numpy"
    devices = CPU
    exports = (Export("array", Protocol.NUMPY, "{x}"),)
    imports = tuple(
        Import(f"way_{at}", (Protocol.NUMPY,), code) for at, code in enumerate(CODES)
    )

    def create(self, spec):
        return f"x = numpy.zeros({spec.shape}, dtype='{spec.dtype}')"

    def pointer(self, array):
        return int(array.__array_interface__["data"][0])

    def to_numpy(self, array):
        return array.copy()

    def use(self, device):
        return "{x} + 1"
"""
# The peak is read at the end of the process itself: nothing can come after it. Not
# getrusage(), whose peak begins with that of the process that started this one.
CHILD = """
import sys
from dlprof import cli
kept = sys.argv.pop(1)
try:
    cli.main()
finally:
    with open("/proc/self/status") as status, open(kept, "w") as file:
        file.write(next(line.split()[1] for line in status if line.startswith("VmHWM")))
"""


def measure(given: Namespace) -> outcome.Outcome:
    many = given.cases or (1000 if given.short else 10_000)
    few_mb, few_s = _run(100)
    many_mb, many_s = _run(many)
    growth = many_mb - few_mb
    return outcome.Outcome(
        title="Memory: the parent process over a long sweep",
        columns=("cases", "peak MB", "seconds", "ms per case"),
        rows=[_row(100, few_mb, few_s), _row(many, many_mb, many_s)],
        caption=(
            "Peak resident memory of the process that the user starts, workers not included "
            f"(1 MB = 1e6 bytes).\nGrowth: {growth:+.1f} MB, {1e6 * growth / (many - 100):+.0f} "
            "bytes per case."
        ),
        targets=[
            outcome.Target(f"under {LIMIT_MB:g} MB", f"{many_mb:.1f} MB", many_mb < LIMIT_MB),
            outcome.Target(
                f"does not grow with the sweep (by less than {GROWTH_MB:g} MB)",
                f"{growth:+.1f} MB from 100 to {many:,} cases",
                growth < GROWTH_MB,
            ),
        ],
        shortened=many < 10_000,
        details={"peak_mb": [few_mb, many_mb], "seconds": [few_s, many_s]},
    )


def _run(cases: int) -> tuple[float, float]:
    """Peak MB of the parent and seconds of a sweep over so many cases."""
    outcome.tell(f"{cases} cases")
    dtypes = DTYPES if cases >= PATHS * len(DTYPES) else DTYPES[:1]
    shapes = [str(1 + number) for number in range(max(cases // (PATHS * len(dtypes)), 1))]
    with tempfile.TemporaryDirectory() as folder:
        kept, probe = Path(folder) / "peak", Path(folder) / "fake.py"
        probe.write_text(PROBE, encoding="utf-8")
        words = ["run", "fake", "fake", "--probe", str(probe), "--quick", "--sample-ms", "1"]
        words += ["--shape", ",".join(shapes), "--dtype", ",".join(dtypes)]
        begun = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-c", CHILD, str(kept), *words],
            check=False,
            env={**os.environ, "XDG_STATE_HOME": folder},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if done.returncode:
            raise SystemExit(f"the sweep failed:\n{done.stdout[-2000:]}")
        return int(kept.read_text()) * 1024 / 1e6, time.monotonic() - begun


def _row(cases: int, peak_mb: float, seconds: float) -> tuple[str, ...]:
    return f"{cases:,}", f"{peak_mb:.1f}", f"{seconds:.1f}", f"{1000 * seconds / cases:.1f}"


if __name__ == "__main__":
    parser = outcome.options(__doc__)
    parser.add_argument("--cases", type=int, help="of the long sweep; default: 10000")
    sys.exit(outcome.report(measure, parser.parse_args()))
