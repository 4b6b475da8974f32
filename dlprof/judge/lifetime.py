"""Does it live long enough, and not too long? Rules on lifetime."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from dlprof.errors import NoReproducer
from dlprof.judge.case_view import CaseView
from dlprof.judge.cases import Cases, groups
from dlprof.judge.rule import DO_NOT_TRY, Rule, expect, finding, replacements
from dlprof.judge.safety import Fault
from dlprof.judge.script import Effect, Subject, in_child
from dlprof.judge.standards import DELETER, KEPT_ALIVE, LIKE_OTHERS
from dlprof.protocol.messages import SAME
from dlprof.runner.evidence import LeftBehind, Lifetime
from dlprof.runner.quantity import size_text
from dlprof.runner.session import FindingRecord, Result

BYTES = "bytes_per_conversion"
HANDLES = ("descriptors_per_conversion", "threads_per_conversion", "maps_per_conversion")
EACH = 0.9
"""So much for each conversion is one for each: a run counts a few more or less."""


class Meter(NamedTuple):
    """What may be left behind, how a script counts it, and how much of it is nothing."""

    words: str
    code: str
    least: float


METERS = {
    HANDLES[0]: Meter("file descriptors", 'len(os.listdir("/proc/self/fd"))', 0.5),
    HANDLES[1]: Meter("threads", 'len(os.listdir("/proc/self/task"))', 0.5),
    HANDLES[2]: Meter("memory maps", 'Path("/proc/self/maps").read_bytes().count(b"\\n")', 0.5),
    "references_per_conversion": Meter("references to x", "sys.getrefcount(x)", 0.05),
    "objects_per_conversion": Meter("blocks of Python's memory", "sys.getallocatedblocks()", 0.2),
    BYTES: Meter(
        "bytes",
        'int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")',
        64.0,
    ),
}
"""References are the clearest, bytes the noisiest. What is nothing is so for
``dlprof.worker.growth``: counting leaves some, and few bytes are an allocator's own.
"""
SIZE_BYTES = 65536.0
"""The size of the converted array if the evidence has none."""


def _kept(result: Result) -> LeftBehind:
    """Evidence of the first process that saw something stay behind; else of such a refusal."""
    looks = result.lifetime, result.refusal
    kept = (look.of("retained") for look in looks if look is not None)
    return next(filter(None, kept), Lifetime())


def _lost(result: Result) -> Lifetime:
    """Evidence of the first process in which the result or the source was lost."""
    return (result.lifetime.of("dangling") if result.lifetime else None) or Lifetime()


def memory_retained(cases: Cases) -> Iterator[FindingRecord]:
    """What a conversion leaves behind is still there a while after its result is gone."""
    leaking = [case for case in cases.cases if _leaking_instrument(case)]
    for found in groups(
        leaking, _way_of_leaking, lambda case: _kept(case.result).bytes_per_conversion or 0.0
    ):
        kept, instrument = _kept(found[0].result), _leaking_instrument(found[0])
        if instrument == "refusal":
            when, advice = "every refusal", f"{replacements(cases, found, 'takes it')} {DO_NOT_TRY}"
        else:
            advice = replacements(cases, found, "leaves nothing behind", cases.outlasts)
            each = all(_kept_arrays(_kept(case.result)) >= EACH for case in found)
            when = "every conversion" if each else "some conversions"
            if _is_per_source(kept):
                when = "the first conversion of each array"
        average = "" if _kept_arrays(kept) >= EACH else " on average"
        yield finding(
            found,
            ("leaves", "leave"),
            f"{_kind(kept)} behind at {when}",
            f"{_kept_text(kept)}{average}",
            evidence={name: getattr(kept, name) for name in (*METERS, "conversions")},
            brief="It is still there 2 s later.",
            advice=advice.strip(),
            severity="error" if _left(kept).keys() & {*HANDLES, BYTES} else "warning",
            look=(instrument, "retained"),
        )


def _leaking_instrument(case: CaseView) -> str:
    """Where something stays behind: at conversions, or at refusals; empty if nothing does."""
    looks = {"lifetime": case.result.lifetime, "refusal": case.result.refusal}
    return next((name for name, look in looks.items() if look and look.saw("retained")), "")


def _way_of_leaking(case: CaseView) -> tuple[object, ...]:
    kept, instrument = _kept(case.result), _leaking_instrument(case)
    how_often = case.how_often(instrument, "retained")
    return instrument, case.way_in, _kind(kept), _is_per_source(kept), how_often


def _is_per_source(kept: LeftBehind) -> bool:
    return isinstance(kept, Lifetime) and kept.per_source is True


def _left(evidence: LeftBehind) -> dict[str, float]:
    """How much stays for each conversion, by the names of :data:`METERS`."""
    counts = {name: getattr(evidence, name) or 0.0 for name in METERS}
    return {name: count for name, count in counts.items() if count >= METERS[name].least}


def _kind(evidence: LeftBehind) -> str:
    """The kind of handle that stays; ``memory`` where none does. A thread has maps of its own."""
    handles = (name for name in _left(evidence) if name in HANDLES)
    return next((METERS[name].words for name in handles), "memory")


def _kept_arrays(evidence: LeftBehind) -> float:
    """How many arrays, references, blocks or handles stay for each, whichever is most."""
    left = _left(evidence)
    arrays = left.pop(BYTES, 0.0) / (evidence.size_bytes or SIZE_BYTES)
    return max(arrays, *left.values()) if left else arrays


def _kept_text(evidence: LeftBehind) -> str:
    return ", ".join(
        size_text(round(count)) if name == BYTES else _counted(f"{count:.3g}", METERS[name].words)
        for name, count in _left(evidence).items()
    )


def _counted(number: str, words: str) -> str:
    one = re.sub(r"s\b", "", words, count=1)
    return f"{number} {one if number == '1' else words}"


LEFT = """
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
SIZE_OF_NEW = 16 * 1024.0
"""Of the arrays that a loop makes anew, such as one of refusals."""
CLEAR_BYTES = 64 * 1024.0
"""So much of it for each conversion stands out of what a process's memory does by itself."""


