"""Does it live long enough, and not too long? Rules on lifetime."""

from __future__ import annotations

from collections.abc import Iterator

from dlprof.analysis.case_view import CaseView
from dlprof.analysis.cases import Cases, groups
from dlprof.analysis.quantity import size_text
from dlprof.analysis.safety import Fault
from dlprof.errors import NoReproducer
from dlprof.protocol.messages import SAME
from dlprof.rules.finding import DO_NOT_TRY, Claim, finding, replacements
from dlprof.rules.rule import Rule, Severity, expect
from dlprof.rules.script import Effect, Subject, in_child
from dlprof.rules.standards import DELETER, KEPT_ALIVE, LIKE_OTHERS
from dlprof.session.evidence import Lifetime, Refused
from dlprof.session.model import FindingRecord, Result

MEMORY = ("bytes_per_conversion", "references_per_conversion", "objects_per_conversion")
EACH = 0.9
"""So much for each conversion is one for each: a run counts a few more or less."""
LEAST_HANDLES, LEAST_REFERENCES, LEAST_OBJECTS, LEAST_BYTES = 0.5, 0.05, 0.2, 64.0
"""Less for each conversion is nothing: counting leaves some, and few bytes are an allocator's own.
They are the limits of ``dlprof.worker.instruments.lifetime``."""
METERS = {
    "descriptors_per_conversion": (
        "file descriptors",
        'len(os.listdir("/proc/self/fd"))',
        LEAST_HANDLES,
    ),
    "threads_per_conversion": ("threads", 'len(os.listdir("/proc/self/task"))', LEAST_HANDLES),
    "maps_per_conversion": (
        "memory maps",
        'Path("/proc/self/maps").read_bytes().count(b"\\n")',
        LEAST_HANDLES,
    ),
    "references_per_conversion": ("references to x", "sys.getrefcount(x)", LEAST_REFERENCES),
    "objects_per_conversion": (
        "blocks of Python's memory",
        "sys.getallocatedblocks()",
        LEAST_OBJECTS,
    ),
    "bytes_per_conversion": (
        "bytes",
        'int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")',
        LEAST_BYTES,
    ),
}
"""What may be left behind, how it is counted, and how much of it is nothing. References are the
clearest, bytes the noisiest."""
HANDLES = ("descriptors_per_conversion", "threads_per_conversion", "maps_per_conversion")
SIZE_BYTES = 65536.0
"""Of the array that was converted, where an older session does not say."""


def _evidence(result: Result) -> Lifetime:
    return result.lifetime.evidence if result.lifetime else Lifetime()


def memory_retained(cases: Cases) -> Iterator[FindingRecord]:
    """Every conversion leaves something behind after its result is gone."""
    leaking = list(filter(_is_retained, cases.looked_at("lifetime")))
    for found in groups(
        leaking,
        lambda case: (case.way_in, _what(case), _evidence(case.result).per_source),
        lambda case: _kept(case)[0],
    ):
        worst = found[0]
        each = all(_kept_arrays(case) >= EACH for case in found)
        when = "every conversion" if each else "some conversions"
        if _evidence(worst.result).per_source:
            when = "the first conversion of each array"
        yield finding(
            found,
            Claim(
                ("leaves", "leave"),
                f"{_what(worst)} behind at {when}",
                _kept_text(worst),
            ),
            {name: getattr(_evidence(worst.result), name) for name in (*METERS, "conversions")},
            advice=replacements(cases, found, "leaves nothing behind", cases.outlasts),
            severity=_severity(_evidence(worst.result)),
        )

    refusing = [
        case
        for case in cases.looked_at("refusal")
        if case.result.refusal is not None and case.result.refusal.verdict == "retained"
    ]
    for found in groups(refusing, lambda case: case.way_in):
        kept = _refusal(found[0].result)
        yield finding(
            found,
            Claim(("leaves", "leave"), f"{_left(kept)} behind at every refusal", _grown_text(kept)),
            {name: getattr(kept, name) for name in (*METERS, "conversions")},
            advice=f"{replacements(cases, found, 'takes it')} {DO_NOT_TRY}".strip(),
            severity=_severity(kept),
        )


def _severity(evidence: Lifetime) -> Severity:
    much = (evidence.bytes_per_conversion or 0.0) >= LEAST_BYTES or _handles_of(evidence)
    return "error" if much else "warning"


def _refusal(result: Result) -> Refused:
    return result.refusal.evidence if result.refusal else Refused()


def _is_retained(case: CaseView) -> bool:
    return case.result.lifetime is not None and case.result.lifetime.verdict == "retained"


def _kept(case: CaseView) -> tuple[float, float, float]:
    """Bytes, references and blocks of Python's memory that stay for each conversion."""
    evidence = _evidence(case.result)
    kept, references, objects = (getattr(evidence, name) or 0.0 for name in MEMORY)
    return kept, references, objects


