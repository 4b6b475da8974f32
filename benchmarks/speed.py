"""Measure how long a user waits for an answer.

Proves that ``dlprof run torch numpy --shape 4096x4096`` answers within 15 s, ``dlprof --help``
within 0.3 s, ``dlprof list`` within 0.5 s, ``dlprof matrix`` within 150 s, the whole diagnosis of
a pair within 30 s and ``--quick`` within 5 s, from the start of the command to its end. The median
of the repeats is judged; the worst is shown too.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from dataclasses import dataclass

import outcome


@dataclass(frozen=True)
class Command:
    """A command with its limit. ``short``: repeats of a shortened run; 0 leaves it out."""

    words: tuple[str, ...]
    limit_s: float
    repeats: int
    short: int

    @property
    def text(self) -> str:
        return " ".join(("dlprof", *self.words))


PAIRS = (
    ("torch", "jax"),
    ("jax", "numpy"),
    ("numpy", "jax"),
    ("tf", "numpy"),
    ("numpy", "ort"),
    ("torch", "torch"),
)

COMMANDS = (
    Command(("--help",), 0.3, 20, 5),
    Command(("list",), 0.5, 20, 5),
    Command(("run", "torch", "numpy", "--shape", "1024x1024"), 20, 3, 1),
    Command(("run", "torch", "jax", "--shape", "1024x1024"), 35, 3, 1),
    Command(("survey", "torch", "jax"), 10, 3, 1),
    Command(("matrix",), 150, 1, 0),
    *(Command(("run", *pair), 30, 1, 0) for pair in PAIRS),
    *(Command(("run", *pair, "--quick"), 5, 5, 1) for pair in PAIRS),
)


def measure(given: Namespace) -> outcome.Outcome:
    rows, targets, details = [], [], {}
    for command in COMMANDS:
        repeats = given.repeats or (command.short if given.short else command.repeats)
        if not repeats or given.only not in command.text:
            continue
        outcome.tell(f"{command.text}, {repeats} times")
        times = [_seconds(command) for _ in range(repeats)]
        middle = statistics.median(times)
        rows.append((command.text, str(repeats), f"{middle:.3g}", f"{max(times):.3g}"))
        promise = f"{command.text} within {command.limit_s:g} s"
        targets.append(outcome.Target(promise, f"{middle:.3g} s", middle <= command.limit_s))
        details[command.text] = times
    return outcome.Outcome(
        title="Speed: how long a command takes",
        columns=("command", "repeats", "median s", "worst s"),
        rows=rows,
        caption="Wall time of the whole command; the output goes to a file.",
        targets=targets,
        shortened=given.short or bool(given.only),
        details=details,
    )


def _seconds(command: Command) -> float:
    with tempfile.TemporaryFile() as output:
        begun = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "dlprof", *command.words],
            check=True,
            stdout=output,
            stderr=subprocess.DEVNULL,
        )
        return time.perf_counter() - begun


if __name__ == "__main__":
    parser = outcome.options(__doc__)
    parser.add_argument("--repeats", type=int, help="of each command; default: 3 to 20")
    parser.add_argument("--only", default="", help="only commands that contain this")
    sys.exit(outcome.report(measure, parser.parse_args()))
