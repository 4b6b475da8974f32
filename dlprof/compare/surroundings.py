"""What differs between two sessions besides what they found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dlprof.analysis.case_view import mapping, number
from dlprof.session.machine import NOTABLE_CORES
from dlprof.session.model import Header

MACHINE = ("machine", "cpu", "cores", "platform", "cuda_devices")
GPU = ("name", "sm_clock_max_mhz", "memory_clock_max_mhz")
MEASURING = ("sample_ns", "together", "in_turns")
"""Settings that change the times themselves: what a sample is the mean of, what else a process
serves, which leaves memory and threads behind, and whether it shares its processor's caches."""

ACROSS = "--any-python"

REFUSED = {
    "machine": "measured on different machines",
    "measuring": "measured in different ways",
    "python": f"measured with different Pythons, which {ACROSS} would say is what you compare",
}
"""Kinds of differences that times cannot be compared across, in words."""


@dataclass(frozen=True)
class Difference:
    """``what`` is ``base`` in BASE and ``head`` in HEAD.

    ``kind`` is ``machine`` or ``measuring`` (times cannot be compared), ``python`` (they can where
    that is what one compares), ``version`` (what is compared, as a rule), or ``setting`` (worth
    knowing).
    """

    what: str
    base: str
    head: str
    kind: str

    def __str__(self) -> str:
        return f"{self.what} {self.base} → {self.head}"


def differences(base: Header, head: Header) -> tuple[Difference, ...]:
    """All differences; a session that does not say what it ran on differs in nothing.

    Of several environments each is compared with that of its name.
    """
    return (
        *_machine(base.environment, head.environment),
        *(found for name, *sides in _places(base, head) for found in _in_place(name, *sides)),
        *_settings(base, head),
    )


Environment = dict[str, Any]


def _places(base: Header, head: Header) -> Iterator[tuple[str, Environment, Environment]]:
    """The environments that both have, by name; the only one of a session has none."""
    others = {str(one.get("name")): one for one in head.environments}
    if not base.environments or not others:
        yield "", base.environment, head.environment
        return
    for one in base.environments:
        name = str(one.get("name"))
        if name in others:
            yield name, one, others[name]


def _in_place(name: str, base: Environment, head: Environment) -> Iterator[Difference]:
    for found in (*_versions(base, head), *_variables(base, head)):
        yield replace(found, what=f"{name}: {found.what}") if name else found


def in_place(base: Environment, head: Environment) -> tuple[Difference, ...]:
    """What differs between two environments: their machines, versions and variables."""
    return (*_machine(base, head), *_in_place("", base, head))


def refusal(differ: Sequence[Difference], across_pythons: bool = False) -> str | None:
    """Why times of two sessions cannot be compared, by what differs; None where they can.

    ``across_pythons`` says that the user compares two versions of Python.
    """
    kinds = {one.kind for one in differ} - ({"python"} if across_pythons else set())
    found = [
        f"{words}: {', '.join(str(one) for one in differ if one.kind == kind)}"
        for kind, words in REFUSED.items()
        if kind in kinds
    ]
    return "; ".join(found) or None


def untrusted(header: Header) -> str | None:
    """What other programs did to a session, if they left its processes less than one core.

    What a thread alone does in a microsecond then takes as long as ever, now and then: views agreed
    within 2 % between a quiet machine and one with 1.6 of 2 cores taken. A copy by two threads took
    55 us there and 16 ms here.
    """
    foreign, cores = header.foreign_cores, number(header.environment.get("cores"))
    if foreign is None or cores is None or foreign <= max(NOTABLE_CORES, cores - 1):
        return None
    return f"other programs kept {foreign:.1f} of {cores:.0f} cores busy"


def _machine(base: dict[str, Any], head: dict[str, Any]) -> Iterator[Difference]:
    for name in MACHINE:
        yield from _differ(name, base.get(name), head.get(name), "machine")
    told = (side.get("gpus") for side in (base, head))
    unnamed = [reason for reason in told if isinstance(reason, str)]
    if unnamed:  # why nobody could name them; their number is told above
        if base.get("cuda_devices") or head.get("cuda_devices"):
            yield Difference("names and clocks of the GPUs", "compared", unnamed[0], "setting")
        return
    ours, theirs = _gpus(base), _gpus(head)
    for index in range(max(len(ours), len(theirs))):
        for name in GPU:
            old = mapping(ours[index]).get(name) if index < len(ours) else "none"
            new = mapping(theirs[index]).get(name) if index < len(theirs) else "none"
            yield from _differ(f"GPU {index} {name}", old, new, "machine")


def _gpus(environment: dict[str, Any]) -> list[Any]:
    found = environment.get("gpus")
    return found if isinstance(found, list) else []


def _versions(base: dict[str, Any], head: dict[str, Any]) -> Iterator[Difference]:
    # Minor versions of dlprof may time otherwise, and those of Python run the timed loop otherwise.
    for name, kind in (("dlprof", "measuring"), ("python", "python")):
        old, new = base.get(name), head.get(name)
        same = _minor(old) == _minor(new)
        yield from _differ(name, old, new, "version" if same else kind)
    name = "implementation"
    yield from _differ(name, base.get(name), head.get(name), "python")
    old, new = mapping(base.get("packages")), mapping(head.get("packages"))
    for name in dict.fromkeys((*old, *new)):
        before, after = old.get(name, "missing"), new.get(name, "missing")
        yield from _differ(str(name), before, after, "version")
    for index, (gpu, other) in enumerate(zip(_gpus(base), _gpus(head), strict=False)):
        name = "driver_version"
        yield from _differ(
            f"GPU {index} driver", mapping(gpu).get(name), mapping(other).get(name), "version"
        )


def _settings(base: Header, head: Header) -> Iterator[Difference]:
    yield from _differ("schema", base.schema_, head.schema_, "setting")
    yield from _differ("rounds", base.rounds, head.rounds, "setting")
    yield from _differ("seed", base.seed, head.seed, "setting")
    old, new = (mapping(header.request.get("settings")) for header in (base, head))
    for name in MEASURING:
        # Older sessions were not measured in turns, sample by sample, and do not say so.
        unsaid = False if name == "in_turns" else None
        before_, after_ = (_word(side.get(name, unsaid)) for side in (old, new))
        yield from _differ(name, before_, after_, "measuring")
    # Older sessions had no setup.
    yield from _differ("setup", old.get("setup") or "none", new.get("setup") or "none", "setting")


def _variables(base: Environment, head: Environment) -> Iterator[Difference]:
    before, after = mapping(base.get("variables")), mapping(head.get("variables"))
    for name in dict.fromkeys((*before, *after)):
        values = before.get(name) or "unset", after.get(name) or "unset"
        yield from _differ(str(name), *values, "setting")


def _minor(version: Any) -> list[str]:
    """Major and minor of a version: ``3.11`` of ``3.11.7``."""
    return str(version).split(".")[:2]


def _word(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value


def _differ(what: str, old: Any, new: Any, kind: str) -> Iterator[Difference]:
    if old is not None and new is not None and old != new:
        yield Difference(what, str(old), str(new), kind)
