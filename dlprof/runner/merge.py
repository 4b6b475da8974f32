"""From the answers of several processes to one result per case."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from dlprof.protocol.messages import DIAGNOSIS
from dlprof.runner.merge_times import (
    Parts,
    merge_device_time,
    merge_placement,
    merge_step,
    merge_time,
)
from dlprof.runner.session import Note, Result, TimeMeasure

Answers = Sequence[tuple[int, dict[str, Any]]]

VERDICTS = ("values", "settings", "refusal", "fresh_source", *DIAGNOSIS, "trace")
PRECEDENCE = {"crashed": 0, "invalid": 2}
"""If several rounds failed, the case has the status that comes first here. Those that are not
listed are 1: a disturbed round says less than one that was refused."""

DEVICE = "result_device"
ALIGNMENT, ALIGNMENTS = "source_alignment_bytes", "source_alignments_bytes"
"""In the evidence of *ownership*: of one process, and of several that agree but for that."""


def merge(record: dict[str, Any], answers: Answers, rounds: int) -> Result:
    """The result of one case; ``answers`` are (round, answer) as workers gave them.

    An answer that breaks the session's contract makes the result ``crashed``, with the reason.
    """
    try:
        return Result.model_validate(_content(record, answers, rounds))
    except (
        ValidationError,
        TypeError,
        LookupError,
        ValueError,
        AttributeError,
        ArithmeticError,
    ) as error:
        fault = f"{type(error).__name__}: {error}".splitlines()[0]
        reason = f"broken answer from the worker: {fault}"
        lost = {"case": record, "status": "crashed", "reason": reason, "lost": None}
        return Result.model_validate(lost)


def without_times(result: Result) -> Result:
    """The result without what an untimed process spent."""
    none = dict.fromkeys(("first_call_ns", "first_call_cases_before"))
    return result.model_copy(update={**none, "untimed": True})


def _content(record: dict[str, Any], answers: Answers, rounds: int) -> dict[str, Any]:
    status, reason, lost = _status(answers, rounds)
    parts = [(round_, answer["parts"]) for round_, answer in answers]
    host = merge_time(parts, "host_time")
    ready = merge_time(parts, "ready_time")
    if ready is None and host is not None and not _lost_ready_time(answers):
        ready = host.model_copy(update={"processes": [], "same_as": "host_time"})
    # The call with the fewest conversions before it is the closest to a first one.
    first = min(_all(parts, "first_call"), key=lambda call: call["cases_before"], default=None)
    owned = _ownership(_all(parts, "ownership"))
    return {
        "case": record,
        "status": status,
        "reason": reason,
        "lost": lost,
        "refused_at": next(reversed(_all(parts, "refused_at")), None),
        "host_time": host,
        "ready_time": ready,
        "first_call_ns": first and first["ns"],
        "first_call_peak_bytes": first and first.get("peak_bytes"),
        "first_call_cases_before": first and first["cases_before"],
        "phases": _phases(_all(parts, "phases")),
        "device_time": _device_time(parts, owned),
        **{name: agree(_all(parts, name)) for name in VERDICTS},
        "lifetime": agree(_all(parts, "lifetime")),
        "ownership": owned,
        "copy_cost": _copy_cost(parts, ready),
        "recipe": next(reversed(_all(parts, "recipe")), None),
        "placement": merge_placement(parts, ready),
        "step": merge_step(parts, agree),
        "handshake": next(reversed(_all(parts, "handshake")), []),
        "notes": [*_notes(answers)],
        "in_company": _in_company(parts),
        "output": next((answer["output"] for _, answer in answers if answer.get("output")), None),
        "rounds": [
            round_ for round_, answer in answers if answer["status"] == "ok" and round_ < rounds
        ],
    }


def agree(verdicts: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """One verdict of several processes; ``varies`` with every evidence if they disagree."""
    if not verdicts:
        return None
    words = [verdict["verdict"] for verdict in verdicts]
    if len(set(words)) == 1:
        return verdicts[0]
    seen = ", ".join(f"{word} in {words.count(word)}" for word in sorted(set(words)))
    return _varies(verdicts, f"{seen} of {len(words)} processes")


def _varies(verdicts: Sequence[dict[str, Any]], reason: str) -> dict[str, Any]:
    return {"verdict": "varies", "evidence": {"reason": reason, "processes": list(verdicts)}}


OTHER_STREAM = "the copy was not made on the consumer's stream, where device time is measured"


def _device_time(parts: Parts, owned: dict[str, Any] | None) -> dict[str, Any] | None:
    """The merged device time; unknown for a copy within the device that took none of it there."""
    found = merge_device_time(parts)
    if found is None or found["verdict"] != "ok" or owned is None or owned["verdict"] != "copy":
        return found
    elsewhere = found["warm"]["median_ns"] < found["resolution_ns"]
    if not elsewhere or owned["evidence"].get("result_device") != "cuda":
        return found
    return {"verdict": "unknown", "reason": OTHER_STREAM}


def _all(parts: Parts, name: str) -> list[Any]:
    return [part[name] for _, part in parts if name in part]


def _status(answers: Answers, rounds: int) -> tuple[str, str | None, dict[str, Any] | None]:
    """The status, its reason, and how the worker was lost."""
    if not answers:
        return "skipped", "the run was stopped before it", None
    failed = [(round_, answer) for round_, answer in answers if answer["status"] != "ok"]
    if not failed:
        return "ok", None, None
    round_, answer = min(failed, key=lambda entry: PRECEDENCE.get(entry[1]["status"], 1))
    worked = sum(other["status"] == "ok" for _, other in answers)
    where = f" (round {round_ + 1} of {rounds}; {worked} before it worked)" if worked else ""
    return answer["status"], f"{answer['reason']}{where}", answer.get("lost")


def _lost_ready_time(answers: Answers) -> bool:
    """Whether the wait for a result failed: then the host's time is not the ready time."""
    return any(
        (answer["status"] != "ok" and answer.get("stage") == "ready_time")
        or any(failure["instrument"] == "ready_time" for failure in answer.get("failures", ()))
        for _, answer in answers
    )


