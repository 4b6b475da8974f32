"""How long does the HTML report take, and how large is it?

Proves that a session of 1,000 cases renders within 3 s into less than 1 MB, and one of 10,000 cases
within 20 s. The sessions are made up (``large_session.py``) in the shape of real ones. Each repeat
is a fresh process: what is judged is the time from the session in memory to the text, the import of
the libraries for charts and templates included. The time of the whole command stands beside it.

(The name is not ``html.py``: programs here are run from this folder, where that would hide the
standard library's module.)
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path

import large_session
import outcome

RENDER = """
import sys, time
from dlprof.session import model
from dlprof.rules.evaluate import find
loaded = session.load(sys.argv[1])
loaded = loaded.model_copy(update={"findings": find(loaded.results)})
begun = time.perf_counter()
from dlprof.reports.html import render
text = render(loaded)
print(time.perf_counter() - begun, len(text.encode("utf-8")))
"""


@dataclass(frozen=True)
class Size:
    """``limit_bytes`` is None where no size was promised."""

    cases: int
    limit_s: float
    limit_bytes: int | None
    repeats: int


SIZES = (Size(1_000, 3.0, 1_000_000, 5), Size(10_000, 20.0, None, 3))


def measure(given: Namespace) -> outcome.Outcome:
    rows, targets, details = [], [], {}
    with tempfile.TemporaryDirectory(prefix="dlprof-") as folder:
        for size in SIZES:
            outcome.tell(f"{size.cases:,} cases")
            path = Path(folder) / f"{size.cases}.json"
            path.write_text(json.dumps(large_session.content(size.cases)), encoding="utf-8")
            repeats = 1 if given.short else size.repeats
            found = [_render(path) for _ in range(repeats)]
            whole_s = _whole_s(path)
            times, length = [seconds for seconds, _ in found], found[0][1]
            middle = statistics.median(times)
            rows.append(
                (
                    f"{size.cases:,}",
                    f"{middle:.3g}",
                    f"{max(times):.3g}",
                    f"{whole_s:.3g}",
                    f"{length / 1e6:.2f}",
                )
            )
            targets += _targets(size, middle, length)
            details[str(size.cases)] = {"render_s": times, "whole_s": whole_s, "bytes": length}
    return outcome.Outcome(
        title="The HTML report: how long it takes and how large it is",
        columns=("cases", "median s", "worst s", "whole command s", "MB"),
        rows=rows,
        caption="Wall time of rendering in a fresh process; 1 MB = 10^6 bytes.",
        targets=targets,
        shortened=given.short,
        details=details,
    )


def _render(path: Path) -> tuple[float, int]:
    command = [sys.executable, "-c", RENDER, str(path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    seconds, length = done.stdout.split()
    return float(seconds), int(length)


def _whole_s(path: Path) -> float:
    page = path.with_suffix(".html")
    command = [sys.executable, "-m", "dlprof", "report", str(path), "--html", str(page)]
    begun = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begun


def _targets(size: Size, middle_s: float, length: int) -> list[outcome.Target]:
    what = f"the HTML report of {size.cases:,} cases"
    found = [
        outcome.Target(
            f"{what} within {size.limit_s:g} s", f"{middle_s:.3g} s", middle_s <= size.limit_s
        )
    ]
    if size.limit_bytes is not None:
        promise = f"{what} under {size.limit_bytes / 1e6:g} MB"
        found.append(outcome.Target(promise, f"{length / 1e6:.2f} MB", length < size.limit_bytes))
    return found


if __name__ == "__main__":
    sys.exit(outcome.report(measure, outcome.options(__doc__).parse_args()))
