"""JSON as its standard has it: no NaN, no infinity, and no deeper than a program can follow."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Iterator
from typing import IO, Annotated, Any, cast

from pydantic import BeforeValidator
from pydantic_core import from_json

from dlprof.text.clean import sanitised

DEEPEST = 64
"""Levels of what has no fixed form. Evidence has four."""
LONGEST = 2 << 20
"""Characters of one value. The result of a case has some thousands."""
MOST_PARTS = 250_000
"""Of one value: 2 MiB of ones would be a million numbers, and as many errors."""
BLOCK = 1 << 20
BLANKS = re.compile(r"[ \t\n\r]*")
ESCAPED = re.compile(r"\\[bfru]")
"""How JSON may write what :func:`sanitised` escapes."""
HUGE = re.compile(r"[eE]\+?\d\d\d")
"""How JSON writes a number that may be too large for a float."""


class NotJson(ValueError):
    """A text that is no JSON; the message says why, in our words."""


class TooLong(NotJson):
    """A value that is longer than any that was measured."""


def _finite(text: str) -> float | None:
    number = float(text)
    return number if math.isfinite(number) else None


_DECODER = json.JSONDecoder(parse_constant=lambda _: None, parse_float=_finite)
"""Words that JSON does not know (``NaN``) are None, as are numbers too large for a float."""


class Reader:
    """A JSON object, member by member: its text is never in memory as a whole.

    What it gives is :func:`sanitised`. Reading raises :class:`NotJson`, whatever reading the file
    raises, and what ``check`` raises, which is called with the place of each part.
    """

    def __init__(self, file: IO[str], check: Callable[[int], None] = lambda _: None) -> None:
        self._file, self._check = file, check
        self._text, self._at = "", 0
        self._before = 0
        """Characters of the file before ``_text``."""

    def members(self, lists: Collection[str]) -> Iterator[tuple[str, Any]]:
        """Name and value of each member. Of ``lists`` the value is an iterator over the elements,
        to be read to its end.
        """
        for _ in self._separated("{", "}"):
            if self._next() != '"':
                raise self._wrong("a name in double quotes is expected")
            name = self._value()
            self._take(":")
            is_long = name in lists and self._next() == "["
            yield name, self._elements() if is_long else self._value()
        if self._next():
            raise self._wrong("there is more text behind its end")

    def _elements(self) -> Iterator[Any]:
        by_line = True
        for _ in self._separated("[", "]"):
            whole = self._line() if by_line else None
            by_line = whole is not None
            yield self._value() if whole is None else whole

    def _line(self) -> dict[str, Any] | None:
        """The object that is all of this line, as dlprof writes entries, which is read faster."""
        self._next()
        end = self._text.find("\n", self._at)
        if end < 0 and self._more():
            end = self._text.find("\n", self._at)
        text = self._text[self._at : end].rstrip(", \t\r") if end >= 0 else ""
        if not text.startswith("{") or HUGE.search(text):
            return None
        try:
            found = from_json(text, allow_inf_nan=False)
        except ValueError:
            return None
        self._check_size(text)
        self._at += len(text)
        return cast("dict[str, Any]", _shown(found, text))

    def _check_size(self, text: str) -> None:
        where = f"the value at character {self._before + self._at:,}"
        if len(text) > LONGEST:
            raise TooLong(f"{where} is longer than {LONGEST >> 20} MiB")
        if text.count(",") > MOST_PARTS:
            raise TooLong(f"{where} has more than {MOST_PARTS:,} parts")

    def _separated(self, begin: str, end: str) -> Iterator[None]:
        """Stop at each part between brackets."""
        self._take(begin)
        if self._next() != end:
            yield
            self._check(self._before + self._at)
        while self._next() == ",":
            self._take(",")
            yield
            self._check(self._before + self._at)
        self._take(end)

    def _take(self, expected: str) -> None:
        if self._next() != expected:
            raise self._wrong(f"{expected} is expected")
        self._at += 1

    def _next(self) -> str:
        """The next character that is no blank, which stays; empty at the end."""
        while True:
            blanks = BLANKS.match(self._text, self._at)
            self._at = blanks.end() if blanks else self._at
            if self._at < len(self._text) or not self._more():
                return self._text[self._at : self._at + 1]

    def _value(self) -> Any:
        self._next()
        while True:
            try:
                found, end = _DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                self._check_size(self._text[self._at : self._at + LONGEST + 1])
                if self._more():
                    continue  # it may be whole with what follows
                self._at = error.pos
                raise self._wrong(error.msg) from None
            except RecursionError:
                raise NotJson("it is nested too deeply") from None
            except ValueError:  # sys.get_int_max_str_digits
                raise NotJson(
                    "a whole number in it has more digits than anything measured has"
                ) from None
            if len(self._text) - end < len(".e-") and self._more():
                continue  # a number may go on
            text = self._text[self._at : end]
            self._check_size(text)
            self._at = end
            return _shown(found, text)

    def _more(self) -> bool:
        """Take as much text again as waits to be read; False at the end of the file."""
        block = self._file.read(max(BLOCK, len(self._text) - self._at))
        if block:
            self._before += self._at
            self._text, self._at = self._text[self._at :] + block, 0
        return bool(block)

    def _wrong(self, what: str) -> NotJson:
        return NotJson(f"{what}: character {self._before + self._at:,}")


def loads(text: str) -> Any:
    """One value as Python's reader takes it, but :func:`sanitised`."""
    return _shown(json.loads(text), text)


def _shown(found: Any, text: str) -> Any:
    may_hide = not text.isascii() or "\x7f" in text or ESCAPED.search(text)
    return sanitised(found) if may_hide else found


def dump(content: Any) -> str:
    """``content`` as one line of JSON; what is not finite is ``null``."""
    try:
        return json.dumps(content, allow_nan=False)
    except ValueError:
        return json.dumps(finite(content), allow_nan=False)


def finite(value: Any, levels: int = 1000) -> Any:
    """``value`` with None for every number that JSON cannot hold.

    Raises ValueError where it is nested deeper than so many ``levels``.
    """
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if not isinstance(value, dict | list | tuple):
        return value
    if levels == 0:
        raise ValueError("nested too deeply")
    if isinstance(value, dict):
        return {key: finite(part, levels - 1) for key, part in value.items()}
    return [finite(part, levels - 1) for part in value]


def _plain(value: Any) -> Any:
    return finite(value, DEEPEST)


Free = Annotated[Any, BeforeValidator(_plain)]
"""A value of no fixed form: what a model holds of it is JSON."""
