"""Versions of what was measured, of all the packages that a session names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from dlprof.analysis.case_view import mapping


def used(
    environment: Mapping[str, Any],
    frameworks: Iterable[str],
    is_of: Callable[[str, str], bool] = str.startswith,
) -> list[tuple[str, str]]:
    """Distribution and version, for each that is one of ``frameworks`` or does the work of one.

    ``is_of`` says whether a distribution's name is that of a framework: ``onnxruntime-gpu``.
    """
    names = list(frameworks)
    libraries = mapping(environment.get("libraries"))
    return [
        (str(name), str(version))
        for name, version in mapping(environment.get("packages")).items()
        if libraries.get(name) in names or any(is_of(str(name), word) for word in names)
    ]


def libraries_of(environment: Mapping[str, Any], framework: str) -> list[str]:
    """The distributions that do a framework's work, as far as the session says."""
    found = mapping(environment.get("libraries"))
    return [str(name) for name, whose in found.items() if whose == framework]
