"""What tells cases apart that are the same code: the pair, the array, where it was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dlprof.plan.axes import shape_text
from dlprof.session.model import CaseRecord


def apart(cases: Sequence[tuple[CaseRecord, str]]) -> list[str]:
    """Of each case, with its environment, what others of the same code have otherwise: ``jax →
    numpy, 4x4``; empty for one whose code no other has.
    """
    told = [_parts(case, environment) for case, environment in cases]
    groups: dict[str, list[Mapping[str, str]]] = {}
    for (case, _), parts in zip(cases, told, strict=True):
        groups.setdefault(case.code, []).append(parts)
    differing = {code: _differing(group) for code, group in groups.items()}
    return [
        ", ".join(parts[name] for name in differing[case.code] if parts[name])
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


def _differing(group: Sequence[Mapping[str, str]]) -> list[str]:
    """The names of the parts that are not the same in all of a group."""
    return [name for name in group[0] if len({parts[name] for parts in group}) > 1]
