"""What was asked? The rule on the transcript between consumer and producer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

from dlprof.errors import NoReproducer
from dlprof.judge.case_view import CaseView
from dlprof.judge.cases import Cases, groups
from dlprof.judge.rule import Rule, expect, finding, replacements
from dlprof.judge.script import Effect, Subject
from dlprof.judge.standards import EXPORT
from dlprof.protocol.messages import ASKED_OTHERWISE, IMPORTED_OTHERWISE
from dlprof.runner.evidence import HandshakeEvent
from dlprof.runner.session import FindingRecord

PROTOCOLS = ("dlpack", "cuda-array-interface")
"""Where the transcript is that of the real call. For host arrays the consumer asks the buffer
protocol first, which the proxy that records cannot stand in for."""
WHOLE = ("import", "export")
"""Events that stand for the whole call."""
LONGEST_OUTCOME = 120
ONLY_THEY = "Only the frameworks can change it."


def handshake_retry(cases: Cases) -> Iterator[FindingRecord]:
    """The producer refuses what it is asked first, and the consumer asks again."""
    retries = {
        case.index: retry for case in cases.looked_at("handshake") if (retry := _retry(case))
    }
    asking = [case for case in cases.cases if case.index in retries]
    for found in groups(asking, lambda case: case.pair):
        refused, following = retries[found[0].index]
        outcome = (refused.outcome or "")[:LONGEST_OUTCOME]
        producer, left_out = found[0].pair[0], _left_out(refused, following)
        more = [f"The answer was {outcome}."] if outcome else []
        more += [f"Without {', '.join(left_out)}, {producer} answers."] if left_out else []
        yield finding(
            found,
            ("retries", "retry"),
            "after a refused request",
            f"{producer} refuses the first {refused.call}",
            more=" ".join(more),
            evidence={"refused_ns": refused.ns, "outcome": outcome},
            advice=replacements(cases, found, "asks once", _asks_once, ONLY_THEY),
        )


def _left_out(refused: HandshakeEvent, following: HandshakeEvent) -> list[str]:
    """The arguments without which the producer answered the same call at once."""
    if following.call != refused.call or not _returned(following):
        return []
    return [name for name in refused.arguments or {} if name not in (following.arguments or {})]


def _retry(case: CaseView) -> tuple[HandshakeEvent, HandshakeEvent] | None:
    """The first call that was refused, and the one that followed, in a conversion that worked."""
    for refused, following in pairwise(_calls(case)):
        if not _returned(refused) and following.outcome is not None:
            return refused, following
    return None


def _calls(case: CaseView) -> list[HandshakeEvent]:
    """What the consumer asked of the producer; empty where that is not known."""
    events = case.result.handshake
    if case.result.status != "ok" or case.result.case.protocol not in PROTOCOLS:
        return []
    if not any(_returned(event) for event in events if event.call == "import"):
        return []
    return [event for event in events if event.call not in WHOLE]


def _asks_once(case: CaseView) -> bool:
    return bool(_calls(case)) and _retry(case) is None


def _returned(event: HandshakeEvent) -> bool:
    return event.outcome == "returned"


RECORDERS = {
    "dlpack": """
calls = []

class Recorder:
    def __dlpack_device__(self):
        return array.__dlpack_device__()

    def __dlpack__(self, *stream, **asked):
        try:
            capsule = array.__dlpack__(*stream, **asked)
        except Exception as refusal:
            calls.append(f"asked for {asked}: refused, {type(refusal).__name__}: {refusal}")
            raise
        calls.append(f"asked for {asked}: answered")
        return capsule
""",
    "cuda-array-interface": """
calls = []

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


class Answered(NamedTuple):
    """The consumer's last request, which was refused, and one that the producer answers."""

    refused: dict[str, Any]
    answered: dict[str, Any]

    @property
    def left_out(self) -> list[str]:
        """The arguments that the answered request does not have, by name or by position."""
        return [name for name in self.refused if name not in self.answered]

    @property
    def difference(self) -> str:
        """``without max_version``, ``with copy``: what is different in the refused one."""
        if any(map(str.isdigit, self.left_out)) and "stream" in self.answered:
            return "with a positional stream"
        added = [name for name in self.answered if name not in self.refused]
        pairs = self.refused.items()
        other = [f"{name}={own}" for name, own in pairs if self.answered.get(name, own) != own]
        texts = {"with": [*self.left_out, *other], "without": added}
        return " and ".join(f"{how} {', '.join(names)}" for how, names in texts.items() if names)


OF_THE_USER = {"copy": "copy=", "dl_device": "device="}
"""Arguments that are the user's own where the code has these words."""


