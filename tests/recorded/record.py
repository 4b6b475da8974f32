"""Record real runs on this machine: ``python tests/recorded/record.py [NAME]``.

Tests replay them with ``replay.py``, and so start no process.
"""

import json
import sys
import tempfile
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

from dlprof.runner.catalog import inspect_interpreter
from dlprof.runner.measurement import Measurement
from dlprof.runner.progress import Watcher
from dlprof.runner.request import Axes, Request, Settings

HERE = Path(__file__).parent
SETTINGS = {"sample_ns": 1_000_000}
REQUESTS = {
    "numpy-torch": Request(
        pairs=(("numpy", "torch"),),
        axes=Axes(shapes=((64,),), devices=("cpu",)),
        settings=Settings(rounds=3, **SETTINGS),
    ),
    "there-and-back": Request(
        pairs=(("numpy", "torch"), ("torch", "numpy")),
        axes=Axes(shapes=((16, 16),), devices=("cpu",)),
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
            with measurement.running() as runner:
                runner.run()
            first, rest = path.read_text(encoding="utf-8").split("\n", 1)
    frameworks = {framework for pair in request.pairs for framework in pair}
    probes = [asdict(probe) for probe in catalog.probes if probe.name in frameworks]
    ids = {"machine_id": "0123456789ab", "boot_id": "ba9876543210"}
    interpreter = {**catalog.interpreter, "executable": "python", **ids}
    header = json.loads(first)
    header["request"]["python"] = "python"
    header["catalog"] = {"interpreter": interpreter, "probes": probes, "faults": catalog.faults}
    (HERE / f"{name}.jsonl").write_text(f"{json.dumps(header)}\n{rest}")


if __name__ == "__main__":
    from dataclasses import replace

    for name in sys.argv[1:] or REQUESTS:
        request = REQUESTS[name]
        command = ("run", *request.pairs[0])
        record(name, replace(request, python=sys.executable, command=command))