def _handles(case: CaseView) -> dict[str, float]:
    return _handles_of(_evidence(case.result))


def _handles_of(evidence: Lifetime) -> dict[str, float]:
    """File descriptors, threads and maps that stay for each conversion, by their words."""
    counts = {METERS[name][0]: getattr(evidence, name) or 0.0 for name in HANDLES}
    return {words: count for words, count in counts.items() if count >= LEAST_HANDLES}


def _what(case: CaseView) -> str:
    return _left(_evidence(case.result))


def _left(evidence: Lifetime) -> str:
    """The kind of handle that stays; ``memory`` where none does. A thread has maps of its own."""
    return next(iter(_handles_of(evidence)), "memory")


def _kept_arrays(case: CaseView) -> float:
    """How many arrays, references, blocks or handles stay for each, whichever is most."""
    kept, references, objects = _kept(case)
    arrays = kept / (_evidence(case.result).size_bytes or SIZE_BYTES)
    return max(arrays, references, objects, *_handles(case).values())


def _kept_text(case: CaseView) -> str:
    text = _grown_text(_evidence(case.result))
    return text + ("" if _kept_arrays(case) >= EACH else " on average")


def _grown_text(evidence: Lifetime) -> str:
    kept, references, objects = (getattr(evidence, name) or 0.0 for name in MEMORY)
    texts = [f"{count:.3g} {words}" for words, count in _handles_of(evidence).items()]
    texts += [size_text(round(kept))] if kept >= LEAST_BYTES else []
    if references >= LEAST_REFERENCES:
        texts.append(f"{references:.3g} references to the source")
    if objects >= LEAST_OBJECTS:
        texts.append(f"{objects:.3g} blocks of Python's memory")
    return ", ".join(texts)


LEFT_BY_REFUSALS = """
def refused():
    <create>
    try:
        y = <code>
    except Exception:
        return 1
    return 0

def grow():
    before, count = <meter>, 0
    for _ in range(<calls>):
        count += refused()
    gc.collect()
    return (<meter> - before) / max(count, 1)

grow()  # fills caches
left = min(grow(), grow())
print(f"each refusal left {left:.1f} <unit> behind")
return left > <most>
"""
LEFT = """
<create>
def grow():
    before = <meter>
    for _ in range(<calls>):
        <convert of y>
    del y
    gc.collect()
    return (<meter> - before) / <calls>

grow()  # fills caches
left = min(grow(), grow())
print(f"each conversion left {left:.1f} <unit> behind")
return left > <most>
"""
LEFT_BY_SOURCES = """
def grow():
    before = <meter>
    for _ in range(<calls>):
        <create>
        <convert of y>
    del x, y
    gc.collect()
    return (<meter> - before) / <calls>

grow()  # fills caches
left = min(grow(), grow())
print(f"each new array that was converted left {left:.1f} <unit> behind")
return left > <most>
"""
SIZE_OF_NEW = 16 * 1024.0
"""Of the arrays that a loop makes anew, such as one of refusals."""
CLEAR_BYTES = 64 * 1024.0
"""So much of it for each conversion stands out of what a process's memory does by itself."""


def show_retained(subject: Subject, _: Subject | None, __: FindingRecord) -> Effect:
    refused = subject.result.status == "unsupported"
    evidence = _refusal(subject.result) if refused else _evidence(subject.result)
    counts = {name: getattr(evidence, name) or 0.0 for name in METERS}
    left = [name for name, count in counts.items() if count >= METERS[name][2]]
    if not left:
        raise NoReproducer("the session does not say what was left behind")
    anew = refused or evidence.per_source
    clear = SIZE_OF_NEW / 2 if anew else CLEAR_BYTES
    is_clear = counts["bytes_per_conversion"] >= clear and left[0] not in HANDLES
    name = left[-1] if is_clear else left[0]
    unit, meter, _least = METERS[name]
    subject = subject.as_made(evidence)
    if name == "bytes_per_conversion" and subject.result.case.device == "cuda":
        meter = subject.said("memory", "y" if subject.has("memory", "y") else "x")
    create, most = subject.create_by(evidence), f"{counts[name] / 2:.4g}"
    does, template = f"leaves {unit} behind", LEFT_BY_SOURCES if anew else LEFT
    if refused:
        does, template = f"{does} when it refuses", LEFT_BY_REFUSALS
    calls = "50" if name in HANDLES else "200"  # a process may have a thousand descriptors
    return subject.shown(
        does, template, create=create, calls=calls, meter=meter, unit=unit, most=most
    )


def _what_became(case: CaseView) -> str:
    evidence = _evidence(case.result)
    if evidence.error_after_drop is not None:
        return "reading it raised an exception"
    return "values changed" if evidence.changed_after_drop else "the process died"


