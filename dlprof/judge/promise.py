"""View or copy? The rule on paths that do not keep what their documentation says."""

from __future__ import annotations

from collections.abc import Iterator

from dlprof.judge import alignment
from dlprof.judge.case_view import CaseView
from dlprof.judge.cases import Cases, by, groups
from dlprof.judge.finding import NONE_INSTEAD, Claim, code, finding, for_each_producer
from dlprof.judge.rule import Rule, Severity, number
from dlprof.judge.safety import Fault
from dlprof.judge.script import Effect, Subject
from dlprof.judge.standards import COPY, QUOTED
from dlprof.protocol.statement import STATEMENT
from dlprof.runner.session import FindingRecord, Result


def promise_broken(cases: Cases) -> Iterator[FindingRecord]:
    """The documentation says copy and the result is a view, or the other way round."""
    layouts = by(
        (case for case in cases.cases if case.kinds_seen and alignment.is_contiguous(case)),
        alignment.but_layout,
    )
    broken = [
        case
        for case in cases.cases
        if case.broken_promises or (case.breaks_promise_elsewhere and case.kinds_seen)
    ]
    for found in groups(
        broken,
        lambda case: (case.way_in, case.promise, _is_harmless(case)),
        lambda case: case.broken_promises,
    ):
        worst = found[0]
        severity: Severity = "warning"
        verb, effect = ("copies", "copy"), ""
        if worst.promise == "copy":
            severity = "error"
            verb = "shares memory with x", "share memory with x"
            effect = "Writing to x changes the result."
        if _is_harmless(worst):
            severity, effect = "info", "Both are read-only."
        limits = alignment.limits(layouts.get(alignment.but_layout(worst), ()))
        limits = limits if alignment.is_contiguous(worst) else None
        seen = "view" if worst.promise == "copy" else "copy"
        where = f" where x {limits.where(seen)}" if limits else ""
        yield finding(
            found,
            Claim(
                verb,
                f"although {_promise_text(worst.result)}",
                brief=effect,
                more=f"{effect} Seen {_how_often(worst)}{where}.".strip(),
            ),
            {
                "documented": worst.promise,
                **_in_processes(worst),
                **(limits.evidence if limits else {}),
            },
            advice=for_each_producer(found, lambda case: _advice(cases, case)),
            against=_as_promised(cases, worst),
            severity=severity,
        )


def _promise_text(result: Result) -> str:
    """Who promises what. Of a user's own call only the keyword is known."""
    if result.case.import_ == STATEMENT:
        asks = "forbids" if result.case.promise == "view" else "asks for"
        return f"its keyword {asks} a copy"
    return f"a {result.case.promise} is documented"


def _in_processes(case: CaseView) -> dict[str, int]:
    if len(case.kinds_seen) > 1:
        return {"processes": len(case.kinds_seen), "broken": case.broken_promises}
    whole = max(len(case.result.rounds), 1)  # processes that agree have one verdict together
    return {"processes": whole, "broken": whole if case.broken_promises else 0}


def _how_often(case: CaseView) -> str:
    if not case.broken_promises:  # the instrument *alignment* saw it
        return "in a separate try"
    count = _in_processes(case)
    return f"in {count['broken']} of {count['processes']} processes"


def _is_harmless(case: CaseView) -> bool:
    """Whether the memory is shared, and neither framework can write it."""
    sides = case.writable.source, case.writable.result
    return case.promise == "copy" and sides == (False, False)


def _as_promised(cases: Cases, case: CaseView) -> CaseView | None:
    """What keeps the word: wherever the source begins, if there is such a path."""
    if case.promise == "copy":
        return cases.replacement(case)

    def is_steady(other: CaseView) -> bool:
        return other.kind == "view" and cases.is_constant(other)

    return cases.replacement(case, is_steady) or cases.replacement(
        case, lambda other: other.kind == "view"
    )


def _advice(cases: Cases, case: CaseView) -> str:
    other = _as_promised(cases, case)
    if case.promise != "copy":
        if other is None:
            return f"{NONE_INSTEAD} Count on a copy."
        return f"{code(other)} is a view{cases.where(other)}."
    if other is not None:
        open_ = " (not looked at: whether it still reads its source)"
        return f"{code(other)} is a copy{open_ * cases.copies_unlooked(other)}."
    if _is_harmless(case):
        return ""
    if (late := cases.waited(case)) is not None:
        return f"{code(late)} is a copy once it is ready: wait for it before you write x."
    return f"{NONE_INSTEAD} Do not write x while you use the result."


def documented(_: FindingRecord, result: Result) -> str:
    case = result.case
    quoted = QUOTED.get((case.consumer, case.import_))
    if quoted is not None:
        return f"The function's documentation: “{quoted[0]}” ([source]({quoted[1]}))."
    promise = case.promise if case.promise in COPY else "copy"
    if case.import_ == STATEMENT:
        return f"The keyword of the call asks for {'no' if promise == 'view' else 'a'} copy."
    does = {"copy": "copies", "view": "does not copy"}[promise]
    standard = COPY[promise] if "copy=" in case.code else ""
    return f"The documentation says that this call {does}. {standard}".strip()


NO_COPY_MADE = """
<create>
<convert of y>
<look>
return <is_view>
"""
NO_VIEW_MADE = """
<create>
try:
    y = <code>
except (ValueError, BufferError) as refusal:
    print("it refuses:", refusal)
    return False
<wait of y>
<look>
return <is_copy>
"""


def show_promise_broken(subject: Subject, _: Subject | None, found: FindingRecord) -> Effect:
    if subject.result.case.promise == "copy":
        at = number(found, "view_alignment_bytes")
        where = f" if x is aligned to {at:.0f} bytes" if at else ""
        does = f"is a view{where}, although {_promise_text(subject.result)}"
        return subject.shown(does, NO_COPY_MADE, create=subject.create("view"))
    at = number(found, "copy_alignment_bytes")
    where = f" if x is only aligned to {at:.0f} bytes" if at else ""
    does = f"copies{where}, although {_promise_text(subject.result)}"
    return subject.shown(does, NO_VIEW_MADE, create=subject.create("copy"))


RULES = (
    Rule(
        "DLP018",
        "promise-broken",
        {
            "error": "if a documented copy is a view",
            "info": "if neither side can be written",
            "warning": "if a documented view copies",
        },
        promise_broken,
        documented,
        show_promise_broken,
        "ownership",
        Fault(
            lambda case: bool(case.broken_promises) or case.breaks_promise_elsewhere,
        ),
        changes=("view",),
    ),
)
