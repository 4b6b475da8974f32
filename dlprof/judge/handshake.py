"""Rules on the requests that a consumer makes, and the answers of the producer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

from dlprof.errors import NoReproducer
from dlprof.judge.case_view import CaseView
from dlprof.judge.cases import NO_COPY, Cases, is_contiguous
from dlprof.judge.rule import EXPORT, Rule, code, finding, producer_prefix, replacements
from dlprof.judge.script import LOOK, Effect, Subject
from dlprof.protocol.messages import ASKED_OTHERWISE, IMPORTED_OTHERWISE
from dlprof.runner.evidence import HandshakeEvent
from dlprof.runner.session import FindingRecord
from dlprof.text.clean import first_words

RECORDER = """
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
"""
"""Stands in for the source and records each request."""
PROTOCOLS = ("dlpack", "cuda-array-interface")
"""Protocols whose transcript shows the real call. For host arrays the consumer asks the buffer
protocol first, and no recorder can stand in for that."""
HANDSHAKE = """
<recorder>

<create>
array, x = x, Recorder()
y = <code>
print(*calls, sep="\\n")
return len(calls) > 1 and "refused" in calls[0]
"""


def show_retry(subject: Subject) -> Effect:
    case = subject.result.case
    if case.protocol != "dlpack":
        raise NoReproducer("only DLPack can be stood in for")
    does = f"asks twice: {case.producer} refuses at first"
    return subject.shown(does, HANDSHAKE, recorder=RECORDER.strip("\n"))


@partial(
    Rule,
    "DLP015",
    "handshake-retry",
    "info",
    "The first request is answered.",
    show_retry,
    source=f"`__dlpack__` has the keywords `max_version`, `dl_device` and `copy` ({EXPORT},"
    " 2023.12).",
    other_arrays=True,
)
def handshake_retry(cases: Cases) -> Iterator[FindingRecord]:
    """The producer refuses the first request, and the consumer asks again."""
    retries = {case.index: retry for case in cases.cases if (retry := _retry(case))}
    for group in cases.groups(lambda case: case.index in retries and case.pair):
        refused = retries[group[0].index]
        outcome = (refused.outcome or "")[:120]
        yield finding(
            group,
            ("retries", "retry"),
            "after a refused request",
            f"{group[0].pair[0]} refuses the first {refused.call}",
            more=f"The answer was {outcome}." if outcome else "",
            advice=replacements(
                cases,
                group,
                "asks once",
                lambda case: bool(_calls(case)) and _retry(case) is None,
                "Only the frameworks can change it.",
            ),
        )


def _retry(case: CaseView) -> HandshakeEvent | None:
    for refused, following in pairwise(_calls(case)):
        if not _returned(refused) and following.outcome is not None:
            return refused
    return None


def _calls(case: CaseView) -> list[HandshakeEvent]:
    events = case.result.handshake
    if case.result.status != "ok" or case.result.case.protocol not in PROTOCOLS:
        return []
    if not any(_returned(event) for event in events if event.call == "import"):
        return []
    return [event for event in events if event.call not in ("import", "export")]


def _returned(event: HandshakeEvent) -> bool:
    return event.outcome == "returned"


USER_WORDS = {"copy": "copy=", "dl_device": "device="}
"""Arguments that come from the user if the code has these words."""
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
<look>
return True
"""


def show_not_negotiated(subject: Subject) -> Effect:
    cause = _cause(CaseView(0, subject.result))
    evidence = cause.evidence if cause is not None else {}
    if not evidence or evidence.get("taken") == "__cuda_array_interface__":
        raise NoReproducer("the session does not say which request is answered")
    texts = {"recorder": "", "replace": "", "look": "", "taken": subject.code}
    if "answered" in evidence:
        texts |= {"what": "another request", "taken": f"x.__dlpack__({evidence['answered']})"}
    elif "legacy" in evidence:
        texts |= {"what": "a legacy capsule", "taken": evidence["legacy"]}
    else:
        texts["recorder"], texts["replace"] = RECORDER.lstrip("\n"), "array, x = x, Recorder()"
        texts["what"] = f"an object that has {evidence['taken']} only"
    return subject.shown("is refused, although the producer can deliver", TAKES, **texts)


@partial(
    Rule,
    "DLP023",
    "not-negotiated",
    "info",
    "The consumer says its newest version, and asks again without what the producer does not know."
    " Without `max_version` it gets a legacy capsule.",
    show_not_negotiated,
    source="`__dlpack__` has keywords only, and its notes say how to ask an older producer"
    f" ({EXPORT}, 2023.12).",
)
def not_negotiated(cases: Cases) -> Iterator[FindingRecord]:
    """The request of the consumer is refused, and one change makes it work."""
    causes = {
        case.index: cause
        for case in cases.cases
        if case.result.status == "unsupported" and (cause := _cause(case))
    }
    for group in cases.groups(
        lambda case: case.index in causes and (case.pair, causes[case.index].words)
    ):
        cause = causes[group[0].index]
        yield finding(
            group,
            ("is refused", "are refused"),
            "although the producer can deliver",
            cause.words,
            advice=replacements(cases, group, "takes it"),
        )


