"""Does it come back? The rule on crashes and hangs."""

from __future__ import annotations

import math
from collections.abc import Iterator

from dlprof.errors import NoReproducer
from dlprof.judge.case_view import CaseView
from dlprof.judge.cases import Cases, by
from dlprof.judge.finding import Claim, code, finding
from dlprof.judge.rule import Rule, expect
from dlprof.judge.safety import Fault
from dlprof.judge.script import CHILD_LIMIT_S, Effect, Subject, in_child
from dlprof.judge.standards import FROM_DLPACK
from dlprof.runner.evidence import Lost
from dlprof.runner.session import FindingRecord
from dlprof.text.clean import first_line


def crash(cases: Cases) -> Iterator[FindingRecord]:
    """The process died, or gave no answer within the time limit.

    An instrument that needs longer than its limit is no fault of the conversion.
    """
    ended = [
        (one, one.lost) for one in cases.cases if one.lost is not None and one.is_lost_for_sure
    ]
    for found in by(ended, lambda one: (one[0].pair, one[1].how, _returned(one[0]))).values():
        worst, lost = found[0]
        stages = list(dict.fromkeys(one.stage for _, one in found))
        during = f" during {' or '.join(map(str, stages))}" if all(stages) else ""
        other = cases.replacement(worst)
        yield finding(
            [case for case, _ in found],
            Claim(
                ("did not return:", "did not return:"),
                f"{first_line(lost.how)}{during}",
                is_named=True,
            ),
            {"stage": lost.stage},
            advice=f"{code(other)} works." if other else "",
            how_often=_returned(worst),
        )


def _returned(case: CaseView) -> str:
    """In how many processes it came back before it was lost, in a sentence; empty for none."""
    before = len(case.result.rounds) if case.result.lost is not None else 0
    return f"It returned in {before} process{'es' * (before > 1)} before." if before else ""


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
<no_alarm>
sleep(2)  # a thread may end the process later
"""
IMPORTS_S = 60
"""For imports and the array, where each conversion has a limit of its own."""
SHORTEST_S = 10


def show_crash(subject: Subject, _: Subject | None, __: FindingRecord) -> Effect:
    """The process dies of the conversion, or the conversion never returns."""
    if subject.result.status == "ok":
        raise NoReproducer(
            "the process was lost in an instrument, which converts in ways of its own; alone, the"
            " conversion came back"
        )
    lost = subject.result.lost or Lost()
    if lost.limit_s:
        limit_s = math.ceil(max(lost.limit_s, SHORTEST_S))
        alarm = f"signal.alarm({limit_s})  # ends the process if the call has not returned by then"
        does, whole_s = f"gives no answer within {lost.limit_s:g} s", limit_s + IMPORTS_S
    else:
        alarm, whole_s = "", CHILD_LIMIT_S
        does = f"kills the process{f' ({lost.signal})' if lost.signal else ''}"
    no_alarm = "signal.alarm(0)" if alarm else ""
    child = subject.filled(CRASH, create=subject.create(), alarm=alarm, no_alarm=no_alarm)
    return in_child(does, subject, child, whole_s)


RULES = (
    Rule(
        "DLP016",
        "crash",
        "error",
        crash,
        expect(
            "The call returns or raises an error.",
            f"A consumer that cannot take an array raises `BufferError` ({FROM_DLPACK}).",
        ),
        show_crash,
        fault=Fault(lambda case: case.is_lost_for_sure, takes_values=True),
    ),
)
