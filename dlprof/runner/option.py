"""What an option is: what it accepts, its words, and how one value of it is read.

A value is read the same way from the command line, from a scenario file and from Python. So text
is as good as a number, and one value as good as a list of one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dlprof.errors import UsageError

LONGEST_S = 1e6
"""Limits and budgets are shorter."""
LONGEST_SHOWN = 200


@dataclass(frozen=True)
class Whole:
    """A whole number, of both bounds or none."""

    least: int | None = None
    most: int | None = None

    def read(self, value: Any) -> int:
        number = None if isinstance(value, bool | float) else _number(int, value)
        beyond = (
            number is not None
            and self.least is not None
            and not (self.least <= number <= (self.most or number))
        )
        if number is None or beyond:
            bounds = "" if self.least is None else f" from {self.least} to {self.most:,}"
            raise UsageError(f"{shown(value)}: expected a whole number{bounds}")
        return int(number)


@dataclass(frozen=True)
class Number:
    """A finite number below a limit."""

    least: float
    below: float = LONGEST_S
    unit: str = "seconds"

    def read(self, value: Any) -> float:
        number = None if isinstance(value, bool) else _number(float, value)
        if number is None or not self.least <= number < self.below:  # which NaN is neither
            raise UsageError(
                f"{shown(value)}: expected {self.unit}: a number from {self.least:g} "
                f"to below {self.below:,.0f}"
            )
        return float(number)


@dataclass(frozen=True)
class Switch:
    """True or false."""

    def read(self, value: Any) -> bool:
        if not isinstance(value, bool):
            raise UsageError(f"{shown(value)}: expected true or false")
        return value


@dataclass(frozen=True)
class Choice:
    """One of a few words."""

    words: tuple[str, ...]

    def read(self, value: Any) -> str:
        if value not in self.words:
            *first, last = self.words
            raise UsageError(f"{shown(value)}: expected {', '.join(first)} or {last}")
        return str(value)


@dataclass(frozen=True)
class Text:
    """One text, which ``parse`` or a verb reads."""

    parse: Callable[[str], Any] = str

    def read(self, value: Any) -> Any:
        try:
            return self.parse(str(value))
        except UsageError as error:
            raise UsageError(f"{shown(value)}: {error}") from None


def distinct(values: Iterable[Any]) -> tuple[Any, ...]:
    """Each value once, in their order."""
    return tuple(dict.fromkeys(values))


@dataclass(frozen=True)
class Several:
    """A list of words; ``parse`` makes one or more values of each, ``join`` the value of all.

    ``commas`` may separate words in one text.
    """

    parse: Callable[[str], Iterable[Any]] = lambda word: [word]
    commas: bool = False
    join: Callable[[Iterable[Any]], Any] = distinct

    def read(self, value: Any) -> Any:
        # A tuple of numbers is one word, such as 4x4.
        lengths = isinstance(value, tuple) and all(map(_is_whole, value))
        one = lengths or isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable)
        texts = [_text(word) for word in ([value] if one else value)]
        words = split(texts) if self.commas else texts
        if not words or not all(word.strip() for word in words):
            raise UsageError("names nothing: leave it out for the default")
        found: list[Any] = []
        for word in words:
            try:
                found += self.parse(word)
            except UsageError as error:
                raise UsageError(f"{shown(word)}: {error}") from None
        return self.join(found)


Kind = Whole | Number | Switch | Choice | Text | Several


@dataclass(frozen=True)
class Option:
    """``key`` is the name in a scenario and in Python, ``flag`` on the command line.

    ``default`` is as a user would write it. ``meaning`` says what None stands for.
    """

    key: str
    kind: Kind
    help: str
    panel: str
    default: Any = None
    meaning: str = ""
    flag: str = ""
    short: str = ""
    metavar: str = ""

    @property
    def flags(self) -> tuple[str, ...]:
        """As on the command line: ``--shape``, ``--shapes``."""
        plural = ["--" + self.key.replace("_", "-")] * isinstance(self.kind, Several)
        found = dict.fromkeys((self.short, self.name, *plural))
        return tuple(flag for flag in found if flag)

    @property
    def name(self) -> str:
        """The name on the command line that messages use."""
        return self.flag or "--" + self.key.replace("_", "-")

    @property
    def singular(self) -> str:
        return self.name.removeprefix("--").replace("-", "_")

    @property
    def nothing(self) -> Any:
        """Its value if it is not given and has no default."""
        return () if isinstance(self.kind, Several) else None

    @property
    def default_text(self) -> str:
        return self.meaning or value_text(self.default)


def value_of(option: Option, raw: Any, name: str) -> Any:
    """The value of one option.

    Raises :class:`UsageError` with ``name``, the value and what was expected.
    """
    try:
        return option.kind.read(raw)
    except UsageError as error:
        raise UsageError(f"{name} {error}") from None


def value_text(value: Any) -> str:
    """A value as a person would write it; empty for none."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    return "" if value is None else str(value)


def shown(value: Any) -> str:
    """A wrong value in a message."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return (text or repr(value))[:LONGEST_SHOWN]


def split(texts: Iterable[str]) -> list[str]:
    """The words of texts that may hold several, separated by commas."""
    return [word for text in texts for word in text.split(",") if word.strip()]


def _number(kind: Callable[[Any], float], value: Any) -> float | None:
    try:
        return kind(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _is_whole(value: Any) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, bool)


def _text(word: Any) -> str:
    """A word as text: a number or lengths such as ``(4, 4)`` are a shape."""
    if isinstance(word, str):
        return word
    if isinstance(word, os.PathLike):
        return str(os.fspath(word))
    lengths = [word] if _is_whole(word) else word
    if (
        isinstance(lengths, Sequence)
        and not isinstance(lengths, bytes)
        and all(map(_is_whole, lengths))
    ):
        return "x".join(str(int(length)) for length in lengths) or "scalar"
    raise UsageError(f"{shown(word)}: expected text, or lengths such as (4096, 4096)")
