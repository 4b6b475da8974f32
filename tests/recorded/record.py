"""Record journals of real runs on this machine: ``python tests/recorded/record.py [NAME]``.

Tests replay them with ``dlprof.runner.replay``, and so start no process.
"""

import json
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from dlprof.runner.inspection import inspect_interpreter
from dlprof.runner.measurement import Measurement
from dlprof.runner.pairing import Axes
from dlprof.runner.progress import Watcher
from dlprof.runner.request import Request, Settings
from dlprof.runner.state import journal_of

HERE = Path(__file__).parent
SETTINGS = {"seed": 1, "sample_ns": 1_000_000}
REQUESTS = {
    "numpy-torch": Request(
        pairs=(("numpy", "torch"),),
        axes=Axes(shapes=((64,),), device="cpu"),
        settings=Settings(rounds=3, **SETTINGS),
    ),
    "there-and-back": Request(
        pairs=(("numpy", "torch"), ("torch", "numpy")),
        axes=Axes(shapes=((16, 16),), device="cpu"),
        globs=("torch.tensor(x)", "torch.from_numpy(x)", "x.numpy()"),
        settings=Settings(
            rounds=2,
            diagnose=False,
            placements=("convert", "in-loop", "hoisted"),
            **SETTINGS,
        ),
    ),
}


def record(name: str, request: Request) -> None:
    catalog = inspect_interpreter(request.python)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "session.json"
        with closing(Measurement(request, catalog, path, Watcher())) as measurement:
            measurement.start().run()
            text = journal_of(path).read_text(encoding="utf-8")
    frameworks = {framework for pair in request.pairs for framework in pair}
    (HERE / f"{name}.journal").write_text(_without_this_machine(text, frameworks))


def _without_this_machine(text: str, frameworks: set[str]) -> str:
    first, rest = text.split("\n", 1)
    header = json.loads(first)
    header["request"]["python"] = header["catalog"]["interpreter"]["executable"] = "python"
    header["catalog"]["interpreter"] |= {"machine_id": "0123456789ab", "boot_id": "ba9876543210"}
    probes = header["catalog"]["probes"]
    header["catalog"]["probes"] = [probe for probe in probes if probe["name"] in frameworks]
    return f"{json.dumps(header)}\n{rest}"


if __name__ == "__main__":
    from dataclasses import replace

    for name in sys.argv[1:] or REQUESTS:
        request = REQUESTS[name]
        command = ("run", *request.pairs[0])
        record(name, replace(request, python=sys.executable, command=command))
