"""Memory: how much a conversion needs at its peak, and what it leaves behind."""

from __future__ import annotations

import math

from dlprof.analysis.known import Known, number
from dlprof.errors import NoReproducer
from dlprof.evidence.repro.effect import Effect
from dlprof.evidence.repro.lines import block, inside
from dlprof.evidence.repro.subject import Subject
from dlprof.probes.base import DTYPES
from dlprof.rules import thresholds
from dlprof.session.model import FindingRecord

AMPLIFIED = (1 + thresholds.AMPLIFIED_ARRAYS) / 2
"""Between a copy, which needs one array, and what the rule calls more."""
LEAST = {
    "references_per_conversion": 0.05,
    "objects_per_conversion": 0.2,
    "bytes_per_conversion": 64.0,
}
"""Less of it for each conversion is left by what keeps nothing; see ``dlprof.worker.growth``."""

CLEAR_BYTES = 64 * 1024.0
"""So much of it for each conversion stands out of what a process's memory does by itself."""

STATUS = """\
def status(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))
"""


def amplification(subject: Subject, _: Subject | None, __: FindingRecord) -> Effect:
    """At its peak it needs more memory than a copy does."""
    peak = subject.result.peak_memory
    evidence = peak.evidence if peak is not None else {}
    subject = subject.as_made(evidence)
    size = number(evidence.get("size_bytes")) or Known(0, subject.result).size_bytes
    size = int(size * _widening(subject))
    if size <= 0:
        raise NoReproducer("the size of the array is not known")
    body = block(
        STATUS,
        subject.create_by(evidence),
        "# once before: what is made at first and kept does not count",
        subject.convert(),
        "del y",
        "gc.collect()",
        "ctypes.CDLL(None).malloc_trim(0)  # memory that was freed would hide a copy",
        'before = status("VmRSS")',
        "# begins a new high-water mark",
        'Path("/proc/self/clear_refs").write_text("5")',
        subject.convert(),
        f'arrays = (status("VmHWM") - before) / {size}',
        "del y",
        'print(f"at its peak the conversion needed the memory of {arrays:.2f} arrays")',
        f"return arrays > {AMPLIFIED:g}",
    )
    imports = ("import ctypes", "import gc", "from pathlib import Path")
    symptom = f"{subject.code} needs more memory than one copy"
    return Effect(symptom, body, imports, array=subject.array_text)


def _widening(subject: Subject) -> float:
    """How many times as large the result's items are, where they are larger."""
    dtypes = Known(0, subject.result).changed.get("dtype")
    if not (isinstance(dtypes, list) and len(dtypes) == 2 and set(dtypes) <= set(DTYPES)):  # noqa: PLR2004 - a pair
        return 1.0
    return max(1.0, DTYPES[dtypes[1]] / DTYPES[dtypes[0]])


METERS = {
    "references_per_conversion": ("references to x", "sys.getrefcount(x)", ()),
    "objects_per_conversion": ("blocks of Python's memory", "sys.getallocatedblocks()", ()),
    "bytes_per_conversion": (
        "bytes",
        'int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")',
        ("import os", "from pathlib import Path"),
    ),
}


def retained(subject: Subject, _: Subject | None, __: FindingRecord) -> Effect:
    """Every conversion leaves something behind."""
    lifetime = subject.result.lifetime
    evidence = lifetime.evidence if lifetime is not None else {}
    subject = subject.as_made(evidence)
    name, kept = _most(evidence)
    unit, meter, imports = METERS[name]
    if name == "bytes_per_conversion" and subject.result.case.device == "cuda":
        meter, imports = _device_meter(subject), ()
    grow = block(
        f"before = {meter}",
        f"for _ in range(200):\n{inside(subject.convert())}",
        "del y",
        "gc.collect()",
        f"return ({meter} - before) / 200",
    )
    body = block(
        subject.create_by(evidence),
        f"def grow():\n{inside(grow)}",
        "grow()  # fills caches",
        "left = min(grow(), grow())",
        f'print(f"each conversion left {{left:.1f}} {unit} behind")',
        f"return left > {kept / 2:.4g}",
    )
    symptom = f"{subject.code} leaves {unit} behind"
    return Effect(symptom, body, ("import gc", *imports), array=subject.array_text)


def _most(evidence: dict[str, object]) -> tuple[str, float]:
    """What grew, and by how much at each conversion: references are the clearest, bytes noisy
    unless they are many.
    """
    clear = (number(evidence.get("bytes_per_conversion")) or 0.0) >= CLEAR_BYTES
    for name in ("bytes_per_conversion", *METERS) if clear else METERS:
        kept = number(evidence.get(name)) or 0.0
        if kept >= LEAST[name] and math.isfinite(kept):
            return name, kept
    raise NoReproducer("the session does not say what was left behind")


def _device_meter(subject: Subject) -> str:
    side = subject.converted if subject.has("result", "memory") else subject.source
    return side("memory")
