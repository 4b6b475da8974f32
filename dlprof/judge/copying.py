"""View or copy? Rules on copies that need not be, or cost more than one."""

from __future__ import annotations

from collections.abc import Iterator

from dlprof.errors import NoReproducer
from dlprof.judge import thresholds
from dlprof.judge.alignment import aligned_as
from dlprof.judge.case_view import CaseView
from dlprof.judge.cases import Cases, groups
from dlprof.judge.cost import costs_more, slower_cases
from dlprof.judge.evidence_text import trace
from dlprof.judge.rule import BY_COST, NONE_INSTEAD, Rule, expect, finding, instead_of
from dlprof.judge.script import TIMED, Effect, Subject, function
from dlprof.judge.script import compared as compared_subject
from dlprof.judge.slower import saved_ns
from dlprof.judge.standards import ZERO_COPY
from dlprof.runner.axes import NO_TIMES
from dlprof.runner.evidence import PeakMemory
from dlprof.runner.session import FindingRecord


def avoidable_copy(cases: Cases) -> Iterator[FindingRecord]:
    """It copies although no code asked for it, and another measured path of the pair is a view."""

    def view_instead(case: CaseView) -> CaseView | None:
        if not (
            case.kind == "copy" and case.stays_on_device and case.promise is None and case.is_right
        ):
            return None
        return cases.replacement(
            case,
            lambda other: (
                other.kind == "view"
                and not other.is_cached
                and other.is_known
                and aligned_as(other, case)
            ),
        )

    for found, view in slower_cases(cases, view_instead, lambda case: case.pair):
        yield costs_more(
            found,
            view,
            ("copies", "copy"),
            "although a view exists",
            ("copy", "view"),
            f"is a view{cases.where(view)}",
        )


AVOIDABLE = """
<create>
<convert of y>
<other>
addresses = <address of x>, <address of y>, <address of z>
print("x is at %#x, y at %#x, z at %#x" % addresses)
return addresses[2] == addresses[0] != addresses[1]
"""


def show_avoidable_copy(subject: Subject, other: Subject | None, _: FindingRecord) -> Effect:
    view = compared_subject(other)
    return subject.shown(
        f"copies, although {view.code} is a view",
        AVOIDABLE,
        create=subject.create("copy"),
        other=view.filled("<convert of z>"),
    )


def copy_amplification(cases: Cases) -> Iterator[FindingRecord]:
    """At its peak it needs more memory than the copy that it makes."""
    looked_at = cases.looked_at("peak_memory")
    greedy = [case for case in looked_at if _excess(case) >= thresholds.AMPLIFIED_ARRAYS]
    for found in groups(greedy, lambda case: case.pair, _excess):
        worst = found[0]
        lean = cases.replacement(worst, lambda other: _is_lean(cases, other))
        advice = ""
        if lean is not None:
            advice = instead_of(worst, lean, f"needs the memory of {lean.peak_arrays:.1f} arrays")
        yield finding(
            found,
            ("needs", "need"),
            "more memory than one copy",
            f"{worst.peak_arrays:.2g} arrays at the peak",
            evidence={"peak_arrays": worst.peak_arrays},
            advice=advice,
            against=lean,
        )


def _is_lean(cases: Cases, case: CaseView) -> bool:
    """Whether it needs little, and its time is that of what needed it.

    Peak memory is looked at elsewhere: a view here may have been a copy there.
    """
    little = 0 <= _excess(case) <= thresholds.LEAN_ARRAYS
    return little and (case.kind != "view" or cases.is_constant(case))


def _excess(case: CaseView) -> float:
    """Peak memory as a multiple of the result; -1 where it is not known."""
    return case.peak_arrays if case.peak_arrays is not None and case.is_right else -1.0


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


def show_amplification(subject: Subject, _: Subject | None, __: FindingRecord) -> Effect:
    case = CaseView(0, subject.result)
    if subject.result.case.device != "cpu":
        raise NoReproducer("each framework counts the memory of a device in its own way")
    peak = subject.result.peak_memory
    evidence = peak.evidence if peak else PeakMemory()
    size = evidence.size_bytes or case.size_bytes
    if size <= 0:
        raise NoReproducer("the size of the array is not known")
    subject = subject.as_made(evidence)
    return subject.shown(
        "needs more memory than one copy",
        PEAK,
        create=subject.create_by(evidence),
        size=f"{size:.0f}",
        most=f"{AMPLIFIED:g}",
    )


def host_bounce(cases: Cases) -> Iterator[FindingRecord]:
    """From the device through a host array back to the device."""
    bouncing = [case for case in cases.cases if _bounces(case)]
    others = {case.index: cases.replacement(case, _stays_there) for case in bouncing}
    for found in groups(
        bouncing,
        lambda case: (case.pair, others[case.index] is None),
        lambda case: saved_ns(case, others[case.index]),
    ):
        worst, other = found[0], others[found[0].index]
        yield finding(
            found,
            ("goes", "go"),
            "through the host, although source and result are on the device",
            evidence={"cost_ns": saved_ns(worst, other) if other else None},
            more=trace(worst.result),
            advice=instead_of(worst, other, "stays on the device") if other else NONE_INSTEAD,
            against=other,
            severity="warning" if other else "info",
        )


def _bounces(case: CaseView) -> bool:
    """Whether the path goes through NumPy, or the trace saw all of the array copied both ways."""
    if not (case.result.case.device == "cuda" and case.stays_on_device):
        return False
    trace = case.result.trace
    copied = {"device to host": 0.0, "host to device": 0.0}
    for event in (trace.evidence.events if trace is not None else None) or ():
        if event.direction in copied:
            copied[event.direction] += event.bytes or 0.0
    both_ways = case.size_bytes > 0 and min(copied.values()) >= case.size_bytes
    return both_ways or case.result.case.protocol == "numpy"


def _stays_there(case: CaseView) -> bool:
    """Whether it is known not to bounce: a view does not, and of a copy the trace saw all."""
    trace = case.result.trace
    traced_whole = (
        trace is not None
        and trace.verdict == "traced"
        and not trace.evidence.events_left_out
        and case.size_bytes > 0
    )
    return not _bounces(case) and (case.kind == "view" or traced_whole)


TO_HOST = f"""{TIMED}
<create>

<convert>
times = timed(convert), timed(lambda: <values of x>)
print("the conversion takes %.1f us, a copy of x to the host %.1f us" % times)
return times[0] > 0.8 * times[1]
"""


def show_host_bounce(subject: Subject, _: Subject | None, __: FindingRecord) -> Effect:
    """The conversion costs as much as a copy to the host."""
    if subject.result.untimed:
        raise NoReproducer(f"a bounce shows only in {NO_TIMES}")
    convert = function("convert", subject)
    return subject.shown("goes through the host", TO_HOST, convert=convert)


RULES = (
    Rule(
        "DLP004",
        "avoidable-copy",
        BY_COST,
        avoidable_copy,
        expect("The result is a view: another path between these frameworks gives one.", ZERO_COPY),
        show_avoidable_copy,
        "ownership",
        times=True,
        needs_times=True,
    ),
    Rule(
        "DLP005",
        "copy-amplification",
        "warning",
        copy_amplification,
        expect("At its peak, a copy needs the memory of one array, and a view none."),
        show_amplification,
        "peak_memory",
        changes=("peak_memory",),
    ),
    Rule(
        "DLP006",
        "host-bounce",
        {"warning": "where another measured path is known to stay on the device", "info": ""},
        host_bounce,
        expect("The data stay on the device.", ZERO_COPY),
        show_host_bounce,
    ),
)
