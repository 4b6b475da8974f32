"""Check dlprof's verdicts, view or copy, against writes into the memory.

Proves that dlprof's verdict, view or copy, is right for every path between NumPy, PyTorch,
TensorFlow, JAX and ONNX Runtime on the CPU, for one element and for 4096x4096 of them, on a 64-byte
boundary and off it. The truth comes from ``memory_check.py`` in the same run, without dlprof: a
write into the memory shows whether the two arrays share it.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import outcome

FRAMEWORKS = ("numpy", "torch", "tensorflow", "jax", "onnxruntime")
SHAPES, SHORT = ("1", "4096x4096"), ("1", "256x256")
LEAST = 100
"""The least number of comparisons for a result."""
CHECK = Path(__file__).with_name("memory_check.py")

Key = tuple[str, tuple[int, ...], str]


def measure(given: Namespace) -> outcome.Outcome:
    frameworks = given.frameworks.split(",") if given.frameworks else FRAMEWORKS
    shapes = SHORT if given.short else SHAPES
    rows, wrong, compared = [], [], 0
    for producer, consumer in itertools.product(frameworks, repeat=2):
        outcome.tell(f"{producer} to {consumer}")
        told = _dlprof(producer, consumer, shapes)
        true = _memory(producer, consumer, list(told))
        both = [key for key in told if told[key] and true[key]]
        bad = [
            f"{' '.join(map(str, key))}: dlprof says {told[key]}, the memory {true[key]}"
            for key in both
            if told[key] != true[key]
        ]
        views = sum(true[key] == "view" for key in both)
        alone = sum(bool(told[key]) != bool(true[key]) for key in told)
        numbers = (views, len(both) - views, len(both) - len(bad), alone)
        rows.append((producer, consumer, *map(str, numbers)))
        wrong += bad
        compared += len(both)
    return outcome.Outcome(
        title="Truth: view or copy, by dlprof and by the memory itself",
        columns=("producer", "consumer", "views", "copies", "agree", "one side only"),
        rows=rows,
        caption=(
            f"All paths of each pair, {' and '.join(shapes)} float32, on a 64-byte boundary and "
            "off it; what both\nrefuse is left out, and what only one of them could do is "
            "counted in the last column." + "".join(f"\n{line}" for line in wrong)
        ),
        targets=[
            outcome.Target(
                "ownership is right for every pair",
                f"{compared - len(wrong)} of {compared} cases agree",
                not wrong and compared >= LEAST,
            )
        ],
        shortened=given.short or bool(given.frameworks),
        details={"wrong": wrong, "compared": compared},
    )


def _dlprof(producer: str, consumer: str, shapes: tuple[str, ...]) -> dict[Key, str | None]:
    """Return dlprof's verdict on each case, or None."""
    sizes = [word for shape in shapes for word in ("--shape", shape)]
    layouts = ("--layout", "aligned", "--layout", "sliced", "--device", "cpu")
    found, _ = outcome.session("run", producer, consumer, *sizes, *layouts, "--quick")
    return {
        (one["case"]["code"], tuple(one["case"]["shape"]), one["case"]["layout"]): (
            one["ownership"]["verdict"] if one["status"] == "ok" and one["ownership"] else None
        )
        for one in found["results"]
    }


def _memory(producer: str, consumer: str, keys: list[Key]) -> dict[Key, str | None]:
    """Return the memory's verdict on each case. A case that ends the process has none."""
    found: dict[Key, str | None] = {}
    while len(found) < len(keys):
        waiting = [key for key in keys if key not in found]
        done = subprocess.run(
            [sys.executable, str(CHECK)],
            check=False,
            input="\n".join(json.dumps([producer, consumer, *key]) for key in waiting),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"},
        )
        answers = [line for line in done.stdout.splitlines() if line.startswith('{"')]
        found |= {
            key: json.loads(line).get("verdict")
            for key, line in zip(waiting, answers, strict=False)
        }
        if len(answers) < len(waiting):
            found[waiting[len(answers)]] = None
    return found


if __name__ == "__main__":
    parser = outcome.options(__doc__)
    parser.add_argument("--frameworks", help="only these, with commas between")
    sys.exit(outcome.report(measure, parser.parse_args()))
