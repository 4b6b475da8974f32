"""How long does the HTML report take, and how large is it?

Proves that a session of 1,000 cases becomes a page within 3 s and of less than 1 MB, and one of
10,000 cases within 20 s. The sessions are a real one over and over, each time of another shape.
The time is that of the whole command.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from argparse import Namespace
from pathlib import Path
from typing import Any

import outcome

SIZES = ((1_000, 3.0, 1_000_000, 5), (10_000, 20.0, None, 3))
"""Cases, the most seconds, the most bytes if that is promised, and repeats."""


def measure(given: Namespace) -> outcome.Outcome:
    rows, targets = [], []
    real, _ = outcome.session("run", "torch", "numpy,jax", "--shape", "64x64", "--no-diagnose")
    with tempfile.TemporaryDirectory(prefix="dlprof-") as folder:
        for cases, most_s, most_bytes, repeats in SIZES:
            outcome.tell(f"{cases:,} cases")
            path, page = Path(folder) / f"{cases}.json", Path(folder) / f"{cases}.html"
            path.write_text(json.dumps(repeated(real, cases)), encoding="utf-8")
            command = ("report", str(path), "--html", str(page))
            times = [outcome.dlprof(*command) for _ in range(1 if given.short else repeats)]
            middle, size = statistics.median(times), page.stat().st_size
            numbers = (f"{middle:.3g}", f"{max(times):.3g}", f"{size / 1e6:.2f}")
            rows.append((f"{cases:,}", *numbers))
            what = f"the HTML report of {cases:,} cases"
            promise = f"{what} within {most_s:g} s"
            targets.append(outcome.Target(promise, f"{middle:.3g} s", middle <= most_s))
            if most_bytes is not None:
                promise = f"{what} under {most_bytes / 1e6:g} MB"
                found = f"{size / 1e6:.2f} MB"
                targets.append(outcome.Target(promise, found, size < most_bytes))
    return outcome.Outcome(
        title="The HTML report: how long it takes and how large it is",
        columns=("cases", "median s", "worst s", "MB"),
        rows=rows,
        caption="Wall time of the command; 1 MB = 10^6 bytes.",
        targets=targets,
        shortened=given.short,
    )


def repeated(session: dict[str, Any], cases: int) -> dict[str, Any]:
    """A session with the same results again and again, each time of another shape."""
    results = []
    while len(results) < cases:
        side = 64 + len(results)
        results += [
            {**one, "case": {**one["case"], "shape": [side, 64]}} for one in session["results"]
        ]
    return {**session, "results": results[:cases]}


if __name__ == "__main__":
    sys.exit(outcome.report(measure, outcome.options(__doc__).parse_args()))
