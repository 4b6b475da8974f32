"""Rules on results that do not live long enough, and on memory that stays too long."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from dlprof.errors import NoReproducer
from dlprof.judge.case_view import CaseView
from dlprof.judge.cases import Cases
from dlprof.judge.rule import DELETER, DO_NOT_TRY, Rule, finding, replacements
from dlprof.judge.safety import Fault
from dlprof.judge.script import Effect, Subject, child_effect, shows
from dlprof.protocol.messages import SAME
from dlprof.runner.evidence import LeftBehind, Lifetime
from dlprof.runner.quantity import size_text
from dlprof.runner.session import FindingRecord, Result
from dlprof.text.source import plain

BYTES = "bytes_per_conversion"
OBJECTS = "objects_per_conversion"
HANDLES = ("descriptors_per_conversion", "threads_per_conversion", "maps_per_conversion")


class Meter(NamedTuple):
    """A resource that may stay behind, the code that counts it, and the least that counts."""

    words: str
    code: str
    least: float


METERS = {
    HANDLES[0]: Meter("file descriptors", 'len(os.listdir("/proc/self/fd"))', 0.5),
    HANDLES[1]: Meter("threads", 'len(os.listdir("/proc/self/task"))', 0.5),
    HANDLES[2]: Meter("memory maps", 'Path("/proc/self/maps").read_bytes().count(b"\\n")', 0.5),
    "references_per_conversion": Meter("references to x", "sys.getrefcount(x)", 0.05),
    OBJECTS: Meter("blocks of Python's memory", "sys.getallocatedblocks()", 0.9),
    BYTES: Meter(
        "bytes",
        'int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")',
        64.0,
    ),
}
"""References are the clearest, bytes the noisiest. The limits are those of
``dlprof.worker.growth``: counting leaves some objects, and an allocator keeps a few bytes.
"""


def _leak(result: Result) -> tuple[str, LeftBehind]:
    looks = {"lifetime": result.lifetime, "refusal": result.refusal}
    for name, look in looks.items():
        if look is not None and look.saw("retained"):
            return name, look.first("retained") or Lifetime()
    return "", Lifetime()


def _remains(evidence: LeftBehind) -> dict[str, float]:
    counts = {name: getattr(evidence, name) or 0.0 for name in METERS}
    return {name: count for name, count in counts.items() if count >= METERS[name].least}


def _kind(evidence: LeftBehind) -> str:
    """Return the kind of handle that stays, else ``memory``. A thread has maps of its own."""
    handles = (name for name in _remains(evidence) if name in HANDLES)
    return next((METERS[name].words for name in handles), "memory")


def _remains_text(evidence: LeftBehind, call: str) -> str:
    remains = _remains(evidence)
    texts = {name: _counted(f"{n:.3g}", METERS[name].words) for name, n in remains.items()}
    array = ""
    if BYTES in remains:
        texts[BYTES] = size_text(round(remains[BYTES]))
        size = evidence.size_bytes
        array = f" of an array of {size_text(round(size))}" if size else ""
    return f"{', '.join(texts.values())} per {call}{array}"


def _counted(number: str, words: str) -> str:
    singular = re.sub(r"s\b", "", words, count=1)
    return f"{number} {singular if number == '1' else words}"


GROWTH = """
<create>
def make():
    <make>

def make_and_convert():
    <make>
    <each>

def left_by(call):
    def grow():
        before = <meter>
        for _ in range(<calls>):
            call()
        gc.collect()
        sleep(2)  # what is released late stays no longer
        return (<meter> - before) / <calls>

    grow()  # fills caches
    return min(grow(), grow())

left = left_by(make_and_convert) - left_by(make)
print(f"each <what> left {left:.1f} <unit> behind")
return left > <most>
"""
EACH_REFUSAL = """
try:
    <code>
except Exception:
    pass
