"""What was asked? The rule on the transcript between consumer and producer."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from dlprof.analysis.case_view import CaseView
from dlprof.analysis.cases import Cases, groups
from dlprof.errors import NoReproducer
from dlprof.protocol.messages import VERSIONED
from dlprof.rules.finding import Claim, finding, replacements
from dlprof.rules.rule import Rule, expect
from dlprof.rules.script import Effect, Subject, shows
from dlprof.rules.standards import EXPORT
from dlprof.session.evidence import HandshakeEvent
from dlprof.session.model import FindingRecord

PROTOCOLS = ("dlpack", "cuda-array-interface")
"""Where the transcript is that of the real call. For host arrays the consumer asks the buffer
protocol first, which the proxy that records cannot stand in for."""
WHOLE = ("import", "export")
"""Events that stand for the whole call."""
LONGEST_OUTCOME = 120


def handshake_retry(cases: Cases) -> Iterator[FindingRecord]:
    """The producer refuses what it is asked first, and the consumer asks again."""
    asking = [case for case in cases.looked_at("handshake") if _refusal(case)]
    for found in groups(asking, lambda case: case.pair):
        refused = _refusal(found[0]) or HandshakeEvent()
        outcome = (refused.outcome or "")[:LONGEST_OUTCOME]
        yield finding(
            found,
            Claim(
                ("retries", "retry"),
                "after a refused request",
                f"{found[0].pair[0]} refuses the first {refused.call}",
                more=f"The answer was {outcome}." if outcome else "",
            ),
            {"refused_ns": refused.ns, "outcome": outcome},
            advice="Only the frameworks can change it: the consumer asks for more than the producer"
            " knows.",
        )


def _refusal(case: CaseView) -> HandshakeEvent | None:
    """The first call that was refused and followed by another, in a conversion that worked."""
    events = case.result.handshake
    if case.result.status != "ok" or case.result.case.protocol not in PROTOCOLS:
        return None
    if not any(_returned(event) for event in events if event.call == "import"):
        return None
    calls = [event for event in events if event.call not in WHOLE]
    for refused, following in pairwise(calls):
        if not _returned(refused) and following.outcome is not None:
            return refused
    return None


def _returned(event: HandshakeEvent) -> bool:
    return event.outcome == "returned"


RECORDERS = {
    "dlpack": """
class Recorder:
    def __dlpack_device__(self):
        return array.__dlpack_device__()

    def __dlpack__(self, **asked):
        try:
            capsule = array.__dlpack__(**asked)
        except Exception as refusal:
            calls.append(f"asked for {asked}: refused, {type(refusal).__name__}: {refusal}")
            raise
        calls.append(f"asked for {asked}: answered")
        return capsule
""",
    "cuda-array-interface": """
class Recorder:
    @property
    def __cuda_array_interface__(self):
        try:
            interface = array.__cuda_array_interface__
        except Exception as refusal:
            calls.append(f"asked: refused, {type(refusal).__name__}: {refusal}")
            raise
        calls.append("asked: answered")
        return interface
""",
}
"""By protocol: what stands in for the source and writes down what it is asked."""
HANDSHAKE = """
calls = []

<recorder>

<create>
array, x = x, Recorder()
y = <code>
print(*calls, sep="\\n")
return len(calls) > 1 and "refused" in calls[0]
"""


def show_retry(subject: Subject, _: Subject | None, __: FindingRecord) -> Effect:
    case = subject.result.case
    recorder = RECORDERS.get(case.protocol)
    if recorder is None:
        raise NoReproducer("only DLPack and the CUDA Array Interface can be stood in for")
    does = f"asks twice: {case.producer} refuses at first"
    return subject.shown(does, HANDSHAKE, recorder=recorder.strip("\n"))


def refused_unversioned(cases: Cases) -> Iterator[FindingRecord]:
    """The producer refuses a consumer that asks for no version, and delivers to one that does."""
    refused = [case for case in cases.looked_at("handshake") if _is_unversioned(case)]
    for found in groups(refused, lambda case: case.pair):
        producer, consumer = found[0].pair
        yield finding(
            found,
            Claim(
                ("is refused", "are refused"),
                "although the producer can deliver",
                f"{consumer} asks {producer} without max_version",
            ),
            {"asked": _asked(found[0])},
            advice=replacements(cases, found, "takes it"),
        )


def _is_unversioned(case: CaseView) -> bool:
    """Whether the producer refused the consumer's last request, which named no version."""
    events = case.result.handshake
    exports = [event for event in events if event.call == "__dlpack__"]
    delivers = any(_returned(event) for event in events if event.call == VERSIONED)
    if case.result.status != "unsupported" or not exports or not delivers:
        return False
    return not _returned(exports[-1]) and "max_version" not in (exports[-1].arguments or {})


def _asked(case: CaseView) -> str:
    exports = [event for event in case.result.handshake if event.call == "__dlpack__"]
    return ", ".join(f"{name}={value}" for name, value in (exports[-1].arguments or {}).items())


DELIVERS = """
<create>
try:
    y = <code>
except Exception as refusal:
    print("without a version:", type(refusal).__name__, refusal)
else:
    print("y is there")
    return False
print("with a version:", x.__dlpack__(max_version=(1, 3)))
return True
"""


RULES = (
    Rule(
        "DLP015",
        "handshake-retry",
        "info",
        handshake_retry,
        expect(
            "The first request is answered.",
            f"`__dlpack__` has the keywords `max_version`, `dl_device` and `copy` ({EXPORT},"
            " 2023.12).",
        ),
        show_retry,
        other_arrays=True,
    ),
    Rule(
        "DLP023",
        "refused-unversioned",
        "info",
        refused_unversioned,
        expect(
            "The consumer asks for a versioned capsule, and takes what the producer delivers.",
            f"`__dlpack__` has the keyword `max_version` ({EXPORT}, 2023.12).",
        ),
        shows("is refused, although the producer can deliver", DELIVERS),
    ),
)
