"""Rules: pure functions from what was measured to findings.

Nothing here measures, reads or writes, or knows a framework by name. Every number on which a rule
decides stands in :mod:`dlprof.rules.thresholds`; what is unknown fires nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dlprof.rules import (
    copying,
    correctness,
    cost,
    handshake,
    layout,
    lifetime,
    promise,
    tearing,
    thresholds,
    trouble,
    waiting,
)
from dlprof.rules.finding import SEVERITIES, Finding, worst_first
from dlprof.rules.rule import Rule
from dlprof.rules.survey import surveys
from dlprof.session.model import Result

__all__ = ["NEEDS", "RULES", "SEVERITIES", "Finding", "Rule", "findings"]

RULES = (
    Rule("DLP001", "host-sync", waiting.host_sync, needs="ordering"),
    Rule("DLP002", "device-sync", waiting.device_sync, needs="ordering"),
    Rule("DLP003", "unordered", waiting.unordered, needs="ordering"),
    Rule("DLP004", "avoidable-copy", copying.avoidable_copy, times=True),
    Rule("DLP005", "copy-amplification", copying.copy_amplification, needs="peak_memory"),
    Rule("DLP006", "host-bounce", copying.host_bounce),
    Rule("DLP007", "dtype-changed", correctness.dtype_changed, lacks=correctness.lacks_values),
    Rule("DLP008", "wrong-values", correctness.wrong_values, lacks=correctness.lacks_values),
    Rule("DLP009", "read-only-lost", correctness.read_only_lost),
    Rule("DLP010", "memory-retained", lifetime.memory_retained, needs="lifetime"),
    Rule("DLP011", "dangling", lifetime.dangling, needs="lifetime"),
    Rule("DLP012", "slow-path", cost.slow_path, times=True),
    Rule("DLP013", "asymmetric", cost.asymmetric, lacks=cost.lacks_direction, times=True),
    Rule("DLP014", "convert-in-loop", cost.convert_in_loop, lacks=cost.lacks_loops, times=True),
    Rule("DLP015", "handshake-retry", handshake.handshake_retry),
    Rule("DLP016", "crash", trouble.crash),
    Rule("DLP017", "layout-copy", layout.layout_copy, times=True),
    Rule("DLP018", "promise-broken", promise.promise_broken),
    Rule("DLP019", "early-return", waiting.early_return),
    Rule("DLP020", "unsafe-copy", tearing.unsafe_copy, needs="early_write"),
)
"""In the order of their ids, which never change their meaning."""

NEEDS = {rule.id: rule.needs for rule in RULES if rule.needs}
"""By rule: the instrument of the diagnosis without which it finds nothing."""


def findings(
    results: Iterable[Result], own_thresholds: Mapping[str, float] | None = None
) -> list[Finding]:
    """All findings of a session, worst first. ``results`` may be slim.

    Environments are judged apart: nothing is compared with, or advised from, another one.
    ``own_thresholds`` stand for those of :mod:`dlprof.rules.thresholds` of the same names.
    """
    seen = surveys(results)
    with thresholds.replaced(own_thresholds or {}):
        return worst_first(
            found.inside(name)
            for name, apart in seen.items()
            for rule in RULES
            for found in rule.findings(apart)
        )
