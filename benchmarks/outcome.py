"""Results of a benchmark program: a table and its targets."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from dlprof.measuring.judged import load
from dlprof.runner.session_file import document


@dataclass(frozen=True)
class Target:
    """A promise of the project, the result, and whether it was kept.

    None: too little was measured.
    """

    promise: str
    found: str
    met: bool | None


@dataclass(frozen=True)
class Outcome:
    """``rows`` are texts under ``columns``; ``details`` hold the numbers behind them.

    ``shortened``: fewer repeats were made than the targets are meant for.
    """

    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    caption: str
    targets: list[Target]
    shortened: bool = False
    details: dict[str, Any] = field(default_factory=dict)
    wall_s: float = 0.0


def options(docstring: str | None) -> argparse.ArgumentParser:
    """Return a parser with the options of every program. The docstring is the help."""
    parser = argparse.ArgumentParser(
        description=docstring, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the outcome as JSON too")
    parser.add_argument("--short", action="store_true", help="a quick look, with fewer repeats")
    return parser


def report(measure: Callable[[argparse.Namespace], Outcome], given: argparse.Namespace) -> int:
    """Measure, print, and write the JSON. Return exit code 1 if a target was missed."""
    begun = time.monotonic()
    outcome = measure(given)
    outcome = Outcome(**{**vars(outcome), "wall_s": round(time.monotonic() - begun, 1)})
    print(render(outcome))
    if given.json is not None:
        given.json.write_text(json.dumps(asdict(outcome), indent=1) + "\n", encoding="utf-8")
    return 1 if any(target.met is False for target in outcome.targets) else 0


def dlprof(*words: str) -> float:
    """Run a command and return its wall time in s. Exit codes of findings are no failure."""
    begun = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "dlprof", *words], check=False, capture_output=True, text=True
    )
    if done.returncode not in (0, 1, 4):
        raise SystemExit(f"dlprof {' '.join(words)}: {done.stderr}")
    return time.perf_counter() - begun


def session(*words: str) -> tuple[dict[str, Any], float]:
    """Measure with dlprof. Return the session and the wall time in s."""
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) / "session.json"
        seconds = dlprof(*words, "-o", str(kept))
        found: dict[str, Any] = json.loads(document(load(kept)))
    return found, seconds


def tell(words: str) -> None:
    """Print progress on stderr."""
    print(words, file=sys.stderr, flush=True)


def render(outcome: Outcome) -> str:
    """Format the outcome as text."""
    table = render_table(outcome.columns, outcome.rows)
    judged = "\n".join(_judgement(target) for target in outcome.targets)
    short = "Shortened run: the targets are meant for the full one.\n" if outcome.shortened else ""
    return f"{outcome.title}\n\n{table}\n\n{outcome.caption}\n{short}\n{judged}"


def render_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Align columns to their widest text, numbers to the right."""
    lines = [columns, *rows]
    widths = [max(len(line[place]) for line in lines) for place in range(len(columns))]
    right = [all(_is_number(row[place]) for row in rows) for place in range(len(columns))]
    texts = [
        "  ".join(
            text.rjust(width) if number else text.ljust(width)
            for text, width, number in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in lines
    ]
    rule = "  ".join("-" * width for width in widths)
    return "\n".join([texts[0], rule, *texts[1:]])


def duration_text(ns: float) -> str:
    """Format a time with three digits and its unit."""
    for size, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "us")):
        if abs(ns) >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.3g} ns"


def _judgement(target: Target) -> str:
    word = {True: "met", False: "MISSED", None: "open"}[target.met]
    return f"{word:<6}  {target.promise}: {target.found}"


def _is_number(text: str) -> bool:
    return text[:1] in "+-0123456789" or not text
