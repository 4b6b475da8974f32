"""What differs between two sessions besides what they found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dlprof.analysis.case_view import mapping, number
from dlprof.session.machine import NOTABLE_CORES
from dlprof.session.model import Header

MACHINE = ("machine", "cpu", "cores", "platform", "cuda_devices")
GPU = ("name", "sm_clock_max_mhz", "memory_clock_max_mhz")
MEASURING = ("sample_ns", "together", "in_turns")
"""Settings that change the times themselves: what a sample is the mean of, what else a process
serves, and whether it shares its processor's caches."""

ACROSS = "--any-python"

REFUSED = {
    "machine": "measured on different machines",
    "measuring": "measured in different ways",
    "python": f"measured with different Pythons; {ACROSS} compares them all the same",
}
"""Kinds of differences that times cannot be compared across, in words."""


@dataclass(frozen=True)
class Difference:
    """``what`` is ``base`` in BASE and ``head`` in HEAD.

    Times cannot be compared across the kinds ``machine``, ``measuring`` and ``python``, the last
    unless that is what one compares. ``version`` is what is compared, as a rule, and ``setting`` is
    worth knowing.
    """

    what: str
    base: str
    head: str
    kind: str

    def __str__(self) -> str:
        return f"{self.what} {self.base} → {self.head}"


Environment = Mapping[str, Any]


def differences(base: Header, head: Header) -> tuple[Difference, ...]:
    """All differences; a session that does not say what it ran on differs in nothing."""
    found = in_place(base.environment, head.environment)
    return (*found, *_settings(base, head))


def in_place(base: Environment, head: Environment) -> tuple[Difference, ...]:
    """What differs between two environments: machines, versions and variables."""
    return (*_machine(base, head), *_versions(base, head), *_variables(base, head))


def refusal(differ: Sequence[Difference], across_pythons: bool = False) -> str | None:
    """Why times of two sessions cannot be compared, by what differs; None if they can.

    ``across_pythons`` says that the user compares two versions of Python.
    """
    kinds = {one.kind for one in differ} - ({"python"} if across_pythons else set())
    found = [
        f"{words}: {', '.join(str(one) for one in differ if one.kind == kind)}"
        for kind, words in REFUSED.items()
        if kind in kinds
    ]
    return "; ".join(found) or None


def disturbance(header: Header) -> str | None:
    """What other programs did to a session, if they left its processes less than one core.

    What one thread does in a microsecond then takes as long as ever: views agreed within 2 %
    between a quiet machine and one with 1.6 of 2 cores taken. A copy by two threads took 55 us
    there and 16 ms here.
    """
    foreign, cores = header.foreign_cores, number(header.environment.get("cores"))
    if foreign is None or cores is None or foreign <= max(NOTABLE_CORES, cores - 1):
        return None
    return f"other programs kept {foreign:.1f} of {cores:.0f} cores busy"


def gpus(environment: Environment) -> list[Mapping[str, Any]]:
    found = environment.get("gpus")
    return [mapping(gpu) for gpu in found] if isinstance(found, list) else []


def _machine(base: Environment, head: Environment) -> Iterator[Difference]:
    for name in MACHINE:
        yield from _differ(name, base.get(name), head.get(name), "machine")
    unnamed = [why for side in (base, head) if isinstance(why := side.get("gpus"), str)]
    if unnamed:  # NVML could not name them; their number is compared above
        if base.get("cuda_devices") or head.get("cuda_devices"):
            yield Difference("names and clocks of the GPUs", "compared", unnamed[0], "setting")
        return
    ours, theirs = gpus(base), gpus(head)
    for index in range(max(len(ours), len(theirs))):
        for name in GPU:
            old, new = (
                side[index].get(name) if index < len(side) else "none" for side in (ours, theirs)
            )
            yield from _differ(f"GPU {index} {name}", old, new, "machine")


def _versions(base: Environment, head: Environment) -> Iterator[Difference]:
    # Minor versions of dlprof may time otherwise, and those of Python run the timed loop otherwise.
    for name, kind in (("dlprof", "measuring"), ("python", "python")):
        old, new = base.get(name), head.get(name)
        same = str(old).split(".")[:2] == str(new).split(".")[:2]
        yield from _differ(name, old, new, "version" if same else kind)
    name = "implementation"
    yield from _differ(name, base.get(name), head.get(name), "python")
    before, after = mapping(base.get("packages")), mapping(head.get("packages"))
    for name in dict.fromkeys((*before, *after)):
        versions = before.get(name, "missing"), after.get(name, "missing")
        yield from _differ(str(name), *versions, "version")
    name = "driver_version"
    for index, (gpu, other) in enumerate(zip(gpus(base), gpus(head), strict=False)):
        yield from _differ(f"GPU {index} driver", gpu.get(name), other.get(name), "version")


def _settings(base: Header, head: Header) -> Iterator[Difference]:
    yield from _differ("schema", base.schema_, head.schema_, "setting")
    yield from _differ("rounds", base.rounds, head.rounds, "setting")
    yield from _differ("seed", base.seed, head.seed, "setting")
    old, new = (mapping(header.request.get("settings")) for header in (base, head))
    for name in MEASURING:
        # Older sessions were not measured in turns, sample by sample, and do not say so.
        unsaid = False if name == "in_turns" else None
        yield from _differ(name, old.get(name, unsaid), new.get(name, unsaid), "measuring")
    yield from _differ("setup", old.get("setup") or "none", new.get("setup") or "none", "setting")


def _variables(base: Environment, head: Environment) -> Iterator[Difference]:
    before, after = mapping(base.get("variables")), mapping(head.get("variables"))
    for name in dict.fromkeys((*before, *after)):
        values = before.get(name) or "unset", after.get(name) or "unset"
        yield from _differ(str(name), *values, "setting")


def _differ(what: str, old: Any, new: Any, kind: str) -> Iterator[Difference]:
    if old is not None and new is not None and old != new:
        yield Difference(what, _text(old), _text(new), kind)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
