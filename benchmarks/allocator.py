"""How far apart are fresh processes of one copy, with the system's allocator and a steady one?

The allocators alternate, a few processes each, so that both meet the same machine. The spread is
the largest over the smallest median of a process.

    python benchmarks/allocator.py --json allocator.json
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import outcome

ALLOCATORS = ("system", "steady")
TIMES, AT_ONCE = 4, 3
"""So often each allocator has its turn, with so many processes: twelve in all."""
SCENARIO = """
title = "Copies"
question = "How far apart are processes?"
pairs = [
    "jax->numpy", "jax->torch", "numpy->jax", "numpy->tf", "numpy->torch", "tf->jax", "tf->numpy",
    "tf->torch", "torch->jax", "torch->numpy",
]
paths = [
    "jnp.array(x)", "numpy.array(x)", "numpy.from_dlpack(x, copy=True)", "tf.constant(x)",
    "torch.tensor(x)",
]
devices = ["cpu"]
shapes = ["1024x1024"]
together = true
diagnose = false
"""


def measure(given: argparse.Namespace) -> outcome.Outcome:
    found: dict[str, dict[str, list[dict[str, Any]]]] = {}
    turns = 1 if given.short else TIMES
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "copies.toml"
        file.write_text(SCENARIO, encoding="utf-8")
        for turn in range(turns):
            for allocator in ALLOCATORS:
                outcome.tell(f"{turn + 1} of {turns}: {allocator}")
                how = ("--allocator", allocator, "--rounds", str(AT_ONCE), "--seed", str(turn))
                session, _ = outcome.session("sweep", str(file), *how)
                for result in session["results"]:
                    name = f"`{result['case']['code']}` of {result['case']['producer']}"
                    name += f" → {result['case']['consumer']}"
                    times = [result[which] or {} for which in ("ready_time", "host_time")]
                    # One that has nothing to wait for has processes of its host time only.
                    for one in next(filter(None, (time.get("processes") for time in times)), []):
                        found.setdefault(name, {}).setdefault(allocator, []).append(one)
    names = [f"{one}: {what}" for one in ALLOCATORS for what in ("µs", "spread", "page faults")]
    return outcome.Outcome(
        title="Copies of 4 MiB in fresh processes",
        columns=("copy", *names),
        rows=[(name, *row(of["system"]), *row(of["steady"])) for name, of in found.items()],
        caption=(
            f"{turns * AT_ONCE} processes each. µs: the median of the processes. spread: the "
            "largest over the smallest.\npage faults: of a call, in the process with the fewest "
            "and in the one with the most."
        ),
        targets=[],
        shortened=given.short,
        details={"processes": found},
    )


def row(processes: list[dict[str, Any]]) -> tuple[str, str, str]:
    medians = [statistics.median(one["samples_ns"]) for one in processes]
    faults = sorted(one["page_faults_per_call"] or 0.0 for one in processes)
    return (
        f"{statistics.median(medians) / 1e3:.0f}",
        f"{max(medians) / min(medians):.2f}",
        f"{faults[0]:.0f} to {faults[-1]:.0f}",
    )


if __name__ == "__main__":
    sys.exit(outcome.report(measure, outcome.options(__doc__).parse_args()))
