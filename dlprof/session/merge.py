"""From the answers of several rounds to one result per case."""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from dlprof.session import merge_device, merge_placement, merge_step, merge_time
from dlprof.session.journal import INTERRUPTED
from dlprof.session.measured import ALIGNMENT, ALIGNMENTS
from dlprof.session.model import ProcessSamples, Result, TimeMeasure

Answers = Sequence[tuple[int, dict[str, Any]]]

DIAGNOSIS = ("ordering", "alignment", "lifetime", "early_write", "peak_memory", "trace")
_EMPTY: dict[str, Any] = {"status": "ok", "reason": None, "parts": {}, "failures": []}
VERDICTS = ("ownership", "values", "fresh_source", *DIAGNOSIS)

_RANK = {"crashed": 0, "invalid": 2}
"""Which round's status is the case's, where several failed: the first of those with the lowest."""

READY = "ready_time"
STOP = re.compile(r" was interrupted during [a-z_ ]+$")
"""How the outcome of a case ends that a user interrupted."""

LOST_READY = re.compile(r" during ready_time\b")
"""The same, and of one that was lost there."""

_WHERE = re.compile(r" \(round \d+ of \d+; \d+ before it worked\)$")
"""What a merge adds to the reason of a case that worked in earlier rounds."""


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
        return Result.model_validate({"case": record, "status": "crashed", "reason": reason})


def _content(record: dict[str, Any], answers: Answers, rounds: int) -> dict[str, Any]:
    answers = _standing(answers)
    whole = [entry for entry in answers if entry[1]["status"] != INTERRUPTED]
    stops = [answer["reason"] for _, answer in answers if answer["status"] == INTERRUPTED]
    status, reason = _status(whole, rounds, stops)
    parts = [(round_, answer["parts"]) for round_, answer in answers]
    host = merge_time.merged(parts, "host_time")
    ready = merge_time.merged(parts, "ready_time")
    if ready is None and host is not None and not _lost_ready_time(whole or answers):
        ready = host.model_copy(update={"processes": [], "same_as": "host_time"})
    first = _first_call(parts)
    return {
        "case": record,
        "status": status,
        "reason": reason,
        "host_time": host,
        "ready_time": ready,
        "first_call_ns": first and first["ns"],
        "first_call_peak_bytes": first and first.get("peak_bytes"),
        "create_ns": _least(parts, "source", "ns"),
        "first_call_cases_before": first and first["cases_before"],
        "phases": _phases(parts),
        "device_time": merge_device.merged(
            [(round_, part["device_time"]) for round_, part in parts if "device_time" in part]
        ),
        **{name: agree([part[name] for _, part in parts if name in part]) for name in VERDICTS},
        "ownership": _owned([part["ownership"] for _, part in parts if "ownership" in part]),
        "copy_cost": None if _is_view_in_some(parts) else _copy_cost(parts, ready),
        "recipe": _newest(parts, "recipe"),
        "placement": merge_placement.merged(
            [(round_, part["placement"]) for round_, part in parts if "placement" in part], ready
        ),
        "step": merge_step.merged(parts, agree),
        "handshake": _newest(parts, "handshake") or [],
        "notes": [*_notes(answers), *stops],
        "interrupted": stops[-1] if stops else None,
        "in_company": _in_company(parts),
        "output": next((answer["output"] for _, answer in answers if answer.get("output")), None),
        "rounds": [
            round_ for round_, answer in answers if answer["status"] == "ok" and round_ < rounds
        ],
    }


def _in_company(parts: Sequence[tuple[int, dict[str, Any]]]) -> dict[str, Any] | None:
    found = [(round_, part["in_company"]) for round_, part in parts if "in_company" in part]
    if not found:
        return None
    crashes = [one for _, one in found if one["status"] == "crashed"]
    worst = (crashes or [one for _, one in found])[0]
    return {**worst, "rounds": [round_ for round_, _ in found]}


def _standing(answers: Answers) -> list[tuple[int, dict[str, Any]]]:
    """The answers but those of rounds that were interrupted and measured again."""
    whole = {round_ for round_, answer in answers if answer["status"] != INTERRUPTED}
    return [
        (round_, answer)
        for round_, answer in answers
        if answer["status"] != INTERRUPTED or round_ not in whole
    ]


def _lost_ready_time(answers: Answers) -> bool:
    """Whether the wait for a result failed: then the host's time is not the ready time."""
    return any(
        LOST_READY.search(str(answer["reason"] or ""))
        or any(failure["instrument"] == "ready_time" for failure in answer.get("failures", ()))
        for _, answer in answers
    )


