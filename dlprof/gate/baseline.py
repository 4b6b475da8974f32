"""Whether HEAD can be measured against a finished session at all; asked before it is measured."""

from __future__ import annotations

from collections.abc import Iterator

from dlprof.catalog import environment
from dlprof.compare.match import key
from dlprof.compare.record import TIMED
from dlprof.compare.surroundings import differences
from dlprof.errors import Unmeasured, Unsure, UsageError
from dlprof.gate.cases import cases_of
from dlprof.rules.known import mapping
from dlprof.runner import Settings
from dlprof.scenario.request import Sweep
from dlprof.session import Header, Session

TOLD = "take a new baseline with: dlprof sweep SCENARIO --rounds 10 -o FILE"


def check(baseline: Session, head: Sweep) -> None:
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
    reasons = [*_machine(baseline, head), *_settings(baseline, head.request.settings)]
    if reasons:
        raise Unsure(f"the baseline cannot be compared with: {', '.join(reasons)}; {TOLD}")


def _machine(baseline: Session, head: Sweep) -> Iterator[str]:
    here = Header(created="", command=[], seed=0, environment=environment(head.catalog, {}))
    yield from (str(one) for one in differences(baseline, here) if one.kind == "machine")


def _settings(baseline: Session, here: Settings) -> Iterator[str]:
    """One process for all pairs is another process: it has more memory, and other threads."""
    then = mapping(baseline.request.get("settings")).get("together")
    if isinstance(then, bool) and then != here.together:
        yield f"together {str(then).lower()} → {str(here.together).lower()}"
