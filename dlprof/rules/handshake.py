"""What was asked? Rules on the transcript between consumer and producer."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from dlprof.analysis.case_view import CaseView
from dlprof.analysis.cases import Cases, groups
from dlprof.rules import observations, words
from dlprof.rules.rule import Claim, Rule
from dlprof.session.evidence import HandshakeEvent

PROTOCOLS = ("dlpack", "cuda-array-interface")
"""Where the transcript is that of the real call. For host arrays the consumer asks the buffer
protocol first, which the proxy that records cannot stand in for."""
WHOLE = ("import", "export")
"""Events that stand for the whole call."""


def handshake_retry(survey: Cases) -> Iterator[Claim]:
    """The producer refuses what it is asked first, and the consumer asks again."""
    asking = [case for case in survey.cases if _refusal(case)]
    for cases in groups(asking, lambda case: case.pair):
        refused = _refusal(cases[0]) or HandshakeEvent()
        yield Claim(
            "info",
            cases,
            f"{words.codes(cases)} {words.several(cases, 'asks', 'ask')} twice"
            f"{words.shared(cases, _refused)}",
            {"refused_ns": refused.ns, "outcome": str(refused.outcome)[:120]},
            "Only the frameworks can mend it: the consumer asks for more than the producer knows.",
        )


def _refused(case: CaseView) -> str:
    refused = _refusal(case) or HandshakeEvent()
    return f"{case.pair[0]} refuses the first {refused.call} ({str(refused.outcome)[:120]})"


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


RULES = (Rule("DLP015", "handshake-retry", handshake_retry, seen=observations.handshake),)
