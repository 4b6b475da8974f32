"""Are the rounds of a gate independent, as its test assumes? Asks the gates that were run.

Of each view and first pass: the correlation of each round's difference between the sides with that
of the round before, by ranks, so that one disturbed round counts no more than another.

    python benchmarks/gate_rounds.py docs/results/gates/FILE.jsonl
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import outcome
from gate_suite import VIEWS
from scipy.stats import rankdata

LEAST_ROUNDS = 8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("file", type=Path)
    found = list(correlations(parser.parse_args().file))
    rows = [
        (one.name, *_row([value for name, value in found if name == one.name])) for one in VIEWS
    ]
    rows.append(("all", *_row([value for _, value in found])))
    print(outcome.render_table(("view", "passes", "correlation", "± standard error"), rows))


def correlations(file: Path) -> Iterator[tuple[str, float]]:
    """The name of a view, and the correlation of neighbouring rounds in one pass of it."""
    views = {one.name for one in VIEWS}
    for text in file.read_text(encoding="utf-8").splitlines():
        passes = json.loads(text).get("differences", {})
        for name, differences in passes.get("pass", {}).items():
            if name in views and len(differences) >= LEAST_ROUNDS:
                yield name, neighbours(differences)


def neighbours(differences: Sequence[float]) -> float:
    """Of independent rounds it is 0 on average: what taking off their own mean costs is added."""
    ranks = rankdata(differences)
    ranks -= ranks.mean()
    whole = float(ranks @ ranks)
    return float(ranks[:-1] @ ranks[1:]) / whole + 1 / len(ranks) if whole else 0.0


def _row(values: Sequence[float]) -> tuple[str, str, str]:
    if len(values) < 2:
        return str(len(values)), "-", "-"
    error = statistics.stdev(values) / np.sqrt(len(values))
    return str(len(values)), f"{statistics.mean(values):+.3f}", f"{error:.3f}"


if __name__ == "__main__":
    main()
