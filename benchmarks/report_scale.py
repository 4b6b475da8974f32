"""How do time and memory of a report grow with its cases?

Proves that a report of 100,000 cases takes less than 20 s of CPU time and less than 1 GB, and that
one of its cases takes no more than twice what one of 10,000 takes. The sessions are a recorded one
(``tests/recorded``) over and over, each time of another shape and with other times; as in a real
session the diagnosis is at the first shape only.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import subprocess
import sys
import tempfile
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import outcome

from dlprof.protocol.messages import DIAGNOSIS

RECORDED = Path(__file__).resolve().parents[1] / "tests/recorded/first_edition/torch-jax.json.gz"
SIZES = (1_000, 10_000, 100_000)
MOST_S, MOST_MB, MOST_GROWTH = 20.0, 1000.0, 2.0
TIMES = ("host_time", "ready_time", "phases", "create_ns", "first_call_ns")
NS = (
    "median_ns",
    "ci95_ns",
    "min_ns",
    "processes",
    "samples_ns",
    "export_ns",
    "import_ns",
    "release_ns",
)
ONCE = (*DIAGNOSIS, "handshake")
"""What is looked at once for each path."""


def measure(given: Namespace) -> outcome.Outcome:
    rows, costs, peaks = [], [], []
    with tempfile.TemporaryDirectory(prefix="dlprof-") as folder:
        real = json.loads(gzip.decompress(RECORDED.read_bytes()))
        start_s, _ = report(RECORDED)
        for cases in SIZES[: 2 if given.short else None]:
            outcome.tell(f"{cases:,} cases")
            path = Path(folder) / f"{cases}.json"
            with path.open("w", encoding="utf-8") as file:
                file.writelines(repeated(real, cases))
            seconds, peak_mb = min(report(path) for _ in range(1 if given.short else 3))
            costs.append((seconds, (seconds - start_s) / cases))
            peaks.append(peak_mb)
            size_mb = path.stat().st_size / 1e6
            path.unlink()
            each = f"{costs[-1][1] * 1e6:.0f}"
            rows.append((f"{cases:,}", f"{size_mb:.0f}", f"{seconds:.2f}", each, f"{peak_mb:.0f}"))
    growth = costs[-1][1] / costs[1][1]
    enough = not given.short
    targets = [
        outcome.Target(
            f"a report of {SIZES[-1]:,} cases within {MOST_S:g} s of CPU time",
            f"{costs[-1][0]:.3g} s",
            costs[-1][0] <= MOST_S if enough else None,
        ),
        outcome.Target(
            f"a report of {SIZES[-1]:,} cases within {MOST_MB:,.0f} MB",
            f"{peaks[-1]:.0f} MB",
            peaks[-1] <= MOST_MB if enough else None,
        ),
        outcome.Target(
            f"a case of {SIZES[-1]:,} costs at most {MOST_GROWTH:g} times one of {SIZES[1]:,}",
            f"{growth:.2f}",
            growth <= MOST_GROWTH if enough else None,
        ),
    ]
    return outcome.Outcome(
        title="Reports of many cases: time and memory",
        columns=("cases", "file MB", "CPU s", "us per case", "peak MB"),
        rows=rows,
        caption=(
            "CPU time of the whole command, the least of three; per case without the start of the"
            " program. 1 MB = 10^6 bytes."
        ),
        targets=targets,
        shortened=given.short,
    )


def repeated(session: dict[str, Any], cases: int) -> Iterator[str]:
    """The text of a session with the same results again and again, each time of another shape."""
    head = {**session, "findings": []}
    results = head.pop("results")
    chance = random.Random(0)
    yield json.dumps(head)[:-1] + ', "results": ['
    for at in range(cases):
        turn, place = divmod(at, len(results))
        one = results[place]
        found = {**one, "case": {**one["case"], "shape": [64 + turn, 64]}}
        if turn:
            found |= {name: [] if name == "handshake" else None for name in ONCE}
            found |= {name: longer(found[name], chance.uniform(1, 1.01)) for name in TIMES}
        yield (",\n" if at else "\n") + json.dumps(found)
    yield "\n]}\n"


def longer(measured: Any, factor: float) -> Any:
    """The times of a case, each longer by the same factor: no two cases have the same."""
    if isinstance(measured, dict):
        return {
            name: longer(part, factor) if name in NS else part for name, part in measured.items()
        }
    if isinstance(measured, list):
        return [longer(part, factor) for part in measured]
    return round(measured * factor, 2) if isinstance(measured, float) else measured


def report(path: Path) -> tuple[float, float]:
    """CPU time in s and peak memory in MB of the command."""
    command = [sys.executable, "-m", "dlprof", "report", str(path)]
    started = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(started.pid, 0)
    started.returncode = os.waitstatus_to_exitcode(status)
    if started.returncode:
        raise SystemExit(f"dlprof report ended with exit code {started.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / 1e6


if __name__ == "__main__":
    sys.exit(outcome.report(measure, outcome.options(__doc__).parse_args()))
