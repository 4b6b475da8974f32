"""What it costs beside another way: both are timed, each until its result is there."""

from __future__ import annotations

import re

from dlprof.evidence.repro.effect import Effect
from dlprof.evidence.repro.lines import block, inside
from dlprof.evidence.repro.sharing import compared
from dlprof.evidence.repro.subject import Subject
from dlprof.rules import thresholds
from dlprof.session.model import FindingRecord

TIMER = ("from timeit import Timer",)
TIMED = """\
def timed(function):
    calls, _ = Timer(function).autorange()
    return min(Timer(function).repeat(5, calls)) / calls * 1e6
"""
GAP_US = thresholds.SLOW_GAP_NS / 2 / 1e3
NAMES_USED = re.compile(r"\bused\b")
HYSTERESIS = 2
"""A time that a rule calls longer from so many times on is gone only below half of that."""


def slow_path(subject: Subject, other: Subject | None, _: FindingRecord) -> Effect:
    """Another expression gives the same and is faster."""
    fast = compared(other)
    return Effect(
        f"{subject.code} takes clearly longer than {fast.code}",
        _race(subject, fast, thresholds.LEAST_RATIO),
        TIMER,
    )


def host_bounce(subject: Subject, other: Subject | None, _: FindingRecord) -> Effect:
    """It goes through the host: another path is faster, or it costs what going there costs."""
    symptom = f"{subject.code} goes through the host"
    if other is not None:
        return Effect(symptom, _race(subject, other, thresholds.LEAST_RATIO), TIMER)
    body = block(
        TIMED,
        subject.create_as_seen(),
        subject.function("convert"),
        "times = timed(convert), timed(lambda: " + subject.source("values") + ")",
        'print("the conversion takes %.1f us, a copy of x to the host %.1f us" % times)',
        "return times[0] > 0.8 * times[1]",
    )
    return Effect(symptom, body, TIMER)


def asymmetric(subject: Subject, other: Subject | None, _: FindingRecord) -> Effect:
    """One direction costs many times the other."""
    back = compared(other)
    ratio = thresholds.ASYMMETRIC_RATIO / HYSTERESIS
    gap_us = thresholds.ASYMMETRIC_GAP_NS / HYSTERESIS / 1e3
    body = block(
        TIMED,
        subject.create_as_seen(),
        subject.function("there"),
        "there_us = timed(there)",
        back.create_as_seen(),
        back.function("back"),
        "back_us = timed(back)",
        'print(f"there: {there_us:.2f} us, back: {back_us:.2f} us")',
        f"return there_us > {ratio:g} * back_us and there_us - back_us > {gap_us:g}",
    )
    there = f"{subject.result.case.producer} to {subject.result.case.consumer}"
    symptom = f"from {there}, {subject.code} takes many times as long as {back.code} back"
    return Effect(symptom, body, TIMER)


def in_loop(subject: Subject, _: Subject | None, __: FindingRecord) -> Effect:
    """A loop with the conversion inside, beside one with the conversion before it."""
    wait = subject.wait_for_result("used")
    name = "used = " if NAMES_USED.search(wait) else ""
    use, use_before = (
        block(f"{name}{subject.converted('use', y)}", wait) for y in ("y", "converted")
    )
    share = thresholds.LOOP_SHARE / HYSTERESIS
    gap_us = thresholds.LOOP_GAP_NS / HYSTERESIS / 1e3
    body = block(
        subject.create_as_seen(),
        subject.function("convert"),
        f"def inside():\n{inside(block('y = convert()', use))}",
        "converted = convert()",
        f"def before():\n{inside(use_before)}",
        "# in turns: what slows the machine for a while slows both",
        "calls = max(Timer(inside).autorange()[0] // 5, 1)",
        "turns = [[Timer(way).timeit(calls) for way in (inside, before)] for _ in range(25)]",
        "times = tuple(min(found) / calls * 1e6 for found in zip(*turns))",
        'print("one turn: %.2f us with the conversion inside, %.2f us with it before" % times)',
        "part = times[0] - times[1]",
        f"return part > {share:g} * times[0] and part > {gap_us:g}",
    )
    return Effect(f"{subject.code} takes a good part of a loop", body, TIMER)


def _race(subject: Subject, fast: Subject, ratio: float) -> str:
    return block(
        TIMED,
        subject.create_as_seen(),
        subject.function("slow"),
        fast.function("fast"),
        "times = timed(slow), timed(fast)",
        'print("slow: %.2f us, fast: %.2f us" % times)',
        f"return times[0] > {ratio:g} * times[1] + {GAP_US:g}",
    )
