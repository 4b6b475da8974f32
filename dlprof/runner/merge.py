"""Merge the answers of several processes to one result per case.

The independent sample is the process, not the loop iteration: an interval over the iterations of
one process is narrow around a biased value.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from dlprof.protocol.messages import DIAGNOSIS
from dlprof.runner.session import (
    Placement,
    ProcessSamples,
    Result,
    Share,
    TimeMeasure,
)

Answers = Sequence[tuple[int, dict[str, Any]]]
Parts = Sequence[tuple[int, dict[str, Any]]]
"""Round and parts of each answer, or round and one part."""

VERDICTS = ("values", "settings", "warnings", "refusal", "fresh_source", *DIAGNOSIS, "trace")
PRECEDENCE = {"crashed": 0, "invalid": 2}
"""If several rounds failed, the case has the status with the lowest number; others have 1."""

PLACEMENTS = {"in-loop": "in_loop", "hoisted": "hoisted", "implicit": "implicit"}
LOOPS = ("steady", "other", "changing")
OTHER_STREAM = "the copy was not made on the consumer's stream, where device time is measured"


def merge(record: dict[str, Any], answers: Answers, rounds: int, untimed: bool = False) -> Result:
    """Merge the answers to one case, each with its round, as workers gave them.

    An answer that breaks the session's contract makes the result ``crashed``, with the reason.
    """
    try:
        return Result.model_validate(_content(record, answers, rounds, untimed))
    except (TypeError, LookupError, ValueError, AttributeError, ArithmeticError) as error:
        fault = f"{type(error).__name__}: {error}".splitlines()[0]
        reason = f"broken answer from the worker: {fault}"
        return Result.model_validate({"case": record, "status": "crashed", "reason": reason})


def _content(
    record: dict[str, Any], answers: Answers, rounds: int, untimed: bool
) -> dict[str, Any]:
    status, reason, lost = _status(answers, rounds)
    parts = [(round_, answer["parts"]) for round_, answer in answers]
    failures = [failure for _, answer in answers for failure in answer.get("failures", ())]
    host = merge_time(parts, "host_time")
    ready = merge_time(parts, "ready_time")
    # If the wait for a result failed, the host's time is not the ready time.
    stages = {answer.get("stage") for _, answer in answers if answer["status"] != "ok"}
    is_lost = "ready_time" in {*stages, *(failure["instrument"] for failure in failures)}
    if ready is None and host is not None and not is_lost:
        ready = host.model_copy(update={"same_as": "host_time"})
    # The call with the fewest conversions before it is the closest to a first one.
    first = min(_all(parts, "first_call"), key=lambda call: call["cases_before"], default=None)
    spent = None if untimed else first
    notes = dict.fromkeys((failure["instrument"], failure["reason"]) for failure in failures)
    owned = _ownership(_all(parts, "ownership"))
    return {
        "case": record,
        "status": status,
        "reason": reason,
        "lost": lost,
        "refused_at": next(reversed(_all(parts, "refused_at")), None),
        "host_time": host,
        "ready_time": ready,
        "first_call_ns": spent and spent["ns"],
        "first_call_cases_before": spent and spent["cases_before"],
        "device_time": _device_time(parts, owned),
        **{name: agree(_all(parts, name)) for name in VERDICTS},
        "lifetime": _lifetime(parts, rounds),
        "exit": agree(_all(parts, "exit")),
        "ownership": owned,
        "copy_cost": _copy_cost(parts, ready),
        "recipe": next(reversed(_all(parts, "recipe")), None),
        "placement": merge_placement(parts, ready),
        "step": _step(parts),
        "handshake": next(reversed(_all(parts, "handshake")), []),
        "notes": [{"instrument": name, "reason": reason} for name, reason in notes],
        "in_company": _company(parts),
        "output": next((answer["output"] for _, answer in answers if answer.get("output")), None),
        "rounds": [
            round_ for round_, answer in answers if answer["status"] == "ok" and round_ < rounds
        ],
        "untimed": untimed,
    }


def agree(verdicts: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """Merge the verdicts of several processes: ``varies``, with every evidence, if they differ."""
    if not verdicts:
        return None
    words = [verdict["verdict"] for verdict in verdicts]
    if len(set(words)) == 1:
        return verdicts[0]
    counts = ", ".join(f"{word} in {words.count(word)}" for word in sorted(set(words)))
    return _varies(verdicts, f"{counts} of {len(words)} processes")


def _lifetime(parts: Parts, rounds: int) -> dict[str, Any] | None:
    """Merge the looks at the lifetime. A brief one counts only for what it found."""
    looks = _parts_by_round(parts, "lifetime")
    whole = [look for round_, look in looks if round_ <= rounds]
    brief = [look for round_, look in looks if round_ > rounds]
    if all(look["verdict"] == "safe" for look in brief):
        return agree(whole)
    return agree([*whole, *brief])


def _varies(verdicts: Sequence[dict[str, Any]], reason: str) -> dict[str, Any]:
    return {"verdict": "varies", "evidence": {"reason": reason}, "processes": list(verdicts)}


def _device_time(parts: Parts, owned: dict[str, Any] | None) -> dict[str, Any] | None:
    """Merge the device times of several rounds; the newest answer if no process has one.

    A copy within the device that took no time on its stream is unknown.
    """
    found = _parts_by_round(parts, "device_time")
    known = [(round_, part) for round_, part in found if part["verdict"] == "ok"]
    if not known:
        return dict(found[-1][1]) if found else None
    last = known[-1][1]
    warm, cold = merge_time(known, "warm"), merge_time(known, "cold")
    if (
        owned is not None
        and owned["verdict"] == "copy"
        and owned["evidence"].get("result_device") == "cuda"
        and warm is not None
        and warm.median_ns < last["resolution_ns"]
    ):
        return {"verdict": "unknown", "reason": OTHER_STREAM}
    reasons = [part["reason"] for _, part in found if part["verdict"] != "ok"]
    return {
        **last,
        "reason": reasons[-1] if reasons else last.get("reason"),
        "warm": warm,
        "cold": cold,
    }


def _parts_by_round(parts: Parts, name: str) -> list[tuple[int, Any]]:
    """Return each part of this name with its round."""
    return [(round_, part[name]) for round_, part in parts if name in part]


def _all(parts: Parts, name: str) -> list[Any]:
    return [part for _, part in _parts_by_round(parts, name)]


def _status(answers: Answers, rounds: int) -> tuple[str, str | None, dict[str, Any] | None]:
    """Return the status, its reason, and how the worker was lost."""
    if not answers:
        return "skipped", "the run was stopped before it", None
    failed = [(round_, answer) for round_, answer in answers if answer["status"] != "ok"]
    if not failed:
        return "ok", None, None
    round_, answer = min(failed, key=lambda entry: PRECEDENCE.get(entry[1]["status"], 1))
    worked = sum(answer["status"] == "ok" and number < rounds for number, answer in answers)
    where = f" (round {round_ + 1} of {rounds}; {worked} before it worked)" if worked else ""
    return answer["status"], f"{answer['reason']}{where}", answer.get("lost")


def _ownership(verdicts: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """Merge the verdicts, with the alignments of all sources.

    Results on several devices do not agree.
    """
    found = agree(verdicts)
    if found is None or found["verdict"] == "varies":
        return found
    looks = [verdict["evidence"] for verdict in verdicts]
    devices = sorted({str(look["result_device"]) for look in looks if look.get("result_device")})
    if len(devices) > 1 and found["verdict"] != "unknown":
        return _varies(verdicts, f"the results are on {' and '.join(devices)}")
    sizes = {look["source_alignment_bytes"] for look in looks if look.get("source_alignment_bytes")}
    evidence = {**found["evidence"], "source_alignments_bytes": sorted(sizes)}
    return {**found, "evidence": evidence} if len(sizes) > 1 else found


def _copy_cost(parts: Parts, ready: TimeMeasure | None) -> dict[str, Any] | None:
    if any(verdict["verdict"] == "view" for verdict in _all(parts, "ownership")):
        return None  # the time is not that of a copy in every process
    found = _all(parts, "copy_cost")
    size_bytes = found[0]["size_bytes"] if found else 0
    if not size_bytes or ready is None or ready.median_ns <= 0:
        return None
    memcpy = statistics.median(cost["memcpy_gb_per_s"] for cost in found)
    speed = size_bytes / ready.median_ns
    return {
        "size_bytes": size_bytes,
        "gb_per_s": speed,
        "memcpy_gb_per_s": memcpy,
        "share_of_memcpy": speed / memcpy,
        # Other programs only ever add time.
        "least_ns": min((cost["least_ns"] for cost in found if "least_ns" in cost), default=None),
    }


def _company(parts: Parts) -> dict[str, Any] | None:
    """Return the first crash of the case in a shared process, before it was measured alone."""
    found = _parts_by_round(parts, "in_company")
    if not found:
        return None
    crashes = [result for _, result in found if result["status"] == "crashed"]
    return {**(crashes or [found[0][1]])[0], "rounds": [round_ for round_, _ in found]}


def merge_time(parts: Parts, name: str) -> TimeMeasure | None:
    """Merge the time called ``name`` of several rounds; None if no process took it."""
    processes = [
        ProcessSamples(
            round=round_,
            loops=part[name].get("loops", 1),
            samples_ns=[round(sample, 2) for sample in part[name]["samples_ns"]],
            page_faults_per_call=part[name].get("page_faults_per_call"),
            disturbed=part[name].get("disturbed"),
        )
        for round_, part in parts
        if name in part
    ]
    if not processes:
        return None
    medians = [statistics.median(process.samples_ns) for process in processes]
    median, interval = statistics.median(medians), student_interval(medians)
    fastest = min(min(process.samples_ns) for process in processes)
    if interval is not None:  # the mean of processes in two heaps lies between them
        # No median is below the fastest sample, as an interval of few processes may be.
        interval = max(min(interval[0], median), fastest), max(interval[1], median)
    return TimeMeasure(
        median_ns=median,
        ci95_ns=interval,
        min_ns=fastest,
        processes=processes,
    )


def merge_placement(parts: Parts, convert: TimeMeasure | None) -> Placement | None:
    """Merge the times of loops; ``convert`` is the time of the conversion alone."""
    found = _parts_by_round(parts, "placement")
    if not found:
        return None
    times = [(round_, part["times"]) for round_, part in found]
    measures = {field: merge_time(times, name) for name, field in PLACEMENTS.items()}
    loops = (
        (_median_ns(loop_times["hoisted"]), _median_ns(loop_times["in-loop"]))
        for _, loop_times in times
        if "hoisted" in loop_times and "in-loop" in loop_times
    )
    share = saved_share(loops)
    return Placement(
        use=found[-1][1]["use"],
        **measures,
        share=share,
        break_even_iterations=break_even(convert, measures["in_loop"], measures["hoisted"], share),
        refused={name: words for _, part in found for name, words in part["refused"].items()},
    )


def break_even(
    convert: TimeMeasure | None,
    in_loop: TimeMeasure | None,
    hoisted: TimeMeasure | None,
    share: Share | None,
) -> int | None:
    """Return the iterations from which converting before the loop is faster; None if not known."""
    if convert is None or in_loop is None or hoisted is None:
        return None
    if share is None or share.ci95 is None or not share.is_known or share.ci95[0] <= 0:
        return None
    saved_ns = in_loop.median_ns - hoisted.median_ns
    if saved_ns <= 0:
        return None
    # A single iteration saves nothing.
    return max(2, math.floor(convert.median_ns / saved_ns) + 1)


def saved_share(times_ns: Iterable[tuple[float, float]]) -> Share | None:
    """Return the part of the second time that the first one saves, from pairs of one process."""
    ratios = [part / whole for part, whole in times_ns if whole > 0]
    if not ratios:
        return None
    interval = student_interval(ratios)
    return Share(
        median=1 - statistics.median(ratios),
        ci95=None if interval is None else (1 - interval[1], 1 - interval[0]),
    )


def _step(parts: Parts) -> dict[str, Any] | None:
    """Merge the parts of a step of inference."""
    times = [(round_, part["times"]) for round_, part in _parts_by_round(parts, "versus")]
    changes_ns = [_change_ns(part["times"]) for part in _all(parts, "shape_change")]
    allocations: dict[str, Any] = next(iter(_all(parts, "allocations")), {})
    reuse = agree(_all(parts, "reuse"))
    if not (times or changes_ns or allocations or reuse):
        return None
    return {
        "reading": merge_time(times, "reading"),
        "saved": saved_share(
            (undisturbed_ns(loop_times["step"]), undisturbed_ns(loop_times["fresh"]))
            for _, loop_times in times
            if "step" in loop_times
        ),
        "change_ns": statistics.median(changes_ns) if changes_ns else None,
        "change_ci95_ns": mean_interval(changes_ns),
        "allocations_per_call": allocations.get("per_call"),
        "kept": allocations.get("kept"),
        "buffers": allocations.get("buffers"),
        "reuse": reuse,
    }


def _change_ns(times: dict[str, Any]) -> float:
    """Return the time that a change of shape adds to a step. A turn of the loop has two."""
    steady, other, changing = (undisturbed_ns(times[name]) for name in LOOPS)
    return (changing - steady - other) / 2


def undisturbed_ns(timing: dict[str, Any]) -> float:
    """Return the lower quartile of one process's samples, for comparisons within the process.

    Other programs add time to more than half of few samples.
    """
    samples = [round(sample, 2) for sample in timing["samples_ns"]]  # as the session holds them
    if len(samples) == 1:
        return float(samples[0])
    return float(statistics.quantiles(samples, n=4, method="inclusive")[0])


def _median_ns(timing: dict[str, Any]) -> float:
    return float(statistics.median(timing["samples_ns"]))


def student_interval(medians_ns: Sequence[float]) -> tuple[float, float] | None:
    """Return Student's 95 % interval of the logarithms, because times are skewed.

    None for fewer than two values, and if one is not positive.
    """
    if len(medians_ns) < 2 or min(medians_ns) <= 0:  # noqa: PLR2004 - two make a spread
        return None
    low, high = _student([math.log(value) for value in medians_ns])
    try:
        return math.exp(low), math.exp(high)
    except OverflowError:
        return None


_QUANTILES = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""97.5 % quantiles of Student's distribution, by degrees of freedom from 1."""


def _student(values: Sequence[float]) -> tuple[float, float]:
    centre, error = statistics.fmean(values), statistics.stdev(values) / math.sqrt(len(values))
    freedom = len(values) - 1
    if freedom <= len(_QUANTILES):
        quantile = _QUANTILES[freedom - 1]
    else:  # Cornish and Fisher
        quantile = 1.95996 + 2.37227 / freedom + 2.8225 / freedom**2
    return centre - quantile * error, centre + quantile * error


def mean_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """Return Student's 95 % interval of values that may be negative; it holds their median."""
    if len(values) < 2:  # noqa: PLR2004 - two make a spread
        return None
    (low, high), median = _student(values), statistics.median(values)
    return min(low, median), max(high, median)
