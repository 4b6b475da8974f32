"""Whether HEAD can be measured against a finished session at all; asked before it is measured."""

from __future__ import annotations

from dlprof.compare.match import key
from dlprof.compare.record import TIMED
from dlprof.compare.sequential import LOOKS
from dlprof.compare.surroundings import differences, refusal
from dlprof.errors import Unmeasured, Unsure, UsageError
from dlprof.gate.cases import cases_of, settings_of
from dlprof.plan.catalog import environment
from dlprof.scenario.request import Sweep
from dlprof.session.model import Header, Session

TOLD = "take a new baseline with: dlprof sweep SCENARIO --rounds 10 -o FILE"


def check(baseline: Session, head: Sweep, across_pythons: bool = False) -> None:
    """Raises :class:`Unsure` where no time could be compared, and says why.

    :class:`Unmeasured` where the baseline has nothing that HEAD is asked for, and
    :class:`UsageError` where it does not say which of its environments is meant.
    """
    if len(baseline.environments) > 1:
        names = ", ".join(str(one.get("name")) for one in baseline.environments)
        raise UsageError(f"the baseline was measured in several environments: {names}")
    wanted = {key(case) for case in cases_of(head)}
    timed = {key(one.case) for one in baseline.results if one.status in TIMED}
    if not timed:
        raise Unmeasured("the baseline holds no case that was measured")
    if not wanted & timed:
        raise Unmeasured("the baseline has no case of this scenario: it is of another one")
    reason = refusal(differences(baseline, _here(head)), across_pythons)
    if reason is not None:
        raise Unsure(f"HEAD cannot be compared with the baseline: {reason}; {TOLD}")


def _here(head: Sweep) -> Header:
    """What a session of HEAD would say of its surroundings."""
    return Header(
        created="",
        command=[],
        seed=0,
        environment=environment(head.catalog, {}),
        request={"settings": settings_of(head, LOOKS[-1]).as_dict()},
    )
