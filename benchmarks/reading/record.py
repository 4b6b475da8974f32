"""Record the sessions of the reading benchmark again: ``record.py FOLDER [NAME ...]``.

``RUNS`` holds the arguments of ``dlprof run`` for each session. The race is planted: no pair on the
host shows it. ``disturbed`` runs while two other processes keep the processors busy. Paths of this
machine are taken out of what is kept.

After a new recording the times in ``questions.toml`` no longer hold, and must be written again.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dlprof.measuring import measure
from dlprof.measuring.selftest import SETTINGS
from dlprof.runner.inspection import SYNTHETIC, inspect_interpreter
from dlprof.runner.measurement import Measurement
from dlprof.runner.pairing import Axes
from dlprof.runner.progress import Watcher
from dlprof.runner.request import Request
from dlprof.ticket.private_names import without_names

RUNS = {
    "fine": "numpy torch --shape 1024x1024",
    "copy": "torch jax --shape 1024x1024 --no-survey",
    "lost": "numpy jax --shape 1024x1024 --dtype int64 --no-survey",
    "crash": "numpy torch --shape 1024x1024 --layout reversed --no-survey",
    "refused": "torch numpy --shape 1024x1024 --dtype bfloat16 --no-survey",
    "disturbed": "torch numpy --shape 1024x1024 --no-survey",
    "alignment": "numpy jax --shape 512x512 --no-survey --rounds 2",
    "wait": "jax numpy --shape 1024x1024 --no-survey",
    "lifetime": "onnxruntime numpy --shape 1024x1024 --layout sliced --no-survey",
}
PLANTED = {"race": ("synthetic", "synthetic-race")}
"""Producer and consumer, see ``dlprof/selftest/faults.py``."""
BUSY = "while True: pass"


def record(name: str, file: Path) -> None:
    """Measure the session ``name`` and keep it in ``file``."""
    if name in PLANTED:
        _measure_planted(*PLANTED[name], file)
        return
    arguments = [sys.executable, "-m", "dlprof", "run", *RUNS[name].split(), "-o", str(file)]
    with _busy(2 if name == "disturbed" else 0):
        subprocess.run(arguments, stdout=subprocess.DEVNULL, check=False)


def keep(session: Any, file: Path) -> None:
    """Write ``session``, the content of a session file, without the paths of this machine."""
    text = without_names(json.dumps(session, ensure_ascii=False))
    file.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def _measure_planted(producer: str, consumer: str, file: Path) -> None:
    catalog = inspect_interpreter(sys.executable, (SYNTHETIC,), 0)
    request = Request(
        pairs=((producer, consumer),),
        axes=Axes(shapes=((128, 96),), dtypes=("float32",), layouts=("C",), device="cpu"),
        settings=SETTINGS,
        python=catalog.python,
        probe_files=(SYNTHETIC,),
        command=("selftest",),
    )
    with closing(Measurement(request, catalog, file, Watcher())) as measurement:
        measure.run(measurement)


@contextmanager
def _busy(processes: int) -> Iterator[None]:
    others = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(processes)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def main(arguments: Sequence[str]) -> None:
    folder = Path(arguments[0])
    with TemporaryDirectory() as scratch:
        for name in arguments[1:] or (*RUNS, *PLANTED):
            file = Path(scratch, f"{name}.json")
            record(name, file)
            keep(json.loads(file.read_text(encoding="utf-8")), folder / f"{name}.json.gz")


if __name__ == "__main__":
    main(sys.argv[1:])