def not_negotiated(cases: Cases) -> Iterator[FindingRecord]:
    """What the consumer gets is refused, and one thing that is different makes it work."""
    causes = {
        case.index: cause
        for case in cases.looked_at("handshake")
        if case.result.status == "unsupported" and (cause := _cause(case))
    }
    refused = [case for case in cases.cases if case.index in causes]
    for found in groups(refused, lambda case: (case.pair, causes[case.index].words)):
        cause = causes[found[0].index]
        yield finding(
            found,
            ("is refused", "are refused"),
            "although the producer can deliver",
            cause.words,
            evidence=cause.evidence,
            advice=replacements(cases, found, "takes it"),
        )


class Cause(NamedTuple):
    """What is different in the call that is refused, in words, and the evidence of it."""

    words: str
    evidence: dict[str, str]


def _cause(case: CaseView) -> Cause | None:
    producer, consumer = case.pair
    if found := _answered(case):
        evidence = {"asked": _listed(found.refused), "answered": _listed(found.answered)}
        return Cause(f"{consumer} asks {producer} {found.difference}", evidence)
    if taken := _taken_if_legacy(case):
        words = f"the capsule of {producer} is versioned, and {consumer} takes a legacy one"
        return Cause(words, {"taken": taken})
    if protocol := _taken_alone(case):
        return Cause(f"{consumer} takes an object that has {protocol} only", {"taken": protocol})
    return None


def _answered(case: CaseView) -> Answered | None:
    """Both requests, if they differ in what the consumer chose by itself."""
    events = case.result.handshake
    exports = [event for event in events if event.call == "__dlpack__"]
    others = [event for event in events if event.call == ASKED_OTHERWISE and _returned(event)]
    if not exports or not others or _returned(exports[-1]):
        return None
    found = Answered(exports[-1].arguments or {}, others[0].arguments or {})
    asked_by_user = any(OF_THE_USER.get(name, "\0") in case.code for name in found.left_out)
    return found if found.difference and not asked_by_user else None


def _taken_if_legacy(case: CaseView) -> str:
    """The code that gives the same import a legacy capsule, and works; else empty."""
    for event in case.result.handshake:
        if event.call == IMPORTED_OTHERWISE and _returned(event):
            return str((event.arguments or {}).get("code", ""))
    return ""


def _taken_alone(case: CaseView) -> str:
    """The protocol of a stand-in that is taken, while the source is refused; or empty."""
    outcomes = {event.call: _returned(event) for event in case.result.handshake}
    is_dlpack = case.result.case.protocol == "dlpack"
    asked = "__dlpack__" if is_dlpack else "__cuda_array_interface__"
    is_taken = outcomes.get(asked) and outcomes.get("import")
    return asked if is_taken and case.result.refused_at == "first call" else ""


def _listed(arguments: Mapping[str, Any]) -> str:
    """As in a call."""
    return ", ".join(
        str(value) if name.isdigit() else f"{name}={value}" for name, value in arguments.items()
    )


DELIVERS = """
<create>
try:
    y = <code>
except Exception as refusal:
    print("as the consumer asks:", type(refusal).__name__, refusal)
else:
    print("y is there")
    return False
print("asked in another way:", x.__dlpack__(<answered>))
return True
"""


TAKES = """
<recorder>
<create>
try:
    y = <code>
except Exception as refusal:
    print("refused:", type(refusal).__name__, refusal)
else:
    print("y is there")
    return False
<replace>
y = <taken>
print("taken: <what>")
return True
"""


def show_not_negotiated(subject: Subject, _: Subject | None, __: FindingRecord) -> Effect:
    case = CaseView(0, subject.result)
    does = "is refused, although the producer can deliver"
    if found := _answered(case):
        return subject.shown(does, DELIVERS, answered=_listed(found.answered))
    if taken := _taken_if_legacy(case):
        return subject.shown(
            does, TAKES, recorder="", replace="", taken=taken, what="a legacy capsule"
        )
    if protocol := _taken_alone(case):
        return subject.shown(
            does,
            TAKES,
            recorder=RECORDERS[case.result.case.protocol].lstrip("\n"),
            replace="array, x = x, Recorder()",
            taken=subject.code,
            what=f"an object that has {protocol} only",
        )
    raise NoReproducer("the session does not say which request is answered")


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
        "not-negotiated",
        "info",
        not_negotiated,
        expect(
            "The consumer says its newest version, and asks again without what the producer does"
            " not know. Without `max_version` it gets a legacy capsule.",
            f"`__dlpack__` has keywords only, and its notes say how to ask an older producer"
            f" ({EXPORT}, 2023.12).",
        ),
        show_not_negotiated,
    ),
)
