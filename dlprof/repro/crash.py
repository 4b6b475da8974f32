"""It does not come back: the conversion runs in a process of its own."""

from __future__ import annotations

import re

from dlprof.repro.effect import Effect
from dlprof.repro.lines import block, inside
from dlprof.repro.subject import Subject
from dlprof.rules.known import number
from dlprof.session import FindingRecord

CONVERSIONS = 100
LIMIT_S = 60
SHORT_S = 10
"""A conversion that gave no answer within a shorter limit is not waited for as long."""
SIGNAL = re.compile(r"killed by (SIG[A-Z0-9]{2,9})\b")


def crash(subject: Subject, _: Subject | None, finding: FindingRecord) -> Effect:
    """The process dies of the conversion, or the conversion never returns."""
    often = block(f"y = {subject.code}", subject.wait_for_result())
    guarded = block(
        f"try:\n{inside(f'for _ in range({CONVERSIONS}):' + chr(10) + inside(often))}",
        "except Exception as refusal:  # an error is an answer; a dead process is none",
        "    print('it refuses:', refusal)",
        "return False",
    )
    reason = " ".join(filter(None, (subject.result.reason, finding.summary)))
    killed = SIGNAL.search(reason)
    hangs = "no answer" in reason
    how = "never returns" if hangs else f"kills the process{f' ({killed[1]})' if killed else ''}"
    child = block(subject.create(), guarded)
    return in_child(f"{subject.code} {how}", child, _limit_s(reason) if hangs else LIMIT_S)


def in_child(symptom: str, child: str, limit_s: float, imports: tuple[str, ...] = ()) -> Effect:
    """An effect whose conversion may end its process."""
    body = f"""\
command = [sys.executable, __file__, "convert"]
try:
    child = subprocess.run(command, timeout={limit_s:g})
except subprocess.TimeoutExpired:
    print("no answer within {limit_s:g} s")
    return True
print("the process that converted ended with exit code", child.returncode)
if child.returncode == 125:
    raise RuntimeError("see above")
return child.returncode != 0"""
    return Effect(symptom, body, ("import subprocess", *imports), child)


def _limit_s(reason: str) -> float:
    """As long as dlprof waited, if that is not very long; ten seconds at least."""
    match = re.search(r"no answer within ([0-9.]{1,9}) s", reason)
    told = number(float(match[1])) if match and match[1].count(".") <= 1 else None
    return min(max(told or LIMIT_S, SHORT_S), LIMIT_S)
