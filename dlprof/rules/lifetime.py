"""Does it live long enough, and not too long? Rules on lifetime."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dlprof.analysis.case_view import CaseView
from dlprof.analysis.cases import Cases, groups
from dlprof.analysis.ending import is_dangling
from dlprof.analysis.quantity import size_text
from dlprof.errors import NoReproducer
from dlprof.rules import words
from dlprof.rules.observed import ONCE
from dlprof.rules.rule import Rule, expect, finding
from dlprof.rules.script import Effect, Subject, in_child
from dlprof.rules.standards import DELETER, KEPT_ALIVE
from dlprof.rules.words import advised, for_each_producer, or_else
from dlprof.session.evidence import Lifetime
from dlprof.session.model import FindingRecord, Result

COUNTS = ("bytes_per_conversion", "references_per_conversion", "objects_per_conversion")
EACH = 0.9
"""So much for each conversion is one for each: a run counts a few more or less."""
LEAST, LEAST_REFERENCES = 0.1, 0.05
"""Fewer blocks or references for each conversion are nothing to tell: counting leaves some."""
LEAST_BYTES = 64
"""Fewer bytes for each conversion are an allocator's own."""
SIZE_BYTES = 65536.0
"""Of the array that was converted, where an older session does not say."""


def _verdict(case: CaseView) -> str | None:
    return case.result.lifetime.verdict if case.result.lifetime else None


def _evidence(result: Result) -> Lifetime:
    return result.lifetime.evidence if result.lifetime else Lifetime()


def _instead(cases: Cases, found: Sequence[CaseView], what: str) -> str:
    return for_each_producer(
        found, lambda case: advised(case, cases.instead(case, cases.outlasts), what)
    )


def memory_retained(cases: Cases) -> Iterator[FindingRecord]:
    """Every conversion leaves something behind after its result is gone."""
    leaking = [case for case in cases.cases if _verdict(case) == "retained"]
    for found in groups(leaking, lambda case: case.way_in):
        ranked = sorted(found, key=_kept_bytes, reverse=True)
        worst = ranked[0]
        each = all(_kept_arrays(case) >= EACH for case in ranked)
        how_often = "at every conversion" if each else "at some conversions"
        leaves = words.several(ranked, "leaves", "leave")
        yield finding(
            "error" if _kept_bytes(worst) >= LEAST_BYTES else "warning",
            ranked,
            f"{words.paths(ranked)} {leaves} memory behind {how_often}: {_kept_text(worst)}.",
            f"{words.subject(ranked)} {leaves} something behind {how_often}, after the result was"
            f" dropped: {_kept_text(worst)}{words.example(ranked)}.",
            {name: getattr(_evidence(worst.result), name) for name in (*COUNTS, "conversions")},
            _instead(cases, ranked, "leaves nothing behind"),
        )


def _kept(case: CaseView) -> tuple[float, float, float]:
    """Bytes, references and blocks of Python's memory that stay for each conversion."""
    evidence = _evidence(case.result)
    kept, references, objects = (getattr(evidence, name) or 0.0 for name in COUNTS)
    return kept, references, objects


def _kept_arrays(case: CaseView) -> float:
    """How many arrays, references or blocks stay for each conversion, whichever is most."""
    kept, references, objects = _kept(case)
    return max(kept / (_evidence(case.result).size_bytes or SIZE_BYTES), references, objects)


def _kept_bytes(case: CaseView) -> float:
    return _kept(case)[0]


def _kept_text(case: CaseView) -> str:
    kept, references, objects = _kept(case)
    texts = [size_text(round(kept))] if kept >= LEAST_BYTES else []
    if references >= LEAST_REFERENCES:
        texts.append(f"{_count(references)} references to the source")
    if objects >= LEAST:
        texts.append(f"{_count(objects)} blocks of Python's memory")
    return ", ".join(texts) + ("" if _kept_arrays(case) >= EACH else " on average")


def _count(number: float) -> str:
    return f"{number:.0f}" if number >= EACH else f"{number:.2g}"


def seen_growth(result: Result) -> list[str]:
    evidence = _evidence(result)
    if evidence.conversions is None:
        return []
    runs = (
        f"counted over {evidence.runs or 2:.0f} runs of {evidence.conversions:.0f} conversions"
        " each, after one to warm up"
    )
    return [f"{runs}; the smallest growth counts ({ONCE})"]


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