def show_retained(subject: Subject, _: Subject | None, __: FindingRecord) -> Effect:
    # A conversion may be refused because those before left too much behind.
    refused = _leaking_instrument(CaseView(0, subject.result)) == "refusal"
    evidence = _kept(subject.result)
    left = _left(evidence)
    if not left:
        raise NoReproducer("the session does not say what was left behind")
    anew = refused or _is_per_source(evidence)
    if anew and subject.is_own:
        raise NoReproducer(
            "the source is made by a setup of your own, and others like it are needed"
        )
    clear = SIZE_OF_NEW / 2 if anew else CLEAR_BYTES
    first = next(iter(left))
    name = BYTES if left.get(BYTES, 0.0) >= clear and first not in HANDLES else first
    unit, meter, _least = METERS[name]
    subject = subject.as_made(evidence)
    if name == BYTES and subject.result.case.device == "cuda":
        meter = subject.said("memory", "y" if subject.has("memory", "y") else "x")
    create, does, what = subject.create_by(evidence), f"leaves {unit} behind", "conversion"
    each = subject.filled("<convert of y>")
    if anew:
        what = "new array that was converted"
    if refused:
        each = subject.filled(EACH_REFUSAL)
        does, what = f"{does} when it refuses", "refusal"
    return subject.shown(
        does,
        LEFT,
        create=create,
        make=create if anew else "pass",
        each=each,
        what=what,
        calls="50" if name in HANDLES else "200",  # a process may have a thousand descriptors
        meter=meter,
        unit=unit,
        most=f"{left[name] / 2:.4g}",
    )


DANGLING = ("lifetime", "dangling")


