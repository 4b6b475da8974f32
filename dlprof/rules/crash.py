"""Does it come back? The rule on crashes and hangs."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from dlprof.analysis.cases import Cases, groups
from dlprof.analysis.ending import ending
from dlprof.errors import NoReproducer
from dlprof.rules.finding import Claim, code, finding
from dlprof.rules.rule import Rule, expect
from dlprof.rules.script import CHILD_LIMIT_S, Effect, Subject, in_child
from dlprof.rules.standards import FROM_DLPACK
from dlprof.session.model import FindingRecord
from dlprof.text.clean import first_line


def crash(cases: Cases) -> Iterator[FindingRecord]:
    """The process died, or gave no answer within the time limit."""
    ends = {case.index: end for case in cases.cases if (end := ending(case)) is not None}
    ended = [case for case in cases.cases if case.index in ends]
    for found in groups(
        ended, lambda case: (case.pair, ends[case.index].is_sure, ends[case.index].how)
    ):
        end = ends[found[0].index]
        stages = list(dict.fromkeys(ends[case.index].stage for case in found))
        during = f" during {' or '.join(stages)}" if all(stages) else ""
        other = cases.instead(found[0])
        yield finding(
            "error" if end.is_sure else "info",
            found,
            Claim(("did not come back:", "did not come back:"), f"{first_line(end.how)}{during}"),
            {"stage": end.stage or None},
            advice=f"{code(other)} works." if other else "",
        )


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


def show_crash(subject: Subject, _: Subject | None, __: FindingRecord) -> Effect:
    """The process dies of the conversion, or the conversion never returns."""
    if subject.result.status == "ok":
        raise NoReproducer(
            "the process was lost in an instrument, which converts in ways of its own; alone, the"
            " conversion came back"
        )
    reason = subject.result.reason or ""
    killed, late = SIGNAL.search(reason), LATE.search(reason)
    if late:
        limit_s = math.ceil(max(float(late[1]), SHORTEST_S))
        alarm = f"signal.alarm({limit_s})  # ends the process if the call has not returned by then"
        symptom, whole_s = f"gives no answer within {late[1]} s", limit_s + IMPORTS_S
    else:
        alarm, whole_s = "", CHILD_LIMIT_S
        symptom = f"kills the process{f' ({killed[1]})' if killed else ''}"
    child = subject.filled(CRASH, create=subject.create(), alarm=alarm)
    return in_child(f"{subject.code} {symptom}", subject, child, whole_s)


RULES = (
    Rule(
        "DLP016",
        "crash",
        "error, or info if an instrument took too long",
        crash,
        expect(
            "The call returns or raises an error.",
            f"A consumer that cannot take an array raises `BufferError` ({FROM_DLPACK}).",
        ),
        show_crash,
    ),
)
