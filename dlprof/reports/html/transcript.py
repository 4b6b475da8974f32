"""The handshake as a transcript: who asks whom for what, and what is handed over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dlprof.analysis.case_view import mapping, number
from dlprof.analysis.quantity import plain_time
from dlprof.reports.html.entry import Entry
from dlprof.reports.html.evidence import value_text
from dlprof.text.clean import clean

WHOLE = ("export", "import")
ALIGNED = "aligned to "


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
    """Ways of one pair that went alike; ``entry`` is the first of them, whose times these are.

    ``others`` counts the further cases of these ways.
    """

    entry: Entry
    codes: tuple[str, ...]
    steps: tuple[Step, ...]
    others: int
    retried: bool

    @property
    def pair(self) -> str:
        return self.entry.row.pair


def transcripts(everything: Sequence[Entry]) -> list[Transcript]:
    """The handshakes of each pair, that of the first array of each way; like ones together."""
    ways: dict[tuple[str, str], list[Entry]] = {}
    for entry in everything:
        if entry.result.handshake:
            ways.setdefault((entry.row.pair, entry.row.code), []).append(entry)
    alike: dict[tuple[Any, ...], list[list[Entry]]] = {}
    for (pair, _), cases in ways.items():
        alike.setdefault((pair, *map(_words, _steps(cases[0]))), []).append(cases)
    order = {entry.row.pair: entry.index for entry in reversed(everything)}
    found = [_transcript(group) for group in alike.values()]
    return sorted(found, key=lambda one: order[one.pair])


def _transcript(group: Sequence[Sequence[Entry]]) -> Transcript:
    first = group[0][0]
    steps = _steps(first)
    return Transcript(
        entry=first,
        codes=tuple(cases[0].row.code for cases in group),
        steps=steps,
        others=sum(len(cases) for cases in group) - 1,
        retried=any(step.failed for step in steps) and not steps[-1].failed,
    )


def _steps(entry: Entry) -> tuple[Step, ...]:
    return tuple(_step(mapping(event), entry) for event in entry.result.handshake)


def _words(step: Step) -> Step:
    """The step without what differs from call to call: its time, and where the memory lies."""
    return replace(step, took="", capsule=step.capsule.partition(ALIGNED)[0])


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
        words.append(f"{ALIGNED}{value_text('alignment_bytes', alignment)}")
    return clean(", ".join(words), 600)


def _dotted(version: Any) -> str:
    return ".".join(map(str, version)) if isinstance(version, list) else str(version)


def _listed(value: Any) -> str:
    return f"({', '.join(map(str, value))})" if isinstance(value, list) else str(value)


def _flags(flags: Any) -> str:
    if isinstance(flags, list):
        return ", ".join(map(str, flags)) or "none"
    return "none" if flags is None else str(flags)
