"""Read a scenario file; whatever is wrong in it is told in one sentence."""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from dlprof.errors import ScenarioError
from dlprof.plan.request import ONE_INTERPRETER
from dlprof.rules import NEEDS
from dlprof.scenario.expectation import parse as parse_expectation
from dlprof.scenario.model import FloorSpec, Part, Scenario, StepSpec
from dlprof.session import files
from dlprof.text.clean import clean

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LONGEST_FILE = 1 << 20
LONGEST_VALUE = 60
REMOVED = {"environment": ONE_INTERPRETER}
"""Keys that scenarios no longer have, and what to do instead."""
_TYPES = {
    "dict_type": "a table",
    "model_type": "a table",
    "list_type": "a list",
    "string_type": "a text in quotes",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
}


def read(path: Path) -> Scenario:
    """The scenario of a file. Raises :class:`ScenarioError`."""
    return parse(_text(path), str(path))


def parse(text: str, name: str) -> Scenario:
    """The scenario that ``text`` tells of; ``name`` is for messages."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(f"{name} is not TOML: {clean(str(error))}") from None
    except RecursionError:
        raise ScenarioError(f"{name} is nested too deeply for a scenario") from None
    except ValueError:  # sys.get_int_max_str_digits
        raise ScenarioError(f"{name} holds a whole number of too many digits") from None
    found = validated(content, name, text)
    _check_expected(found, name, text)
    return found


def _check_expected(scenario: Scenario, name: str, text: str) -> None:
    """A file that asks for what it leaves out makes no sense; ``--quick`` may leave it out."""
    for number, expected in enumerate(scenario.expect if not scenario.diagnose else ()):
        needed = NEEDS.get(parse_expectation(expected).what)
        if needed:
            line = line_of(text, ("expect", number))
            raise ScenarioError(
                f"{name}{f', line {line}' if line else ''}: expect {number + 1}: {expected!r} needs"
                f" the {needed.replace('_', ' ')}, which diagnose = false leaves out"
            )


def validated(content: Mapping[str, Any], name: str, text: str = "") -> Scenario:
    """The scenario with this content. Raises :class:`ScenarioError` that names line and key."""
    try:
        return Scenario.model_validate(content)
    except ValidationError as error:
        # An unknown key is often the wrong name of one that is missing.
        faults = sorted(error.errors(), key=lambda fault: fault["type"] != "extra_forbidden")
        more = len({fault["loc"][:2] for fault in faults}) - 1
        rest = f" (and {more} more)" if more else ""
        where = _where(faults[0])
        line = line_of(text, where)
        place = f"{name}, line {line}" if line else name
        raise ScenarioError(f"{place}: {clean(_sentence(faults[0], where))}{rest}") from None


def fault(path: Path, where: Sequence[str | int], words: str) -> ScenarioError:
    """What is wrong with a key of a file that was read; it is known only where it is used."""
    try:
        line = line_of(_text(path), where)
    except ScenarioError:  # a scenario that is at hand, and no file
        line = None
    place = f"{path}, line {line}" if line else str(path)
    return ScenarioError(f"{place}: {_key_text(where)}: {words}")


def _text(path: Path) -> str:
    try:
        endless = files.endless(path)
        if endless:
            raise ScenarioError(f"cannot read the scenario {clean(str(path))}: it is {endless}")
        with path.open("rb") as file:
            data = file.read(LONGEST_FILE + 1)
    except (OSError, ValueError) as error:
        cause = getattr(error, "strerror", None) or str(error)
        raise ScenarioError(f"cannot read the scenario {clean(str(path))}: {cause}") from None
    if len(data) > LONGEST_FILE:
        raise ScenarioError(f"{path} is too long for a scenario: more than {LONGEST_FILE} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ScenarioError(f"{path} is not a scenario: it is not UTF-8 text") from None


def _where(fault: ErrorDetails) -> tuple[str | int, ...]:
    """The path to the fault in the file, without what the model adds to it."""
    path: list[str | int] = []
    for step in fault["loc"]:
        if isinstance(step, str) and re.search(r"[^A-Za-z0-9_-]|^constrained-", step) and path:
            break  # the branch of a union, or the mark of a key
        path.append(step)
    return tuple(path)


def _sentence(fault: ErrorDetails, where: Sequence[str | int]) -> str:
    key = _key_text(where)
    if fault["type"] == "extra_forbidden" and str(where[0]) in REMOVED:
        return f"{where[0]} was removed: {REMOVED[str(where[0])]}"
    if fault["type"] == "extra_forbidden":
        return f"unknown key {str(where[-1])!r}: {_known(where)}"
    if fault["type"] == "missing":
        return f"{key} is missing"
    if fault["type"] == "too_short" and fault["input"] == []:
        return f"{key} is empty: it names nothing to measure"
    if fault["type"] == "value_error":
        told = fault["msg"].removeprefix("Value error, ")
        return f"{key}: {told}" if key else told
    expected = fault["msg"].replace("Input should be ", "").replace("Input should ", "to ")
    return f"{key}: found {_found(fault['input'])}, expected {_TYPES.get(fault['type'], expected)}"


def _key_text(where: Sequence[str | int]) -> str:
    """``environment 2, python``: places are counted from 1."""
    words: list[str] = []
    for step in where:
        if isinstance(step, int) and words:
            words[-1] += f" {step + 1}"
        else:
            words.append(str(step))
    return ", ".join(words)


def _found(value: Any) -> str:
    shown = str(value).lower() if isinstance(value, bool) else repr(value)
    return clean(shown, LONGEST_VALUE)


def _known(where: Sequence[str | int]) -> str:
    tables: dict[str, type[Part]] = {
        "floor": FloorSpec,
        "step": StepSpec,
    }
    fields = tables.get(str(where[0]) if len(where) > 1 else "", Scenario).model_fields
    near = difflib.get_close_matches(str(where[-1]), fields, n=1)
    return f"did you mean {near[0]!r}?" if near else f"known are {', '.join(fields)}"


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
        for there in (path, (*path, 0)):  # the first of several tables of one name
            if there in lines:
                return lines[there]
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