def dangling(cases: Cases) -> Iterator[FindingRecord]:
    """The result's memory is gone with its source, or that of the source with its result."""
    dangling = [case for case in cases.looked_at("lifetime") if case.is_dangling]
    lost = [case for case in dangling if _loses_result(case)]
    for found in groups(
        lost, lambda case: case.pair[:1] if _all_lose(cases, case) else case.way_in
    ):
        how = " or ".join(sorted({_what_became(case) for case in found}, reverse=True))
        later_s = _evidence(found[0].result).later_s
        after = "after" if later_s is None else f"{1000 * later_s:.0f} ms after"
        advice = "Keep the source as long as the result."
        other = replacements(cases, found, "keeps it", cases.outlasts)
        every = f"So does every measured view from {found[0].direction}."
        yield finding(
            found,
            Claim(
                ("does", "do"),
                "not keep x alive",
                f"{how} {after} x was dropped",
                more=every if _all_lose(cases, found[0]) else "",
            ),
            {"reason": _evidence(found[0].result).reason},
            advice=f"{advice} Or: {other}" if other else advice,
        )
    destroying = [case for case in dangling if not _loses_result(case)]
    for found in groups(destroying, lambda case: case.way_in):
        advice = "Keep the result as long as the source."
        other = replacements(cases, found, "keeps it", cases.outlasts)
        yield finding(
            found,
            Claim(
                ("destroys", "destroy"),
                "x when its result is dropped",
                _what_became_of_source(found[0]),
            ),
            {"reason": _evidence(found[0].result).reason},
            advice=f"{advice} Or: {other}" if other else advice,
        )


def _what_became_of_source(case: CaseView) -> str:
    seen = _evidence(case.result).source_after_drop
    if seen == "changed":
        return "values of x changed"
    return "the process died" if seen in (None, SAME) else "reading x raised an exception"


def _all_lose(cases: Cases, case: CaseView) -> bool:
    views = [other for other in cases.arrays[case.array] if other.kind == "view"]
    alone = len({view.way_in for view in views}) == 1
    return not alone and case in views and all(map(_loses_result, views))


def _loses_result(case: CaseView) -> bool:
    return case.is_dangling and not _evidence(case.result).is_source_lost


def expected_to_live(found: FindingRecord, result: Result) -> str:
    if _evidence(result).is_source_lost:
        return expect("The source keeps its memory when the result is dropped.", LIKE_OTHERS)(
            found, result
        )
    text = expect("The result keeps its memory alive.", DELETER)(found, result)
    return f"{text} {KEPT_ALIVE.get(result.case.protocol, '')}".strip()


DANGLING = """
def make():
    <create>
    return x

x = make()
<convert of y>
before = <values of y>
del x
gc.collect()
sleep(0.3)  # it may be released late
others = []  # arrays that may be given the memory of x
for _ in range(8):
    x = make()
    <fill>
    others.append(<other>)
try:
    after = <values of y>
except Exception as error:
    print("y cannot be read after x was dropped:", error, flush=True)
    sys.exit(3)
changed = <differing>
print(changed, "of", before.size, "values of y changed after x was dropped", flush=True)
sys.exit(3 if changed else 0)
"""


SOURCE_DESTROYED = """
def make():
    <create>
    return x

source = make()
x = source
<convert of y>
before = <values of x>
del y
gc.collect()
others = []  # arrays that may be given the memory of the source
for _ in range(8):
    x = make()
    <fill>
    others.append(<other>)
x = source
try:
    after = <values of x>
except Exception as error:
    print("x cannot be read after y was dropped:", error, flush=True)
    sys.exit(3)
changed = <differing>
print(changed, "of", before.size, "values of x changed after y was dropped", flush=True)
sys.exit(3 if changed else 0)
"""


def show_dangling(subject: Subject, _: Subject | None, __: FindingRecord) -> Effect:
    """The result, or the source, reads memory that belongs to another array by then."""
    evidence = _evidence(subject.result)
    subject = subject.as_made(evidence)
    template, does = DANGLING, "does not keep x alive"
    if evidence.is_source_lost:
        template, does = SOURCE_DESTROYED, "destroys x when its result is dropped"
    fill = subject.said("write", "x") if subject.writable else ""
    if not (fill or subject.has("use", "x")):
        raise NoReproducer("its arrays cannot be written, and others hold the same values")
    child = subject.filled(
        template,
        create=subject.create_by(evidence),
        fill=fill,
        other="x" if fill else subject.said("use", "x"),
    )
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
        Fault(_is_retained),
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
        Fault(lambda case: case.is_dangling, takes_values=True),
        other_arrays=True,
        made_again=True,
        changes=("dangling",),
    ),
)
