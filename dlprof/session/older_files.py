"""What older files say in words only, as the fields that this version has for it."""

from __future__ import annotations

import re
from typing import Any

from dlprof.protocol.messages import DIAGNOSIS

LOST = re.compile(r"(?P<how>.+) during (?P<stage>[a-z_ ]+?)(?: \(.*\))?", re.DOTALL)
HOW = re.compile(
    r"killed by (?P<signal>SIG[A-Z0-9]{2,9})\b"
    r"|the process ended with exit code (?P<exit_code>[0-9]{1,3})"
    r"|no answer within (?P<limit_s>[0-9]{1,6}(?:\.[0-9]{1,6})?(?:e\+[0-9]{1,2})?) s"
)
NOT_LOST = ("the probe is faulty", "broken answer from the worker")
LONGEST, LONGEST_HOW = 4000, 200


def with_lost(result: dict[str, Any]) -> dict[str, Any]:
    """A result with the field ``lost``, its own and that of each instrument."""
    status = result.get("status")
    reason = str(result.get("reason") or "")
    found = {**result, "lost": None}
    if status in ("crashed", "timeout") and not reason.startswith(NOT_LOST):
        found["lost"] = _lost(reason.strip()) or {"how": reason[:LONGEST_HOW] or status}
    for name in DIAGNOSIS:
        verdict = result.get(name)
        if not isinstance(verdict, dict) or not isinstance(verdict.get("evidence"), dict):
            continue
        evidence = verdict["evidence"]
        reason = str(evidence.get("reason") or "")
        lost = _lost(reason)
        if lost is None and evidence.get("worker") in ("crashed", "timeout"):
            lost = {"how": reason[:LONGEST_HOW], "stage": name}
        if lost is not None and ("worker" in evidence or lost["stage"].partition(" ")[0] == name):
            found[name] = {**verdict, "evidence": {**evidence, "lost": lost}}
    return found


def _lost(reason: str) -> dict[str, Any] | None:
    parts = LOST.fullmatch(reason[:LONGEST])
    if parts is None:
        return None
    how = HOW.match(parts["how"])
    told = {name: text for name, text in how.groupdict().items() if text} if how else {}
    numbers = {name: float(told[name]) for name in ("limit_s",) if name in told}
    numbers |= {name: int(told[name]) for name in ("exit_code",) if name in told}
    return {**parts.groupdict(), **told, **numbers}
