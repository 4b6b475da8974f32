"""Do run, matrix and the gate give one time for a path?

Eight paths between NumPy and PyTorch, with the steady allocator. Two times agree if their 95 %
intervals overlap, or if they are 3 % apart at most. A fourth column has run with the system's
allocator, which is its default.

    python benchmarks/same_time.py --json same_time.json
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import outcome

PAIRS = {
    ("torch", "numpy"): (
        "x.numpy()",
        "numpy.asarray(x)",
        "numpy.from_dlpack(x)",
        "numpy.array(x)",
    ),
    ("numpy", "torch"): (
        "torch.from_numpy(x)",
        "torch.from_dlpack(x)",
        "torch.asarray(x)",
        "torch.tensor(x)",
    ),
}
ROUNDS = 10
CLOSE = 0.03
WAYS = ("run", "matrix", "gate")

Times = dict[tuple[str, str, str], tuple[float, float, float]]
"""The median and its interval by producer, consumer and code."""


def measure(given: argparse.Namespace) -> outcome.Outcome:
    rounds = 3 if given.short else ROUNDS
    found = dict.fromkeys((*WAYS, "system"), Times())
    for way, allocator in (("run", "steady"), ("system", "system")):
        outcome.tell(f"run, {allocator}")
        found[way] = {}
        for pair, codes in PAIRS.items():
            found[way] |= times(run(("run", *pair), codes, rounds, allocator))
    outcome.tell("matrix")
    found["matrix"] = times(run(("matrix",), sum(PAIRS.values(), ()), rounds, "steady"))
    found["gate"] = {}
    for pair in PAIRS:
        outcome.tell(f"gate {' '.join(pair)}")
        found["gate"] |= times(gate(pair))
    paths = [(*pair, code) for pair, codes in PAIRS.items() for code in codes]
    apart = [name for name in paths if not all(agree(found, name))]
    return outcome.Outcome(
        title="One path, three verbs",
        columns=("path", *WAYS, "agree", "run, allocator of the system"),
        rows=[row(found, name) for name in paths],
        caption=(
            f"Medians of {rounds} processes (of the rounds of a gate) with their 95 % intervals. "
            "The first three have the steady allocator."
        ),
        targets=[
            outcome.Target(
                "run, matrix and gate agree on each of eight paths",
                f"{len(paths) - len(apart)} of {len(paths)}",
                not apart,
            )
        ],
        shortened=given.short,
        details={
            way: {" ".join(name): time for name, time in of.items()} for way, of in found.items()
        },
    )


def run(
    verb: tuple[str, ...], codes: tuple[str, ...], rounds: int, allocator: str
) -> dict[str, Any]:
    names = [f"--path={code}" for code in codes]
    how = ("--rounds", str(rounds), "--no-diagnose", "--allocator", allocator)
    return outcome.session(*verb, *names, *how)[0]


def gate(pair: tuple[str, str]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        sides = [f"--{side}-python={sys.executable}" for side in ("base", "head")]
        names = [f"--path={code}" for code in PAIRS[pair]]
        kept = Path(folder) / "sessions"
        command = [sys.executable, "-m", "dlprof", "gate", *pair, *sides, *names, "-o", str(kept)]
        subprocess.run(command, check=False, capture_output=True)
        content: dict[str, Any] = json.loads((kept / "base.json").read_text(encoding="utf-8"))
        return content


def times(session: dict[str, Any]) -> Times:
    found: Times = {}
    for result in session["results"]:
        case, time = result["case"], result["ready_time"] or result["host_time"]
        if result["status"] == "ok" and time:
            low, high = time["ci95_ns"] or (time["median_ns"], time["median_ns"])
            name = (case["producer"], case["consumer"], case["code"])
            found[name] = (time["median_ns"], low, high)
    return found


def agree(found: dict[str, Times], name: tuple[str, str, str]) -> Iterator[bool]:
    known = [found[way][name] for way in WAYS]
    for place, (one, low, high) in enumerate(known):
        for other, least, most in known[place + 1 :]:
            yield (low <= most and least <= high) or abs(one - other) <= CLOSE * min(one, other)


def row(found: dict[str, Times], name: tuple[str, str, str]) -> tuple[str, ...]:
    three = [text(found[way][name]) for way in WAYS]
    producer, consumer, code = name
    same = "yes" if all(agree(found, name)) else "no"
    return (f"`{code}`, {producer} → {consumer}", *three, same, text(found["system"][name]))


def text(time: tuple[float, float, float]) -> str:
    return f"{outcome.duration_text(time[0])} ({time[1] / time[0]:.2f}-{time[2] / time[0]:.2f})"


if __name__ == "__main__":
    sys.exit(outcome.report(measure, outcome.options(__doc__).parse_args()))
