"""The handshake as a transcript: who asks whom for what, and what is handed over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dlprof.clean import clean
from dlprof.quantity import plain_time
from dlprof.reports.html.entry import Entry
from dlprof.reports.html.evidence import value_text
from dlprof.rules.known import mapping, number

WHOLE = ("export", "import")


@dataclass(frozen=True)
class Step:
    """One call: the words of the consumer, the answer, and how long it took."""

    asked: str
    answer: str
    capsule: str
    took: str
    failed: bool


@dataclass(frozen=True)
class Transcript:
    """One way of a pair; ``others`` are the further arrays on which it went the same way."""

    entry: Entry
    steps: tuple[Step, ...]
    others: int
    retried: bool


def transcripts(everything: Sequence[Entry]) -> list[Transcript]:
    """One for each way in, in the session's order: the handshake of its first array."""
    first: dict[tuple[str, str], Entry] = {}
    others: dict[tuple[str, str], int] = {}
    for entry in everything:
        if entry.result.handshake:
            way = entry.row.pair, entry.row.code
            others[way] = others.get(way, -1) + 1
            first.setdefault(way, entry)
    return [_transcript(entry, others[way]) for way, entry in first.items()]


def _transcript(entry: Entry, others: int) -> Transcript:
    steps = tuple(_step(event, entry) for event in entry.result.handshake)
    asked = [step for step in steps if step.failed]
    return Transcript(entry, steps, others, retried=bool(asked) and not steps[-1].failed)


def _step(event: Mapping[str, Any], entry: Entry) -> Step:
    case = entry.result.case
    call = clean(str(event.get("call", "?")), 80)
    outcome = clean(str(event.get("outcome", "?")), 300)
    took = number(event.get("ns"))
    if call in WHOLE:
        side = case.producer if call == "export" else case.consumer
        asked = clean(f"{side}: the {call} as a whole")
    else:
        asked = clean(f"{case.consumer} asks {case.producer}: {call}{_arguments(event)}", 400)
    failed = outcome != "returned" and call != "export"
    return Step(
        asked,
        clean(str(event["answer"])) if "answer" in event else outcome,
        _capsule(mapping(event.get("capsule"))),
        "" if took is None else plain_time(took),
        failed,
    )


def _arguments(event: Mapping[str, Any]) -> str:
    """As it would be typed; attributes such as ``__array_interface__`` have none."""
    if str(event.get("call", "")).endswith("_interface__"):
        return ""
    found = mapping(event.get("arguments"))
    words = [
        str(value) if str(name).isdecimal() else f"{name}={value}" for name, value in found.items()
    ]
    return f"({', '.join(words)})"


def _capsule(capsule: Mapping[str, Any]) -> str:
    """What a DLPack capsule says of itself."""
    if not capsule:
        return ""
    words = [f"capsule {value_text('', capsule.get('name'))}"]
    if (version := capsule.get("version")) is not None:
        words.append(f"version {_dotted(version)}")
    words += [
        f"{name} {_listed(capsule[name])}"
        for name in ("dtype", "shape", "strides", "device")
        if name in capsule
    ]
    words.append(f"flags {_flags(capsule.get('flags'))}")
    if (alignment := capsule.get("alignment_bytes")) is not None:
        words.append(f"aligned to {value_text('alignment_bytes', alignment)}")
    return clean(", ".join(words), 600)


def _dotted(version: Any) -> str:
    return ".".join(map(str, version)) if isinstance(version, list) else str(version)


def _listed(value: Any) -> str:
    return f"({', '.join(map(str, value))})" if isinstance(value, list) else str(value)


def _flags(flags: Any) -> str:
    if isinstance(flags, list):
        return ", ".join(map(str, flags)) or "none"
    return "none" if flags is None else str(flags)