"""


def show_retained(subject: Subject) -> Effect:
    instrument, evidence = _leak(subject.result)
    is_refused = instrument == "refusal"
    remains = _remains(evidence)
    if not remains:
        raise NoReproducer("the session does not say what was left behind")
    anew = is_refused or evidence.per_source
    if anew and subject.is_own:
        raise NoReproducer(
            "the source is made by a setup of your own, and others like it are needed"
        )
    name = next(iter(remains))
    unit, meter, _least = METERS[name]
    subject = subject.with_array(evidence)
    if name == BYTES and subject.result.case.device == "cuda":
        meter = subject.idiom("memory", "y" if subject.has("memory", "y") else "x")
    create, does, event = subject.recreate(evidence), f"leaves {unit} behind", "conversion"
    each = subject.filled("<convert of y>")
    if anew:
        event = "new array that was converted"
    if is_refused:
        each = subject.filled(EACH_REFUSAL)
        does, event = f"{does} when it refuses", "refusal"
    return subject.shown(
        does,
        GROWTH,
        create=create,
        make=create if anew else "pass",
        each=each,
        what=event,
        calls="50" if name in HANDLES else "200",  # a process may have a thousand descriptors
        meter=meter,
        unit=unit,
        most=f"{remains[name] / 2:.4g}",
    )


@partial(
    Rule,
    "DLP010",
    "memory-retained",
    {
        "error": "where 64 bytes or more, a reference to the source, or a file descriptor,"
        " thread or memory map, stay behind per conversion",
        "warning": "",
    },
    "Nothing stays behind when the result is dropped.",
    show_retained,
    source=DELETER,
    instrument="lifetime",
    fault=Fault(lambda case: bool(_leak(case.result)[0])),
    changes=("retained",),
)
def memory_retained(cases: Cases) -> Iterator[FindingRecord]:
    """A conversion leaves something behind after its result is gone."""

    def cause(case: CaseView) -> tuple[object, ...]:
        instrument, evidence = _leak(case.result)
        how_often = instrument and case.how_often(instrument, "retained")
        parts = instrument, case.entry, _kind(evidence), evidence.per_source, how_often
        return parts if instrument else ()

    for group in cases.groups(cause, lambda case: _leak(case.result)[1].bytes_per_conversion or 0):
        instrument, evidence = _leak(group[0].result)
        if instrument == "refusal":
            call, advice = "refusal", f"{replacements(cases, group, 'takes it')} {DO_NOT_TRY}"
        else:
            call = "new source" if evidence.per_source else "conversion"
            advice = replacements(cases, group, "leaves nothing behind", cases.outlasts)
        yield finding(
            group,
            ("leaves", "leave"),
            f"{_kind(evidence)} behind{' when refusing' * (call == 'refusal')}",
            _remains_text(evidence, call),
            brief="It is still there 2 s later.",
            advice=advice.strip(),
            severity="warning" if _remains(evidence).keys() == {OBJECTS} else "error",
            look=(instrument, "retained"),
        )


DANGLING = ("lifetime", "dangling")
LATER_S = 0.3
"""Time for which a script holds a result without its source."""
READ_AFTER_DROP = """
def make():
    <create>
    return x

def changes(event, held):
    x = make()
    <hold>
    <convert of y>
    before = <kept_values>
    if held is None:
        <release>
    else:
        held.append(<dropped>)
    gc.collect()
    sleep(<later>)  # it may be released late
    others = []  # arrays that may be given the memory of <dropped>
    for _ in range(8):
        x = make()
        <fill>
        others.append(<other>)
    <restore>
    try:
        after = <kept_values>
    except Exception as error:
        print("<kept> cannot be read after <dropped> was", event, error, flush=True)
        return True
    changed = <differing>
    said = "values of <kept> changed after <dropped> was"
    print(changed, "of", before.size, said, event, flush=True)
    return changed > 0

if not changes("dropped", None):
    sys.exit(0)
if changes("kept, which is the control", []):
    sys.exit(1)  # that it was dropped is not the cause