SAME_ADDRESS = f"{LOOK.strip()}\nif addresses[0] != addresses[1]:\n    return False"
OF_COPIES = re.compile(r"\bcop(y|ies|ied)\b|zero-copy", re.IGNORECASE)
MOST_WORDS = 12
"""Of an error."""


def show_view_refused(subject: Subject) -> Effect:
    has_addresses = subject.has("address", "x") and subject.has("address", "y")
    return subject.shown(
        "refuses an array that another path takes without a copy",
        TAKES,
        recorder="",
        replace="",
        taken=subject.other.code,
        what=subject.other.code,
        look=subject.filled(SAME_ADDRESS) if has_addresses and 0 not in subject.shape else "",
    )


@partial(
    Rule,
    "DLP033",
    "view-refused",
    "info",
    "An array is refused for a copy, its dtype or its length only if no path can share it.",
    show_view_refused,
)
def view_refused(cases: Cases) -> Iterator[FindingRecord]:
    """A path refuses an array that another path of the pair takes without a copy.

    It takes the array itself, and its error says that it would have to copy, or it is a view of
    other arrays. Each way through NumPy needs what NumPy has.
    """
    viewing = {case.result.case.way for case in cases.cases if case.kind == "view"}

    def shares(case: CaseView) -> bool:
        """Whether it is a view; an empty array has no memory that shows it."""
        is_view = case.kind == "view" or (
            0 in case.result.case.shape and case.result.case.way in viewing
        )
        is_right = case.result.status == "ok" and not case.is_wrong
        return is_view and is_right and cases.safety(case).level != "unsafe"

    def find_view(case: CaseView) -> CaseView | None:
        record, text = case.result.case, case.result.reason or ""
        argument = re.split("[,)]", case.code.partition("(")[2])[0]
        forbids = case.promise == "view" or NO_COPY.search(case.code) is not None
        is_of_copies = forbids and OF_COPIES.search(text) and not text.startswith("TypeError")
        is_of_array = case.surveyed and is_contiguous(case) and record.way in viewing
        if argument != record.source or not (
            is_of_copies or (is_of_array and case.promise != "copy")
        ):
            return None
        views = filter(shares, cases.arrays[case.array])
        return min(views, key=lambda view: view.cost_ns, default=None)

    def reason(case: CaseView) -> str:
        return first_words(case.result.reason or "", MOST_WORDS)

    views = {
        case.index: view
        for case in cases.cases
        if case.failure == "refused" and _cause(case) is None and (view := find_view(case))
    }
    for group in cases.groups(lambda case: case.index in views and (case.pair[1], reason(case))):
        view = views[group[0].index]
        yield finding(
            group,
            ("refuses", "refuse"),
            "an array that another path takes without a copy",
            more=f"The error begins “{reason(group[0])}”.",
            advice=f"{producer_prefix(group)}{code(view)} takes it without a copy.",
            against=view,
        )


class Cause(NamedTuple):
    """The difference between the refused call and one that works, in words."""

    words: str
    evidence: dict[str, str]
    """Source text of the part that works."""


def _cause(case: CaseView) -> Cause | None:
    producer, consumer = case.pair
    events = case.result.handshake
    outcomes = {event.call: _returned(event) for event in events}
    exports = [event for event in events if event.call == "__dlpack__"]
    answers = {event.call: event.arguments or {} for event in reversed(events) if _returned(event)}
    if exports and not _returned(exports[-1]) and ASKED_OTHERWISE in answers:
        request, answer = exports[-1].arguments or {}, answers[ASKED_OTHERWISE]
        difference = _difference(request, answer)
        by_user = any(USER_WORDS.get(name, "\0") in case.code for name in {*request} - {*answer})
        if difference and not by_user:
            caller = "the call" if "__dlpack__(" in case.code else consumer
            words = f"{caller} asks {producer} {difference}"
            answered = ", ".join(
                str(value) if name.isdigit() else f"{name}={value}"
                for name, value in answer.items()
            )
            return Cause(words, {"answered": answered})
    if code := answers.get(IMPORTED_OTHERWISE, {}).get("code"):
        words = f"the capsule of {producer} is versioned, and {consumer} takes a legacy one"
        return Cause(words, {"legacy": str(code)})
    # A stand-in with the protocol alone is taken, and the source is refused.
    is_dlpack = case.result.case.protocol == "dlpack"
    protocol = "__dlpack__" if is_dlpack else "__cuda_array_interface__"
    is_taken = outcomes.get(protocol) and outcomes.get("import")
    if is_taken and case.result.refused_at == "first call":
        return Cause(f"{consumer} takes an object that has {protocol} only", {"taken": protocol})
    return None


def _difference(request: Mapping[str, Any], answer: Mapping[str, Any]) -> str:
    """Return ``without max_version`` or ``with copy``: how the refused request differs."""
    left_out = [name for name in request if name not in answer]
    if any(map(str.isdigit, left_out)) and "stream" in answer:
        return "with a positional stream"
    changed = [
        f"{name}={value}" for name, value in request.items() if answer.get(name, value) != value
    ]
    added = [name for name in answer if name not in request]
    texts = {"with": [*left_out, *changed], "without": added}
    return " and ".join(f"{how} {', '.join(names)}" for how, names in texts.items() if names)