def _phases(found: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    if not found:
        return None
    names = ("export_ns", "import_ns", "release_ns", "resolution_ns")
    times = {name: [one[name] for one in found if one[name] is not None] for name in names}
    return {name: statistics.median(one) if one else None for name, one in times.items()}


def _ownership(verdicts: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """The verdict of all; if their arrays began at several alignments, with all of these. Results
    on several devices do not agree.
    """
    found = agree(verdicts)
    if found is None or found["verdict"] == "varies":
        return found
    devices = sorted({str(where) for one in verdicts if (where := one["evidence"].get(DEVICE))})
    if len(devices) > 1 and found["verdict"] != "unknown":
        return _varies(verdicts, f"the results are on {' and '.join(devices)}")
    sizes = {size for one in verdicts if (size := one["evidence"].get(ALIGNMENT)) is not None}
    if len(sizes) < 2:  # noqa: PLR2004 - several
        return found
    return {**found, "evidence": {**found["evidence"], ALIGNMENTS: sorted(sizes)}}


def _copy_cost(parts: Parts, ready: TimeMeasure | None) -> dict[str, Any] | None:
    if any(one["verdict"] == "view" for one in _all(parts, "ownership")):
        return None  # the time of all processes is that of no copy
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


def _in_company(parts: Parts) -> dict[str, Any] | None:
    """What became of a case after other cases of its process, before it was tried again alone."""
    found = [(round_, part["in_company"]) for round_, part in parts if "in_company" in part]
    if not found:
        return None
    crashes = [one for _, one in found if one["status"] == "crashed"]
    return {**(crashes or [found[0][1]])[0], "rounds": [round_ for round_, _ in found]}


def _notes(answers: Answers) -> dict[Note, None]:
    failures = (one for _, answer in answers for one in answer.get("failures", ()))
    return dict.fromkeys(Note(one["reason"], one["instrument"]) for one in failures)
