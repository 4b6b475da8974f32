"""Read the source of a traced program: expressions, allowed faults, uncounted copies."""

from __future__ import annotations

import ast
import linecache
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from dlprof.runner import files
from dlprof.text.source import NOT_PYTHON

AROUND, WIDEST, MOST_SOURCES = 5, 300, 1000
"""Lines kept around a row, characters kept of a line, and rows whose source is kept."""
ALLOW = re.compile(
    r"#\s*dlprof:\s*allow\s+((?:copy|wait|device-crossing)(?:,\s*(?:copy|wait|device-crossing))*)"
)
METHODS = frozenset(("copy", "astype", "clone"))
FUNCTIONS = frozenset(
    (
        *("stack", "cat", "concat", "concatenate", "vstack", "hstack", "column_stack"),
        *(f"{name}Tensor" for name in ("Float", "Double", "Half", "BFloat16", "Bool", "Byte")),
        *(f"{name}Tensor" for name in ("Char", "Short", "Int", "Long")),
    )
)
"""Methods and functions of modules that copy arrays and that have no row."""
LEAST_SHARE = 100
"""A line without a row counts if it takes this part of the run."""


class File:
    """The source of one file."""

    def __init__(self, name: str) -> None:
        self.lines = _source(name)

    @cached_property
    def statements(self) -> dict[int, tuple[int, int, tuple[str, ...]]]:
        """By line: first and last line of its statement, without blocks, and its copies."""
        found: dict[int, tuple[int, int, tuple[str, ...]]] = {}
        with suppress(*NOT_PYTHON):
            for node in ast.walk(ast.parse("\n".join(self.lines))):  # the innermost is the last
                if isinstance(node, ast.stmt) and not hasattr(node, "decorator_list"):
                    body = getattr(node, "body", None)
                    last = max(node.lineno, body[0].lineno - 1) if body else node.end_lineno
                    entry = node.lineno, last or node.lineno, _copies(node, last or node.lineno)
                    found.update(dict.fromkeys(range(entry[0], entry[1] + 1), entry))
        return found


def _copies(statement: ast.stmt, last: int) -> tuple[str, ...]:
    """Return the calls up to the line ``last`` that copy arrays and that have no row."""
    found: dict[str, None] = {}
    for node in ast.walk(statement):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        name = node.func.attr
        if node.lineno <= last and name in METHODS:
            found[f".{name}()"] = None
        elif node.lineno <= last and name in FUNCTIONS and isinstance(node.func.value, ast.Name):
            found[f"{node.func.value.id}.{name}()"] = None
    return tuple(found)


def read(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields of a trace: rows with their source, the text around them, and ``uncounted``."""
    linecache.checkcache()
    least_ns = fields["wall_ns"] / LEAST_SHARE
    times_ns = {(file, line): ns for file, line, ns in fields["lines"]}
    long = [place for place, ns in times_ns.items() if ns >= least_ns]
    places = dict.fromkeys([*((row["file"], row["line"]) for row in fields["rows"]), *long])
    found = {name: File(name) for name in {file for file, _ in places}}
    statements = {}
    for file, line in places:
        first, last, copies = found[file].statements.get(line, (line, line, ()))
        took_ns = sum(times_ns.get((file, number), 0) for number in range(first, last + 1))
        statements[file, line] = first, took_ns, copies
    uncounted = {
        (file, first): (file, first, took_ns, copies)
        for (file, _), (first, took_ns, copies) in statements.items()
        if copies and not {*fields["frameworks"]} <= {"numpy"}
    }
    rows = []
    for row in fields["rows"]:
        lines = found[row["file"]].lines
        rows.append(
            {
                **row,
                "expression": _expression(row, lines)[:WIDEST],
                "allowed": sorted({*_allowed(row, lines)}),
                "line_ns": statements[row["file"], row["line"]][1],
            }
        )
    named = {name: _cell(name) or name for name in found}
    sources = _sources(rows, {name: file.lines for name, file in found.items()})
    return {
        "rows": [{**row, "file": named[row["file"]]} for row in rows],
        "sources": {named[name]: lines for name, lines in sources.items()},
        "uncounted": [
            (named[file], *entry)
            for file, *entry in sorted(uncounted.values(), key=lambda entry: -entry[2])
        ],
        **{
            key: [(_cell(file) or file, *entry) for file, *entry in fields[key]]
            for key in ("arguments", "lines")
        },
    }


def _cell(name: str) -> str:
    """Return ``In[5]`` for the file of a notebook's cell; empty for any other."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    found = shell and shell.compile.format_code_name(name)
    return found[1] if found else ""


def _sources(
    rows: Sequence[Mapping[str, Any]], texts: Mapping[str, list[str]]
) -> dict[str, list[tuple[int, str]]]:
    """Return the lines around each row, by file."""
    line_numbers: dict[str, set[int]] = {}
    for row in rows[:MOST_SOURCES]:
        around = range(row["line"] - AROUND, row["line"] + AROUND + 1)
        line_numbers.setdefault(row["file"], set()).update(around)
    return {
        file: [
            (number, lines[number - 1][:WIDEST])
            for number in sorted(numbers)
            if 0 < number <= len(lines)
        ]
        for file, numbers in line_numbers.items()
        if (lines := texts[file])
    }


def _source(file: str) -> list[str]:
    """Return the lines of a file or of a notebook's cell. Code may name any file as its own."""
    with suppress(OSError, ValueError):
        if not Path(file).exists() or files.is_readable(Path(file)):
            return [line.rstrip("\n") for line in linecache.getlines(file)]
    return []


def _expression(row: Mapping[str, Any], lines: Sequence[str]) -> str:
    """Return the text of a conversion, or the whole line if its columns do not hold a call."""
    span = row.get("span")
    number: int = row["line"]
    if not 1 <= number <= len(lines):
        return ""
    if span and span[1] <= len(lines):
        first, last, begin, end = span
        with suppress(*NOT_PYTHON, IndexError):  # a long chain of operands is too deep
            texts = [text.encode() for text in lines[first - 1 : last]]
            texts[-1] = texts[-1][:end]
            texts[0] = texts[0][begin:]
            tree = ast.parse(b"\n".join(texts).decode("utf-8", "replace"), mode="eval")
            if any(isinstance(node, ast.Call) for node in ast.walk(tree)):
                return ast.unparse(tree)
    return lines[number - 1].split("#")[0].strip()


def _allowed(row: Mapping[str, Any], lines: Sequence[str]) -> Iterator[str]:
    """Yield what comments on the lines of the expression allow."""
    line = row["line"]
    first, last = (row.get("span") or (line, line))[:2]
    for text in lines[max(min(first, line) - 1, 0) : max(last, line)]:
        for words in ALLOW.findall(text):
            yield from (word.strip() for word in words.split(","))
