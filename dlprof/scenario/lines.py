"""On which line of a TOML file a key stands; the parser tells only of errors of syntax."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_HEADER = re.compile(r"\s*(\[\[?)([^\[\]]+)\]")
_KEY = re.compile(r"""\s*["']?([A-Za-z0-9_-]+)["']?\s*(?:=|\.)""")
_QUOTES = re.compile(r'"""|' + r"'''")

Where = tuple[str | int, ...]


def line_of(text: str, where: Sequence[str | int]) -> int | None:
    """The line, from 1, of the deepest key of ``where`` that can be found; None if there is none.

    ``where`` is a path such as ``("environment", 1, "python")``: the table, its place among
    those of the same name, and the key in it.
    """
    lines = dict(_lines(text))
    path = tuple(where)
    while path:
        if path in lines:
            return lines[path]
        path = path[:-1]
    return None


def _lines(text: str) -> Iterator[tuple[Where, int]]:
    table: Where = ()
    counts: dict[str, int] = {}
    inside = ""
    for number, line in enumerate(text.splitlines(), start=1):
        quotes = _QUOTES.findall(line)
        if inside:
            inside = "" if quotes.count(inside) % 2 else inside
            continue
        header, key = _HEADER.match(line), _KEY.match(line)
        if header is not None:
            table = _table(header[1], header[2].strip().strip("\"'"), counts)
            yield table, number
        elif key is not None:
            yield (*table, key[1]), number
        inside = quotes[0] if quotes and quotes.count(quotes[0]) % 2 else ""


def _table(bracket: str, name: str, counts: dict[str, int]) -> Where:
    if bracket == "[":
        return (name,)
    counts[name] = counts.get(name, -1) + 1
    return name, counts[name]
