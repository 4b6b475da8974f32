"""It does not come back: the conversion runs in a process of its own."""

from __future__ import annotations

import re

from dlprof.errors import NoReproducer
from dlprof.repro.effect import Effect
from dlprof.repro.lines import block, inside
from dlprof.repro.subject import Subject
from dlprof.session import FindingRecord

CONVERSIONS = 100
LIMIT_S = 60
SHORT_S = 10
"""A conversion that gave no answer within a shorter limit is not waited for as long."""
SIGNAL = re.compile(r"killed by (SIG[A-Z0-9]{2,9})\b")
LATE = re.compile(r"no answer within ([0-9]{1,6}(?:\.[0-9]{1,6})?(?:e\+[0-9]{1,2})?) s")


def crash(subject: Subject, _: Subject | None, finding: FindingRecord) -> Effect:
    """The process dies of the conversion, or the conversion never returns."""
    if subject.result.status == "ok":
        raise NoReproducer(
            "the process was lost in an instrument, which converts in ways of its own; alone, the"
            " conversion came back"
        )
    child = block(
        subject.create(),
        "try:",
        inside(f"for _ in range({CONVERSIONS}):\n{inside(subject.discarded())}"),
        "except (BufferError, RuntimeError, ValueError) as refusal:  # this is an answer",
        '    print("it refuses:", refusal)',
        "return False",
    )
    reason = f"{subject.result.reason or ''} {finding.summary}"
    killed, late = SIGNAL.search(reason), LATE.search(reason)
    how = "never returns" if late else f"kills the process{f' ({killed[1]})' if killed else ''}"
    limit_s = min(max(float(late[1]), SHORT_S), LIMIT_S) if late else LIMIT_S
    return in_child(f"{subject.code} {how}", child, _patient(limit_s))


def in_child(symptom: str, child: str, run: str = "", imports: tuple[str, ...] = ()) -> Effect:
    """An effect whose conversion may end its process; ``run`` is the text that starts it."""
    body = block(
        run or _started(LIMIT_S),
        'print("the process that converted ended with exit code", child.returncode)',
        "if child.returncode == 125:\n    sys.exit(125)",
        "return child.returncode != 0",
    )
    return Effect(symptom, body, ("import subprocess", *imports), child)


def _started(limit_s: float) -> str:
    return f'child = subprocess.run([sys.executable, __file__, "convert"], timeout={limit_s:g})'


def _patient(limit_s: float) -> str:
    """Start the child, where no answer in time is the problem itself."""
    return block(
        f"try:\n{inside(_started(limit_s))}",
        "except subprocess.TimeoutExpired:",
        f'    print("no answer within {limit_s:g} s")\n    return True',
    )
