"""It does not come back: the conversion runs in a process of its own."""

from __future__ import annotations

import math
import re

from dlprof.errors import NoReproducer
from dlprof.evidence.repro.effect import Effect
from dlprof.evidence.repro.lines import block, inside
from dlprof.evidence.repro.subject import Subject
from dlprof.session.model import FindingRecord

CONVERSIONS = 100
ENOUGH_S = 20
"""A slow conversion is repeated for so long, and no longer."""
LIMIT_S = 150
"""For the whole process, its imports and the array included: a ticket waits a little longer."""
IMPORTS_S = 60
"""Of it for imports and the array, where the conversion has a limit of its own."""
SHORTEST_S, LONGEST_S = 10, 90
"""Of that limit; one that was longer for dlprof is too long for a script."""
SIGNAL = re.compile(r"killed by (SIG[A-Z0-9]{2,9})\b")
CLOCK = "from time import perf_counter"
LATE = re.compile(r"no answer within ([0-9]{1,6}(?:\.[0-9]{1,6})?(?:e\+[0-9]{1,2})?) s")


def crash(subject: Subject, _: Subject | None, finding: FindingRecord) -> Effect:
    """The process dies of the conversion, or the conversion never returns."""
    if subject.result.status == "ok":
        raise NoReproducer(
            "the process was lost in an instrument, which converts in ways of its own; alone, the"
            " conversion came back"
        )
    reason = f"{subject.result.reason or ''} {finding.summary}"
    killed, late = SIGNAL.search(reason), LATE.search(reason)
    if late:
        limit_s = math.ceil(max(float(late[1]), SHORTEST_S))
        if limit_s > LONGEST_S:
            raise NoReproducer(f"it would have to wait {limit_s:,} s for an answer, as dlprof did")
        child = _answering(subject, _again(subject, limit_s))
        symptom = f"{subject.code} gives no answer within {late[1]} s"
        run = _started(limit_s + IMPORTS_S)
        return in_child(symptom, child, run, ("import signal", CLOCK))
    how = f"kills the process{f' ({killed[1]})' if killed else ''}"
    child = _answering(subject, _again(subject))
    return in_child(f"{subject.code} {how}", child, imports=(CLOCK,))


def _answering(subject: Subject, conversions: str) -> str:
    """Make the array and convert it; a refusal is an answer."""
    return block(
        subject.create(),
        f"try:\n{inside(conversions)}",
        "except (BufferError, RuntimeError, ValueError) as refusal:  # this is an answer",
        '    print("it refuses:", refusal)',
        "return False",
    )


def _again(subject: Subject, limit_s: int = 0) -> str:
    """Conversions one after the other; each has ``limit_s``, where there is one."""
    alarm = f"signal.alarm({limit_s})  # ends the process if there is no answer by then"
    turn = block(
        alarm if limit_s else "",
        subject.discarded(),
        "if perf_counter() > end:\n    break",
    )
    return block(
        f"end = perf_counter() + {ENOUGH_S}",
        f"for _ in range({CONVERSIONS}):\n{inside(turn)}",
        "signal.alarm(0)" if limit_s else "",
    )


def in_child(symptom: str, child: str, run: str = "", imports: tuple[str, ...] = ()) -> Effect:
    """An effect whose conversion may end its process; ``run`` is the text that starts it."""
    body = block(
        run or _started(LIMIT_S),
        'print("the process that converted ended with exit code", child.returncode)',
        "if child.returncode == 2:\n    sys.exit(2)",
        "return child.returncode != 0",
    )
    return Effect(symptom, body, ("import subprocess", *imports), child)


def _started(limit_s: float) -> str:
    return f'child = subprocess.run([sys.executable, __file__, "convert"], timeout={limit_s:g})'
