"""Record journals of real runs on this machine: ``python tests/recorded/record.py``.

Tests replay them with ``dlprof.runner.replay``, and so start no process.
"""

from __future__ import annotations

import json
import tempfile
from contextlib import closing
from pathlib import Path

from dlprof.plan.pairing import Axes
from dlprof.plan.request import Request, Settings
from dlprof.runner.inspection import inspect_interpreter
from dlprof.runner.measurement import Measurement
from dlprof.runner.progress import Silent
from dlprof.session.state import journal_of

HERE = Path(__file__).parent
PAIRS = (("numpy", "torch"), ("torch", "jax"))
SHAPE = (64,)
ROUNDS = 3
SAMPLE_NS = 1_000_000


def record(python: str, pair: tuple[str, str]) -> None:
    catalog = inspect_interpreter(python)
    request = Request(
        pairs=(pair,),
        axes=Axes(shapes=(SHAPE,), device="cpu"),
        settings=Settings(rounds=ROUNDS, seed=1, sample_ns=SAMPLE_NS),
        python=python,
        command=("run", *pair),
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "session.json"
        with closing(Measurement(request, catalog, path, Silent())) as measurement:
            measurement.start().run()
            text = journal_of(path).read_text(encoding="utf-8")
    (HERE / f"{'-'.join(pair)}.journal").write_text(_without_this_machine(text, pair))


def _without_this_machine(text: str, pair: tuple[str, str]) -> str:
    first, rest = text.split("\n", 1)
    header = json.loads(first)
    header["request"]["python"] = header["catalog"]["interpreter"]["executable"] = "python"
    probes = header["catalog"]["probes"]
    header["catalog"]["probes"] = [probe for probe in probes if probe["name"] in pair]
    return f"{json.dumps(header)}\n{rest}"


if __name__ == "__main__":
    import sys

    for pair in PAIRS:
        record(sys.executable, pair)