sys.exit(3)
"""


def show_dangling(subject: Subject) -> Effect:
    """The result, or the source, reads memory that belongs to another array."""
    evidence = _evidence(subject.result)
    subject = subject.with_array(evidence)
    is_source, is_other = evidence.is_source_lost, evidence.is_other_lost
    kept, dropped = ("z" if is_other else "x", "y") if is_source or is_other else ("y", "x")
    hold = subject.filled("source = x\n<convert of z>") if is_other else "source = x"
    fill = subject.idiom("write", "x") if subject.writable else ""
    if not (fill or subject.has("use", "x")):
        raise NoReproducer("its arrays cannot be written, and others hold the same values")
    child = subject.filled(
        READ_AFTER_DROP,
        create=subject.recreate(evidence),
        hold=hold if dropped == "y" else "",
        restore="x = source" if is_source else "",
        release=plain(evidence.release) if evidence.release else f"del {dropped}",
        later=f"{LATER_S:g}",
        kept=kept,
        dropped=dropped,
        kept_values=subject.idiom("values", kept),
        fill=fill,
        other="x" if fill else subject.idiom("use", "x"),
    )
    lost = "its other results" if is_other else "x"
    does = f"destroys {lost} when its result is dropped"
    does = does if dropped == "y" else "does not keep x alive"
    return child_effect(does, subject, child)


@partial(
    Rule,
    "DLP011",
    "dangling",
    "error",
    "The result keeps its memory alive, and leaves that of its source alone when it is dropped.",
    show_dangling,
    source=DELETER,
    instrument="lifetime",
    fault=Fault(lambda case: case.is_dangling),
    changes=("dangling",),
    other_arrays=True,
)
def dangling(cases: Cases) -> Iterator[FindingRecord]:
    """The memory of the result is gone with its source, or the other way round."""
    for group in cases.groups(
        lambda case: case.is_dangling and (*_loss(case), case.entry),
        look=DANGLING,
    ):
        evidence = _evidence(group[0].result)
        how = " or ".join(sorted({_symptom(case) for case in group}, reverse=True))
        source = group[0].result.case.source
        verb, does = ("does", "do"), f"not keep {source} alive"
        if evidence.is_source_lost or evidence.is_other_lost:
            lost = source if evidence.is_source_lost else "another result of its source"
            by = f" by {evidence.released_by}" if evidence.released_by else ""
            verb, does = ("destroys", "destroy"), f"{lost} when its result is dropped{by}"
            advice = "Keep the result as long as the source."
        else:
            how = f"{how} after {source} was dropped"
            advice = "Keep the source as long as the result."
        other = replacements(cases, group, "keeps it", cases.outlasts)
        yield finding(
            group,
            verb,
            does,
            how,
            advice=f"{advice} Or: {other}" if other else advice,
            look=DANGLING,
        )


def _loss(case: CaseView) -> tuple[object, ...]:
    evidence = _evidence(case.result)
    return evidence.is_source_lost, evidence.is_other_lost, evidence.released_by


def _evidence(result: Result) -> Lifetime:
    return (result.lifetime.first("dangling") if result.lifetime else None) or Lifetime()


def _symptom(case: CaseView) -> str:
    evidence = _evidence(case.result)
    source, other = evidence.source_after_drop, evidence.other_after_drop
    if evidence.changed_after_drop or "changed" in (source, other):
        return "values changed"
    if evidence.error_after_drop is None and {source, other} <= {None, SAME}:
        return "the process died"
    return f"reading {'it' if source in (None, SAME) else 'x'} raised an exception"


REUSED = """
<create>
address, expected = <address of x>, <values of x>
with <own_stream of z>:
    z = <code>
    is_view = <address of z> == address
    for _ in range(500):
        <use of z>  # keeps the stream busy
    y = <copy of z>
    del x, z
    gc.collect()
    others = []
    for _ in range(16):
        <create>
        <write of x>
        others.append(x)
        if <address of x> == address:
            break
    is_reused = is_view and <address of x> == address
    wrong = int((<values of y> != expected).sum())
print("memory given out again:", is_reused, "wrong values:", wrong)
assert wrong or not is_reused, "the stream was done too soon"
return wrong > 0
"""


@partial(
    Rule,
    "DLP030",
    "reused-memory",
    "info",
    "The memory of a view is not written before all streams have read the view.",
    shows("lets its memory be given out again while another stream reads it", REUSED),
    source=DELETER,
    instrument="lifetime",
    fault=Fault(
        lambda case: case.is_reused,
        is_avoided=lambda _: False,  # no producer knows the streams of a consumer
        condition="keep x until the work on the result is done",
    ),
    other_arrays=True,
)
def reused_memory(cases: Cases) -> Iterator[FindingRecord]:
    """A dropped view is still read by a stream, and its producer gives the memory out again."""
    for group in cases.groups(lambda case: case.is_reused and case.pair):
        yield finding(
            group,
            ("lets", "let"),
            "the memory of x be given out again while another stream reads it",
            more="A copy on the consumer's own stream held values of a later array.",
            advice="Keep x until the stream that reads the result is done.",
        )
