"""Is dlprof right about who owns the memory?

Proves that dlprof's verdict, view or copy, is right for every way between NumPy, PyTorch,
TensorFlow, JAX and ONNX Runtime on the CPU, for one element and for 4096x4096 of them, on a 64-byte
boundary and off it. What is right is found out in the same run by ``witness.py``, which shares no
code with dlprof and no table of what today's versions do: it writes into the memory and looks.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import tempfile
from argparse import Namespace
from pathlib import Path
from typing import Any

import outcome

from dlprof.api import Silent
from dlprof.measuring.measuring import Measurement, Request, inspect_interpreter
from dlprof.plan.pairing import Axes
from dlprof.plan.settings import Settings
from dlprof.session import model

FRAMEWORKS = ("numpy", "torch", "tensorflow", "jax", "onnxruntime")
SHAPES = ((1,), (4096, 4096))
LAYOUTS = ("aligned", "sliced")
LEAST = 100
"""Fewer comparisons than this prove nothing."""
WITNESS = Path(__file__).with_name("witness.py")

Key = tuple[str, tuple[int, ...], str]


def measure(given: Namespace) -> outcome.Outcome:
    frameworks = given.frameworks.split(",") if given.frameworks else FRAMEWORKS
    shapes = ((1,), (256, 256)) if given.short else SHAPES
    rows, wrong, compared = [], [], 0
    for producer, consumer in itertools.product(frameworks, repeat=2):
        outcome.tell(f"{producer} to {consumer}")
        told = _dlprof(producer, consumer, shapes)
        seen = _witness(producer, consumer, list(told))
        both = {key: (told[key], seen[key]) for key in told if told[key] and "verdict" in seen[key]}
        bad = [
            f"{code} of {shape} {layout}: dlprof says {mine}, the memory {true['verdict']}"
            for (code, shape, layout), (mine, true) in both.items()
            if mine != true["verdict"]
        ]
        views = sum(true["verdict"] == "view" for _, true in both.values())
        alone = sum(bool(told[key]) != ("verdict" in seen[key]) for key in told)
        numbers = (views, len(both) - views, len(both) - len(bad), alone)
        rows.append((producer, consumer, *map(str, numbers)))
        wrong += bad
        compared += len(both)
    return outcome.Outcome(
        title="Truth: view or copy, by dlprof and by the memory itself",
        columns=("producer", "consumer", "views", "copies", "agree", "one side only"),
        rows=rows,
        caption="\n".join([_caption(shapes), *wrong]),
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


def _caption(shapes: Any) -> str:
    sizes = " and ".join("x".join(map(str, shape)) for shape in shapes)
    return (
        f"All ways of each pair, {sizes} float32, on a 64-byte boundary and off it; what both "
        "refuse is\nleft out, and what only one of them could do is counted in the last column."
    )


def _dlprof(producer: str, consumer: str, shapes: Any) -> dict[Key, str | None]:
    """Dlprof's verdict on each case; None where there is none."""
    request = Request(
        pairs=((producer, consumer),),
        axes=Axes(shapes=shapes, layouts=LAYOUTS, device="cpu"),
        # The times are not looked at.
        settings=Settings(rounds=1, sample_ns=1, diagnose=False),
        python=sys.executable,
    )
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) / "session.json"
        Measurement(request, inspect_interpreter(sys.executable), kept, Silent()).run()
        results = model.load(kept).results
    return {
        (result.case.code, result.case.shape, result.case.layout): result.ownership.verdict
        if result.status == "ok" and result.ownership
        else None
        for result in results
    }


def _witness(producer: str, consumer: str, keys: list[Key]) -> dict[Key, dict[str, str]]:
    """The memory's verdict on each case; a case that kills the process is one of its own."""
    found: dict[Key, dict[str, str]] = {}
    while len(found) < len(keys):
        waiting = [key for key in keys if key not in found]
        lines = [json.dumps([producer, consumer, *key]) for key in waiting]
        done = subprocess.run(
            [sys.executable, str(WITNESS)],
            check=False,
            input="\n".join(lines),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"},
        )
        answers = [line for line in done.stdout.splitlines() if line.startswith('{"')]
        found |= {key: json.loads(line) for key, line in zip(waiting, answers, strict=False)}
        if len(answers) < len(waiting):
            found[waiting[len(answers)]] = {"refused": f"killed, {done.returncode}"}
    return found


if __name__ == "__main__":
    parser = outcome.options(__doc__)
    parser.add_argument("--frameworks", help="only these, with commas between")
    sys.exit(outcome.report(measure, parser.parse_args()))
