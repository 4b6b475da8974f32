"""What a script shows: one line in words, and what it does."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Effect:
    """``body`` is that of a function that returns whether the problem is there.

    With a ``child`` the conversion runs in a process of its own, that ends with exit code 1, or
    dies, where the problem is there; ``body`` then runs it. ``imports`` are lines that import from
    the standard library; those of ``from`` are kept only where their names are used. ``array`` says
    what ``x`` is where it is not the array of the case.
    """

    symptom: str
    body: str
    imports: tuple[str, ...] = ()
    child: str = ""
    array: str = ""
