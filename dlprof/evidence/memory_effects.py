"""Effects that show in memory: leaks, peaks, torn copies, arrays and processes that die."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from dlprof.analysis import thresholds
from dlprof.analysis.case_view import CaseView, mapping, number, seen
from dlprof.errors import NoReproducer
from dlprof.evidence.subject import Effect, Subject
from dlprof.probes.base import DTYPES
from dlprof.rules.unsafe_copy import COPIED, UNALIGNED
from dlprof.session.model import FindingRecord, Verdict

AMPLIFIED = (1 + thresholds.AMPLIFIED_ARRAYS) / 2
"""Between a copy, which needs one array, and what the rule calls more."""
PEAK = r"""
def status(name):
    text = Path("/proc/self/status").read_text()
    return int(re.search(name + r":\s+(\d+)", text)[1]) * 1024

<create>
# once before: what is made at first and kept does not count
<convert of y>
del y
gc.collect()
ctypes.CDLL(None).malloc_trim(0)  # memory that was freed would hide a copy
before = status("VmRSS")
Path("/proc/self/clear_refs").write_text("5")  # begins a new high-water mark
<convert of y>
arrays = (status("VmHWM") - before) / <size>
print(f"at its peak the conversion needed the memory of {arrays:.2f} arrays")
return arrays > <most>
"""


def amplification(subject: Subject, _: Subject | None, __: FindingRecord) -> Effect:
    """At its peak it needs more memory than a copy does."""
    known, evidence = CaseView(0, subject.result), _evidence(subject.result.peak_memory)
    size = number(evidence.get("size_bytes")) or known.size_bytes
    items = [DTYPES[name] for name in known.changed.dtype or () if name in DTYPES]
    if len(items) > 1:
        size *= max(1.0, items[1] / items[0])  # the result's items may be larger
    if size <= 0:
        raise NoReproducer("the size of the array is not known")
    subject = subject.as_made(evidence)
    body = subject.filled(
        PEAK, create=subject.create_by(evidence), size=f"{size:.0f}", most=f"{AMPLIFIED:g}"
    )
    return Effect(f"{subject.code} needs more memory than one copy", body, subject)


LEFT = """
<create>
def grow():
    before = <meter>
    for _ in range(200):
        <convert of y>
    del y
    gc.collect()
    return (<meter> - before) / 200

grow()  # fills caches
left = min(grow(), grow())
print(f"each conversion left {left:.1f} <unit> behind")
return left > <most>
"""
METERS = {
    "references_per_conversion": ("references to x", "sys.getrefcount(x)", 0.05),
    "objects_per_conversion": ("blocks of Python's memory", "sys.getallocatedblocks()", 0.2),
    "bytes_per_conversion": (
        "bytes",
        'int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")',
        64.0,
    ),
}
"""What may be left behind, how it is counted, and less than what keeps nothing leaves of it (see
``dlprof.worker.growth``). References are the clearest, bytes the noisiest."""
CLEAR_BYTES = 64 * 1024.0
"""So much of it for each conversion stands out of what a process's memory does by itself."""


def retained(subject: Subject, _: Subject | None, __: FindingRecord) -> Effect:
    """Every conversion leaves something behind."""
    evidence = _evidence(subject.result.lifetime)
    counts = {name: number(evidence.get(name)) or 0.0 for name in METERS}
    left = [name for name, count in counts.items() if count >= METERS[name][2]]
    if not left:
        raise NoReproducer("the session does not say what was left behind")
    name = left[-1] if counts["bytes_per_conversion"] >= CLEAR_BYTES else left[0]
    unit, meter, _least = METERS[name]
    subject = subject.as_made(evidence)
    if name == "bytes_per_conversion" and subject.result.case.device == "cuda":
        meter = subject.said("memory", "y" if subject.has("memory", "y") else "x")
    body = subject.filled(
        LEFT,
        create=subject.create_by(evidence),
        meter=meter,
        unit=unit,
        most=f"{counts[name] / 2:.4g}",
    )
    return Effect(f"{subject.code} leaves {unit} behind", body, subject)


DANGLING = """
def make():
    <create>
    return x

x = make()
<convert of y>
before = <values of y>
del x
gc.collect()
others = []  # arrays that may be given the memory of x
for _ in range(8):
    x = make()
    <fill>
    others.append(<other>)
changed = int((before != <values of y>).sum())
print(changed, "of", before.size, "values of y changed after x was dropped", flush=True)
sys.exit(3 if changed else 0)
"""


