"""What tells cases apart that are the same code: the pair, the array, where it was measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dlprof.axes import shape_text
from dlprof.session import CaseRecord


def apart(cases: Sequence[tuple[CaseRecord, str]]) -> list[str]:
    """Of each case, with its environment, what others of the same code have otherwise: ``jax →
    numpy, 4x4``; empty for one whose code no other has.
    """
    groups: dict[str, list[Mapping[str, str]]] = {}
    told = [_parts(case, environment) for case, environment in cases]
    for (case, _), parts in zip(cases, told, strict=True):
        groups.setdefault(case.code, []).append(parts)
    return [
        ", ".join(_differing(parts, groups[case.code]))
        for (case, _), parts in zip(cases, told, strict=True)
    ]


def _parts(case: CaseRecord, environment: str) -> Mapping[str, str]:
    return {
        "environment": environment,
        "pair": f"{case.producer} → {case.consumer}",
        "shape": shape_text(case.shape),
        "dtype": case.dtype,
        "layout": case.layout,
        "device": case.device,
    }


def _differing(parts: Mapping[str, str], group: Sequence[Mapping[str, str]]) -> Iterator[str]:
    for name, text in parts.items():
        if text and len({other[name] for other in group}) > 1:
            yield text
