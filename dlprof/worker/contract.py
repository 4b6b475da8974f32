"""Check what a probe declares, once, when it is loaded.

Later code relies on it: names stand in session files, code is compiled, variables are set.
"""

from __future__ import annotations

import reprlib
from collections import Counter
from collections.abc import Mapping
from string import Formatter
from typing import Any

from dlprof.probes.base import ANY_DEVICE, LAYOUTS, Export, Import, Probe, Protocol, Use


class FaultyProbe(Exception):
    """A probe cannot be used; the message says why."""


def check_probe(kind: type[Probe]) -> None:
    """Raise :class:`FaultyProbe` for the first declaration of ``kind`` that cannot be used."""
    where = kind.__name__
    for attribute in ("name", "module"):
        check_name(getattr(kind, attribute, None), f"{where}.{attribute}")
    for attribute in ("aliases", "distributions", "also"):
        _names(getattr(kind, attribute, None), f"{where}.{attribute}")
    for attribute in ("requirement", "setup", "c_exchange_type"):
        check_text(getattr(kind, attribute), f"{where}.{attribute}")
    _devices(kind.devices, f"{where}.devices")
    _variables(kind.variables, f"{where}.variables")
    _ways(kind.exports, Export, f"{where}.exports")
    _ways(kind.imports, Import, f"{where}.imports")


def check_name(value: Any, where: str) -> None:
    if not (isinstance(value, str) and value and value.isprintable()):
        raise FaultyProbe(f"{where} must be a name, not {reprlib.repr(value)}")


def check_text(value: Any, where: str) -> str:
    """``value`` if it is text that can stand in a file."""
    if not isinstance(value, str) or value != value.encode("utf-8", "replace").decode("utf-8"):
        raise FaultyProbe(f"{where} must be text, not {reprlib.repr(value)}")
    return value


def check_use(use: Any, framework: str) -> str:
    """The code of an operation: text with ``{x}``, or a :class:`Use` with further arrays."""
    if not isinstance(use, Use):
        return check_code(use, f"what {framework}'s use returns")
    where = f"what {framework}'s use_many returns"
    check_text(use.setup, f"the setup of {where}")
    if not isinstance(use.others, Mapping) or not all(name.isidentifier() for name in use.others):
        raise FaultyProbe(f"the others of {where} must be shapes by name: {use.others!r}")
    return check_code(use.code, where, names=("x", *use.others))


def check_code(
    value: Any, where: str, needs_array: bool = True, names: tuple[str, ...] = ("x",)
) -> str:
    """``value`` if it is a Python expression with ``{x}``, which it may lack if not needed.

    Each of ``names`` may stand in braces.
    """
    code = check_text(value, where)
    try:
        fields = [field[1:] for field in Formatter().parse(code) if field[1] is not None]
    except ValueError:
        raise FaultyProbe(f"{where} has a brace without its partner: {code!r}") from None
    known = [(name, "", None) for name in names]
    missing = needs_array and ("x", "", None) not in fields
    if missing or any(field not in known for field in fields):
        more = ", ".join(f"{{{name}}}" for name in names[1:])
        allowed = f"{{x}} (and may hold {more})" if more else "{x}"
        raise FaultyProbe(f"{where} must hold {allowed} and nothing else in braces: {code!r}")
    try:
        compile(code.format(**{name: name for name in names}), where, "eval")
    except (SyntaxError, ValueError) as fault:
        why = fault.msg if isinstance(fault, SyntaxError) else str(fault)
        raise FaultyProbe(f"{where} is not a Python expression: {code!r} ({why})") from None
    return code


def _names(values: Any, where: str) -> None:
    _tuple(values, where)
    for value in values:
        check_name(value, where)


def _tuple(values: Any, where: str) -> None:
    # A forgotten comma makes a string of a tuple, which can be iterated as well.
    if not isinstance(values, tuple):
        raise FaultyProbe(f"{where} must be a tuple, not {reprlib.repr(values)}")


def _devices(values: Any, where: str) -> None:
    _tuple(values, where)
    if not values or any(value not in ANY_DEVICE for value in values):
        raise FaultyProbe(f"{where} must be of {ANY_DEVICE}, not {reprlib.repr(values)}")


def _variables(values: Any, where: str) -> None:
    if not isinstance(values, Mapping):
        raise FaultyProbe(f"{where} must be a mapping, not {reprlib.repr(values)}")
    for name, value in values.items():
        check_name(name, where)
        check_text(value, f"{where}[{name!r}]")
        if "=" in name or "\0" in value:
            raise FaultyProbe(f"{where}[{name!r}] cannot be an environment variable")


def _ways(ways: Any, kind: type[Export | Import], where: str) -> None:
    _tuple(ways, where)
    for way in ways:
        if not isinstance(way, kind):
            raise FaultyProbe(f"{where} must hold {kind.__name__}s, not {reprlib.repr(way)}")
        check_name(way.name, f"a name in {where}")
        _way(way, f"{where} {way.name!r}")
    for name, count in Counter(way.name for way in ways).items():
        if count > 1:
            raise FaultyProbe(f"{where} has two ways named {name!r}")


def _way(way: Export | Import, where: str) -> None:
    check_code(way.code, f"the code of {where}", names=("x", "dtype", "shape"))
    _devices(way.devices, f"devices of {where}")
    check_text(way.note, f"the note of {where}")
    if way.promise not in (None, "copy", "view"):
        raise FaultyProbe(f"the promise of {where} must be copy or view, not {way.promise!r}")
    protocols = way.protocols if isinstance(way, Import) else (way.protocol,)
    _tuple(protocols, f"protocols of {where}")
    if not protocols or not all(isinstance(protocol, Protocol) for protocol in protocols):
        raise FaultyProbe(f"the protocol of {where} must be a Protocol, not {protocols!r}")
    if isinstance(way, Import):
        _names(way.producers, f"producers of {where}")
        if way.result_device not in ("", *ANY_DEVICE):
            raise FaultyProbe(f"the result_device of {where} is {way.result_device!r}")
        check_text(way.setup, f"the setup of {where}")
        _names(way.layouts, f"layouts of {where}")
        if set(way.layouts) - set(LAYOUTS):
            raise FaultyProbe(f"the layouts of {where} must be of {', '.join(LAYOUTS)}")