def show_retained(subject: Subject, _: Subject | None, __: FindingRecord) -> Effect:
    evidence = _evidence(subject.result)
    counts = {name: getattr(evidence, name) or 0.0 for name in METERS}
    left = [name for name, count in counts.items() if count >= METERS[name][2]]
    if not left:
        raise NoReproducer("the session does not say what was left behind")
    name = left[-1] if counts["bytes_per_conversion"] >= CLEAR_BYTES else left[0]
    unit, meter, _least = METERS[name]
    subject = subject.as_made(evidence)
    if name == "bytes_per_conversion" and subject.result.case.device == "cuda":
        meter = subject.said("memory", "y" if subject.has("memory", "y") else "x")
    create, most = subject.create_by(evidence), f"{counts[name] / 2:.4g}"
    body = subject.filled(LEFT, create=create, meter=meter, unit=unit, most=most)
    return Effect(f"{subject.code} leaves {unit} behind", body, subject)


def dangling(cases: Cases) -> Iterator[FindingRecord]:
    """The result's memory is gone with its source."""
    lost = [case for case in cases.cases if is_dangling(case)]
    for found in groups(lost, lambda case: _at_fault(cases, case)):
        every = ""
        if _all_lose(cases, found[0]):
            every = f" So does every measured view from {found[0].pair_text}."
        does = words.several(found, "does", "do")
        yield finding(
            "error",
            found,
            f"{words.paths(found)} {does} not keep x alive: {_how_lost(found)} after x was"
            " dropped.",
            f"{words.subject(found)} {does} not keep the source alive. After the source was"
            f" dropped, {_how_lost(found)}.{every}",
            {"reason": _evidence(found[0].result).reason},
            f"Keep the source as long as the result.{or_else(_instead(cases, found, 'keeps it'))}",
        )


def _how_lost(cases: Sequence[CaseView]) -> str:
    changed = {_evidence(case.result).changed_after_drop is True for case in cases}
    if len(changed) > 1:
        return "values changed or the process died"
    return "values changed" if changed.pop() else "the process died"


def _at_fault(cases: Cases, case: CaseView) -> tuple[str, ...]:
    """The producer where views by several ways in are all lost; else the way in."""
    return case.pair[:1] if _all_lose(cases, case) else case.way_in


def _all_lose(cases: Cases, case: CaseView) -> bool:
    views = [other for other in cases.arrays[case.array] if other.owner == "view"]
    alone = len({view.way_in for view in views}) == 1
    return not alone and case in views and all(map(is_dangling, views))


def seen_after_drop(result: Result) -> list[str]:
    evidence = _evidence(result)
    if evidence.changed_after_drop:
        how = "the source was dropped, its memory used again, and the result read once more"
        return [f"{how}: its values had changed ({ONCE})"]
    return [f"{evidence.reason} ({ONCE})"] if evidence.reason is not None else []


def expected_to_live(found: FindingRecord, result: Result) -> str:
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
others = []  # arrays that may be given the memory of x
for _ in range(8):
    x = make()
    <fill>
    others.append(<other>)
changed = int((before != <values of y>).sum())
print(changed, "of", before.size, "values of y changed after x was dropped", flush=True)
sys.exit(3 if changed else 0)
"""


def show_dangling(subject: Subject, _: Subject | None, __: FindingRecord) -> Effect:
    """The result reads memory that belongs to another array by then."""
    evidence = _evidence(subject.result)
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
    return in_child(f"{subject.code} does not keep x alive", subject, child)


RULES = (
    Rule(
        "DLP010",
        "memory-retained",
        "error where 64 bytes or more per conversion stay behind, else warning",
        memory_retained,
        expect("Nothing stays behind when the result is dropped.", DELETER),
        show_retained,
        seen_growth,
        needs="lifetime",
    ),
    Rule(
        "DLP011",
        "dangling",
        "error",
        dangling,
        expected_to_live,
        show_dangling,
        seen_after_drop,
        needs="lifetime",
        other_arrays=True,
        made_again=True,
    ),
)