def dangling(cases: Cases) -> Iterator[FindingRecord]:
    """The result's memory is gone with its source, or that of the source with its result."""
    dangling = [case for case in cases.looked_at("lifetime") if case.is_dangling]
    for found in groups(dangling, lambda case: (_loses_result(case), case.way_in), look=DANGLING):
        evidence = _lost(found[0].result)
        how = " or ".join(sorted({_what_became(case) for case in found}, reverse=True))
        if _loses_result(found[0]):
            verb, does = ("does", "do"), "not keep x alive"
            how = f"{how} after x was dropped"
            advice = "Keep the source as long as the result."
        else:
            verb, does = ("destroys", "destroy"), "x when its result is dropped"
            advice = "Keep the result as long as the source."
        other = replacements(cases, found, "keeps it", cases.outlasts)
        yield finding(
            found,
            verb,
            does,
            how,
            evidence={"reason": evidence.reason},
            advice=f"{advice} Or: {other}" if other else advice,
            look=DANGLING,
        )


def _what_became(case: CaseView) -> str:
    evidence = _lost(case.result)
    of_source = evidence.source_after_drop
    if evidence.changed_after_drop or of_source == "changed":
        return "values changed"
    if evidence.error_after_drop is None and of_source in (None, SAME):
        return "the process died"
    return f"reading {'it' if of_source in (None, SAME) else 'x'} raised an exception"


def _loses_result(case: CaseView) -> bool:
    return case.is_dangling and not _lost(case.result).is_source_lost


def expected_to_live(found: FindingRecord, result: Result) -> str:
    if _lost(result).is_source_lost:
        return expect("The source keeps its memory when the result is dropped.", LIKE_OTHERS)(
            found, result
        )
    text = expect("The result keeps its memory alive.", DELETER)(found, result)
    return f"{text} {KEPT_ALIVE.get(result.case.protocol, '')}".strip()


LATER_S = 0.3
"""How long a script holds a result without its source."""
READ_AFTER_DROP = """
def make():
    <create>
    return x

x = make()
<hold>
<convert of y>
before = <kept_values>
del <dropped>
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
    print("<kept> cannot be read after <dropped> was dropped:", error, flush=True)
    sys.exit(3)
changed = <differing>
said = "values of <kept> changed after <dropped> was dropped"
print(changed, "of", before.size, said, flush=True)
sys.exit(3 if changed else 0)
"""


def show_dangling(subject: Subject, _: Subject | None, __: FindingRecord) -> Effect:
    """The result, or the source, reads memory that belongs to another array by then."""
    evidence = _lost(subject.result)
    subject = subject.as_made(evidence)
    is_source = evidence.is_source_lost
    kept, dropped = ("x", "y") if is_source else ("y", "x")
    fill = subject.said("write", "x") if subject.writable else ""
    if not (fill or subject.has("use", "x")):
        raise NoReproducer("its arrays cannot be written, and others hold the same values")
    child = subject.filled(
        READ_AFTER_DROP,
        create=subject.create_by(evidence),
        hold="source = x" if is_source else "",
        restore="x = source" if is_source else "",
        later=f"{LATER_S:g}",
        kept=kept,
        dropped=dropped,
        kept_values=subject.said("values", kept),
        fill=fill,
        other="x" if fill else subject.said("use", "x"),
    )
    does = "destroys x when its result is dropped" if is_source else "does not keep x alive"
    return in_child(does, subject, child)


RULES = (
    Rule(
        "DLP010",
        "memory-retained",
        {
            "error": "where 64 bytes or more, or a file descriptor, thread or memory map, stay"
            " behind per conversion",
            "warning": "",
        },
        memory_retained,
        expect("Nothing stays behind when the result is dropped.", DELETER),
        show_retained,
        "lifetime",
        Fault(
            lambda case: case.result.lifetime is not None and case.result.lifetime.saw("retained")
        ),
        changes=("retained",),
    ),
    Rule(
        "DLP011",
        "dangling",
        "error",
        dangling,
        expected_to_live,
        show_dangling,
        "lifetime",
        Fault(lambda case: case.is_dangling),
        other_arrays=True,
        changes=("dangling",),
    ),
)
