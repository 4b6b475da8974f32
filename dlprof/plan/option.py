"""What an option is: what it accepts, its words, and how one value of it is read."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dlprof.errors import UsageError

LONGEST_S = 1e6
"""Limits and budgets are shorter."""
LONGEST_SHOWN = 200

COMMAND_LINE, FILE, PYTHON_CALL, DEFAULT = "command line", "file", "Python", "default"
"""Where a value comes from."""


@dataclass(frozen=True)
class Whole:
    """A whole number."""

    least: int | None = None
    most: int | None = None

    def from_text(self, text: str) -> Any:
        return int(text) if re.fullmatch(r"[+-]?[0-9]{1,18}", text) else text

    def read(self, value: Any) -> int:
        whole = isinstance(value, int) and not isinstance(value, bool)
        low = self.least is not None and whole and value < self.least
        high = self.most is not None and whole and value > self.most
        if not whole or low or high:
            raise UsageError(f"expected a whole number{_range(self.least, self.most)}")
        return int(value)

    def schema(self) -> dict[str, Any]:
        return {"type": "integer", **_bounds(minimum=self.least, maximum=self.most)}


@dataclass(frozen=True)
class Number:
    """A finite number below a limit."""

    least: float
    below: float = LONGEST_S
    unit: str = "seconds"

    def from_text(self, text: str) -> Any:
        try:
            return float(text)
        except ValueError:
            return text

    def read(self, value: Any) -> float:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not math.isfinite(value) or not self.least <= value < self.below:
            raise UsageError(
                f"expected {self.unit}: a number from {self.least:g} to below {self.below:,.0f}"
            )
        return float(value)

    def schema(self) -> dict[str, Any]:
        return {"type": "number", "minimum": self.least, "exclusiveMaximum": self.below}


@dataclass(frozen=True)
class Switch:
    """True or false."""

    def read(self, value: Any) -> bool:
        if not isinstance(value, bool):
            raise UsageError("expected true or false")
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "boolean"}


@dataclass(frozen=True)
class Text:
    """One text, of which ``parse`` makes the value."""

    parse: Callable[[str], Any] = str

    def from_text(self, text: str) -> Any:
        return text

    def read(self, value: Any) -> Any:
        text = os.fspath(value) if isinstance(value, os.PathLike) else value
        if not isinstance(text, str):
            raise UsageError("expected text")
        return self.parse(text)

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "minLength": 1}


def distinct(values: Iterable[Any]) -> tuple[Any, ...]:
    """Each value once, in their order."""
    return tuple(dict.fromkeys(values))


@dataclass(frozen=True)
class Several:
    """A list of words; ``parse`` makes one or more values of each.

    ``commas`` may separate words in one text. ``plain`` makes text of a word that is none.
    With ``numbers`` a tuple of them is one word. ``join`` makes the value of all.
    """

    parse: Callable[[str], Iterable[Any]] = lambda word: [word]
    commas: bool = False
    plain: Callable[[Any], str] | None = None
    numbers: bool = False
    join: Callable[[Iterable[Any]], Any] = distinct
    examples: tuple[str, ...] = ()

    def from_text(self, words: Any) -> Any:
        return list(words)

    def words(self, value: Any) -> list[str]:
        one = isinstance(value, str | int | os.PathLike) or (
            self.numbers and isinstance(value, tuple) and not any(map(_is_word, value))
        )
        found = [value] if one else _listed(value)
        if not found:
            raise UsageError("names nothing: leave it out for the default")
        texts = [self._text(word) for word in found]
        if not self.commas:
            return texts
        words = split(texts)
        if not words:
            raise UsageError("names nothing: leave it out for the default")
        return words

    def read(self, value: Any) -> Any:
        return self.join(one for word in self.words(value) for one in self._parsed(word))

    def schema(self) -> dict[str, Any]:
        word: dict[str, Any] = {"type": "string", "minLength": 1}
        if self.numbers:
            word = {"anyOf": [word, {"type": "integer", "minimum": 0}]}
        if self.examples:
            word["examples"] = list(self.examples)
        return {"anyOf": [word, {"type": "array", "minItems": 1, "items": word}]}

    def _text(self, word: Any) -> str:
        if isinstance(word, str):
            return word
        if self.plain is None:
            raise Wrong(word, "expected text")
        try:
            return self.plain(word)
        except (TypeError, ValueError):
            raise Wrong(word, "expected text, or lengths such as (4096, 4096)") from None

    def _parsed(self, word: str) -> Iterable[Any]:
        try:
            return self.parse(word)
        except UsageError as error:
            raise Wrong(word, str(error)) from None


Kind = Whole | Number | Switch | Text | Several


class Wrong(UsageError):
    """One word of a list makes no sense."""

    def __init__(self, word: Any, words: str) -> None:
        super().__init__(words)
        self.word = word


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
    in_file: bool = False
    details: str = ""
    """What only the reference says."""
    once: str = ""
    """Why a second value is refused; without it the last counts."""

    @property
    def flags(self) -> tuple[str, ...]:
        """As on the command line: ``--shape``, ``--shapes``."""
        plural = "--" + self.key.replace("_", "-")
        found = dict.fromkeys((self.short, self.flag or plural, plural))
        return tuple(flag for flag in found if flag)

    @property
    def name(self) -> str:
        """The name on the command line that messages use."""
        return self.flag or "--" + self.key.replace("_", "-")

    @property
    def singular(self) -> str:
        return self.name.removeprefix("--").replace("-", "_")

    @property
    def default_text(self) -> str:
        return self.meaning or value_text(self.default)


@dataclass(frozen=True)
class Value:
    """What an option stands at: the value, as a person would write it, and where it comes from."""

    value: Any
    text: str
    origin: str


def value_of(option: Option, raw: Any, origin: str) -> Value:
    """One option. Raises :class:`UsageError` with its name, the value and what was expected."""
    name = option.name if origin == COMMAND_LINE else option.key
    kind = option.kind
    value = given = raw
    if origin == COMMAND_LINE and not isinstance(kind, Switch):
        given = raw if isinstance(kind, Several) else _single(option, raw)
        value = kind.from_text(given)
    try:
        found = kind.read(value)
        text = ", ".join(kind.words(value)) if isinstance(kind, Several) else value_text(value)
        return Value(found, text, origin)
    except Wrong as error:
        raise UsageError(f"{name} {shown(error.word, origin)}: {error}") from None
    except UsageError as error:
        whole = f"{name} " if isinstance(kind, Several) else f"{name} {shown(given, origin)}: "
        raise UsageError(f"{whole}{error}") from None


def _single(option: Option, raw: Any) -> Any:
    if not isinstance(raw, list | tuple):
        return raw
    if len(raw) > 1:
        raise UsageError(f"{option.name} was given {len(raw)} times: {option.once}")
    return raw[0]


def value_text(value: Any) -> str:
    """A value as a person would write it; empty for none."""
    if value is None or value in ([], ()):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, list | tuple):
        return ", ".join(map(value_text, value))
    return str(value)


def shown(value: Any, origin: str) -> str:
    """A wrong value in a message: as it was typed, or as the file or Python writes it."""
    text = value if origin == COMMAND_LINE and isinstance(value, str) and value else repr(value)
    if origin == FILE and isinstance(value, bool):
        text = text.lower()
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"


def split(texts: Iterable[str]) -> list[str]:
    """The words of texts that may hold several, separated by commas."""
    return [word for text in texts for word in text.split(",") if word.strip()]


def _listed(value: Any) -> list[Any]:
    if isinstance(value, bytes | bytearray | bool | Mapping) or not isinstance(value, Iterable):
        raise Wrong(value, "expected text or a list")
    return list(value)


def _is_word(thing: Any) -> bool:
    return isinstance(thing, str | tuple | list)


def _range(least: int | None, most: int | None) -> str:
    if least is None:
        return ""
    return f" of at least {least}" if most is None else f" from {least} to {most:,}"


def _bounds(**bounds: Any) -> dict[str, Any]:
    return {name: value for name, value in bounds.items() if value is not None}