def dangling(subject: Subject, _: Subject | None, __: FindingRecord) -> Effect:
    """The result reads memory that belongs to another array by then."""
    evidence = _evidence(subject.result.lifetime)
    subject = subject.as_made(evidence)
    fill = subject.said("write", "x") if subject.writable else ""
    if not (fill or subject.has("use", "x")):
        raise NoReproducer("its arrays cannot be written, and others hold the same values")
    child = subject.filled(
        DANGLING,
        create=subject.create_by(evidence),
        fill=fill,
        other="x" if fill else subject.said("use", "x"),
    )
    return _in_child(f"{subject.code} does not keep x alive", subject, child, CHILD_LIMIT_S)


TORN = """
copies, torn = 0, False
end = perf_counter() + 20
while not torn and copies < 1000 and perf_counter() < end:
    <create>
    before = <values of x>
    y = <code>
    <write of x>
    <wait of y>
    copied = <copied>
    copies += copied
    torn = copied and bool((before != <flat_values>).any())
print("a write to x right after the call changed a copy:", torn, "- copies made:", copies)
return torn
"""
TORN_WHERE = {UNALIGNED: " when x is not aligned", COPIED: " when it copies"}


def unsafe_copy(subject: Subject, _: Subject | None, finding: FindingRecord) -> Effect:
    """The copy still reads its source after the call has returned.

    Where the address decides whether it is a copy at all, the case's own array is made at one that
    is copied, if it is large enough; else the array of which a process saw a torn copy.
    """
    owned, size = subject.result.ownership, number(finding.evidence.get("size_bytes")) or 0
    if owned and owned.verdict == "varies" and CaseView(0, subject.result).size_bytes >= size:
        source = subject.create("copy")
    else:
        looks = [mapping(evidence) for _, evidence in seen(subject.result.early_write)]
        evidence = next((look for look in looks if "create" in look), {})
        subject = subject.as_made(evidence)
        source = subject.create_by(evidence)
    values = subject.said("values", "y")
    told_apart = subject.has("address", "x") and subject.has("address", "y")
    body = subject.filled(
        TORN,
        create=source,
        # A view must show the write.
        copied=subject.filled("<address of y> != <address of x>") if told_apart else "True",
        flat_values=values if subject.has("shape", "x") else f"({values}).ravel()",
    )
    where = TORN_WHERE.get(str(finding.evidence.get("only_where")), "")
    return Effect(f"{subject.code} still reads x after it has returned{where}", body, subject)


CHILD_LIMIT_S = 150
"""For a whole process, its imports and the array included."""
IN_CHILD = """
child = multiprocessing.Process(target=convert, daemon=True)
child.start()
child.join(<limit>)
print("the process that converted ended with exit code", child.exitcode)
if child.exitcode in (None, 1):
    raise RuntimeError("the process that converted did not come to an answer")
return child.exitcode != 0
"""
CRASH = """
<create>
end = perf_counter() + 20
try:
    for _ in range(100):
        <alarm>
        <convert of y>
        if perf_counter() > end:
            break
except (BufferError, RuntimeError, ValueError) as refusal:
    print("it refuses, which is an answer:", refusal, flush=True)
"""
IMPORTS_S = 60
"""For imports and the array, where each conversion has a limit of its own."""
SHORTEST_S = 10
SIGNAL = re.compile(r"killed by (SIG[A-Z0-9]{2,9})\b")
LATE = re.compile(r"no answer within ([0-9]{1,6}(?:\.[0-9]{1,6})?(?:e\+[0-9]{1,2})?) s")


def crash(subject: Subject, _: Subject | None, finding: FindingRecord) -> Effect:
    """The process dies of the conversion, or the conversion never returns."""
    if subject.result.status == "ok":
        raise NoReproducer(
            "the process was lost in an instrument, which converts in ways of its own; alone, the"
            " conversion came back"
        )
    reason = f"{subject.result.reason or ''} {finding.summary}"
    killed, late = SIGNAL.search(reason), LATE.search(reason)
    if late:
        limit_s = math.ceil(max(float(late[1]), SHORTEST_S))
        alarm = f"signal.alarm({limit_s})  # ends the process if the call has not returned by then"
        symptom, whole_s = f"gives no answer within {late[1]} s", limit_s + IMPORTS_S
    else:
        alarm, whole_s = "", CHILD_LIMIT_S
        symptom = f"kills the process{f' ({killed[1]})' if killed else ''}"
    child = subject.filled(CRASH, create=subject.create(), alarm=alarm)
    return _in_child(f"{subject.code} {symptom}", subject, child, whole_s)


def _in_child(symptom: str, subject: Subject, child: str, limit_s: int) -> Effect:
    return Effect(symptom, subject.filled(IN_CHILD, limit=str(limit_s)), subject, child)


def _evidence(verdict: Verdict[Any] | None) -> Mapping[str, Any]:
    return mapping(verdict.evidence) if verdict is not None else {}