def _status(answers: Answers, rounds: int, stops: Sequence[str]) -> tuple[str, str | None]:
    if not answers:
        return "skipped", stops[-1] if stops else "the run was stopped before it"
    failed = [(round_, answer) for round_, answer in answers if answer["status"] != "ok"]
    if not failed:
        return "ok", None
    # A disturbed round says less than one that the framework refused or that crashed.
    round_, answer = min(failed, key=lambda entry: _RANK.get(entry[1]["status"], 1))
    worked = sum(other["status"] == "ok" for _, other in answers)
    where = f" (round {round_ + 1} of {rounds}; {worked} before it worked)" if worked else ""
    return answer["status"], f"{answer['reason']}{where}"


def agree(verdicts: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """One verdict from several processes; ``varies`` where they disagree, with every evidence."""
    if not verdicts:
        return None
    verdicts = [one for verdict in verdicts for one in _of_processes(verdict)]
    words = [verdict["verdict"] for verdict in verdicts]
    if len(set(words)) == 1:
        return verdicts[0]
    seen = ", ".join(f"{word} in {words.count(word)}" for word in sorted(set(words)))
    return {
        "verdict": "varies",
        "evidence": {"reason": f"{seen} of {len(words)} processes", "processes": list(verdicts)},
    }


def _of_processes(verdict: dict[str, Any]) -> Sequence[dict[str, Any]]:
    """What each process said, where several disagreed before the run was stopped."""
    several = verdict["evidence"].get("processes") if verdict["verdict"] == "varies" else None
    return several if isinstance(several, list | tuple) and several else [verdict]


def _owned(verdicts: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """What all agree on; where their arrays began at several alignments, with all of them."""
    found = agree(verdicts)
    if found is None or found["verdict"] == "varies":
        return found
    each = [verdict["evidence"] for verdict in verdicts]
    lists = (one.get(ALIGNMENTS) or [one.get(ALIGNMENT)] for one in each)
    sizes = {
        size
        for found_in in lists
        for size in (found_in if isinstance(found_in, list | tuple) else ())
        if isinstance(size, int | float)
    }
    if len(sizes) < 2:  # noqa: PLR2004 - several
        return found
    return {**found, "evidence": {**found["evidence"], ALIGNMENTS: sorted(sizes)}}


def _first_call(parts: Sequence[tuple[int, dict[str, Any]]]) -> dict[str, Any] | None:
    # The call with the fewest conversions before it is the closest to a first one.
    calls = [part["first_call"] for _, part in parts if "first_call" in part]
    return min(calls, key=lambda call: call["cases_before"], default=None)


def _least(parts: Sequence[tuple[int, dict[str, Any]]], name: str, key: str) -> Any:
    """The smallest of all processes: what is needed once for all only adds to it."""
    found = [part[name].get(key) for _, part in parts if name in part]
    return min((value for value in found if value is not None), default=None)


def _phases(parts: Sequence[tuple[int, dict[str, Any]]]) -> dict[str, Any] | None:
    found = [part["phases"] for _, part in parts if "phases" in part]
    if not found:
        return None
    names = ("export_ns", "import_ns", "release_ns", "resolution_ns")
    known = {name: [one[name] for one in found if one[name] is not None] for name in names}
    return {name: statistics.median(times) if times else None for name, times in known.items()}


def _newest(parts: Sequence[tuple[int, dict[str, Any]]], name: str) -> Any:
    return next((part[name] for _, part in reversed(parts) if name in part), None)


def _is_view_in_some(parts: Sequence[tuple[int, dict[str, Any]]]) -> bool:
    """Then the time of all processes is that of no copy."""
    verdicts = [part["ownership"] for _, part in parts if "ownership" in part]
    return any(one["verdict"] == "view" for each in verdicts for one in _of_processes(each))


def _copy_cost(
    parts: Sequence[tuple[int, dict[str, Any]]], ready: TimeMeasure | None
) -> dict[str, Any] | None:
    found = [part["copy_cost"] for _, part in parts if "copy_cost" in part]
    size = next((cost["size_bytes"] for cost in found), 0)
    if not size or ready is None or ready.median_ns <= 0:
        return None
    memcpy = statistics.median(cost["memcpy_gb_per_s"] for cost in found)
    speed = size / ready.median_ns
    return {
        "size_bytes": size,
        "gb_per_s": speed,
        "memcpy_gb_per_s": memcpy,
        "share_of_memcpy": speed / memcpy,
    }


def _notes(answers: Answers) -> list[str]:
    notes = [
        f"{failure['instrument']}: {failure['reason']}"
        for _, answer in answers
        for failure in answer.get("failures", ())
    ]
    notes += [note for _, answer in answers for note in answer.get("notes", ())]
    return list(dict.fromkeys(notes))


def unmerge(result: Result, rounds: int) -> list[tuple[int, dict[str, Any]]]:
    """The answers that a result was made from, so that a stopped run can be finished.

    The diagnosis is the answer of the round after the last of ``rounds``. What a result holds once
    for all processes goes to the first of them.
    """
    if result.status == "skipped" and not result.rounds:
        return []
    answers = [(round_, _answer_of(result, round_)) for round_ in result.rounds]
    if result.status != "ok":
        answers.append(_broken_answer(result))
    if not answers:
        return []
    stop = {"status": INTERRUPTED, "reason": result.interrupted} if result.interrupted else {}
    answers += [(round_, {**_answer_of(result, round_), **stop}) for round_ in _stopped(result)]
    # What a result holds once for all processes is told by the first.
    answers[0][1]["parts"].update(_once(result))
    answers[0][1]["notes"] = [note for note in result.notes if not STOP.search(note)]
    answers[0][1]["failures"] = _no_ready_time(result)
    answers[0][1].setdefault("output", result.output)
    _put_company(result, answers)
    diagnosis = _present(result, DIAGNOSIS)
    if diagnosis:
        answers.append((rounds, {**_EMPTY, "parts": diagnosis, **stop}))
    return answers


def _no_ready_time(result: Result) -> list[dict[str, Any]]:
    """That the wait for the result failed, without which the host's time would be taken for it."""
    if result.host_time is None or result.ready_time is not None:
        return []
    named = (note.partition(f"{READY}: ")[2] for note in result.notes if note.startswith(READY))
    return [{"instrument": READY, "reason": reason} for reason in named]


def _put_company(result: Result, answers: list[tuple[int, dict[str, Any]]]) -> None:
    """What a case did beside others is of the rounds in which it was tried again, alone."""
    if result.in_company is None:
        return
    company = result.in_company.model_dump(exclude={"rounds"})
    for round_, answer in answers:
        if round_ in result.in_company.rounds:
            answer["parts"]["in_company"] = company


def _stopped(result: Result) -> list[int]:
    """The round that the user did not wait for the end of."""
    if result.interrupted is None:
        return []
    return sorted({process.round for process in _processes(result)} - set(result.rounds))


def _broken_answer(result: Result) -> tuple[int, dict[str, Any]]:
    """The last answer of a case that was refused or crashed, with what came before that."""
    unfinished = {process.round for process in _processes(result)} - set(result.rounds)
    round_ = min(unfinished, default=max(result.rounds, default=-1) + 1)
    answer = _answer_of(result, round_)
    reason = _WHERE.sub("", result.reason) if result.reason else result.reason
    return round_, {**answer, "status": result.status, "reason": reason, "output": result.output}


def _processes(result: Result) -> list[ProcessSamples]:
    measures = (result.host_time, result.ready_time)
    return [process for measure in measures if measure for process in measure.processes]


def _answer_of(result: Result, round_: int) -> dict[str, Any]:
    parts: dict[str, Any] = {}
    for name in ("host_time", "ready_time"):
        measure = getattr(result, name)
        for process in measure.processes if measure else ():
            if process.round == round_:
                parts[name] = process.model_dump(exclude={"round"})
    device_time = result.device_time and merge_device.of_round(
        result.device_time.model_dump(), round_
    )
    if device_time:
        parts["device_time"] = device_time
    placement = result.placement and merge_placement.of_round(result.placement, round_)
    if placement:
        parts["placement"] = placement
    if result.step is not None:
        parts |= merge_step.of_round(result.step, round_)
    if round_ in result.rounds and result.ownership and result.ownership.verdict != "varies":
        owned = result.ownership.model_dump()
        owned["evidence"].pop(ALIGNMENTS, None)  # of all processes: the first answer has it
        parts["ownership"] = owned
    return {"status": "ok", "reason": None, "parts": parts, "failures": []}


def _present(result: Result, names: Sequence[str]) -> dict[str, Any]:
    found = {name: getattr(result, name) for name in names}
    return {name: part.model_dump() for name, part in found.items() if part is not None}


def _once(result: Result) -> dict[str, Any]:
    parts: dict[str, Any] = {"handshake": result.handshake}
    parts |= _present(result, ("values", "phases", "fresh_source", "ownership"))
    if result.step is not None:
        parts |= merge_step.once(result.step)
    if result.recipe is not None:
        parts["recipe"] = result.recipe.model_dump()
    if result.copy_cost is not None:
        parts["copy_cost"] = result.copy_cost.model_dump()
    if result.first_call_ns is not None:
        parts["first_call"] = {
            "ns": result.first_call_ns,
            "cases_before": result.first_call_cases_before or 0,
            "peak_bytes": result.first_call_peak_bytes,
        }
    if result.create_ns is not None:
        parts["source"] = {"ns": result.create_ns}
    return parts
