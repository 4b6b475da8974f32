"""Check what a probe declares, once, when it is loaded.

Later code relies on it: names stand in session files, code is compiled, variables are set.
"""

from __future__ import annotations

import reprlib
from collections import Counter
from collections.abc import Mapping
from string import Formatter
from typing import Any

from dlprof.probes.base import (
    ANY_DEVICE,
    DTYPES,
    FLAGS,
    LAYOUTS,
    Export,
    Import,
    Probe,
    Protocol,
    Use,
)
from dlprof.worker.refusal import FaultyProbe


def check_probe(kind: type[Probe]) -> None:
    """Raise :class:`FaultyProbe` for the first declaration of ``kind`` that cannot be used."""
    where = kind.__name__
    for attribute in ("name", "module"):
        value = getattr(kind, attribute, None)
        _need(_is_name(value), f"{where}.{attribute}", "a name", value)
    for attribute in ("aliases", "distributions", "also", "flags"):
        _names(getattr(kind, attribute, None), f"{where}.{attribute}")
    for attribute in ("requirement", "setup", "c_exchange_type", "narrows_why"):
        check_text(getattr(kind, attribute), f"{where}.{attribute}")
    _devices(kind.devices, f"{where}.devices")
    immutable = kind.immutable
    _need(isinstance(immutable, bool), f"{where}.immutable", "True or False", immutable)
    _need(set(kind.flags) <= set(FLAGS), f"{where}.flags", f"of {', '.join(FLAGS)}", kind.flags)
    narrows = dict(kind.narrows) if isinstance(kind.narrows, Mapping) else {None: kind.narrows}
    known = {*narrows, *narrows.values()} <= set(DTYPES)
    _need(known, f"{where}.narrows", "a mapping between dtypes", kind.narrows)
    _need(isinstance(kind.variables, Mapping), f"{where}.variables", "a mapping", kind.variables)
    for name, value in kind.variables.items():
        check_text(value, f"{where}.variables[{name!r}]")
        if not _is_name(name) or "=" in name or "\0" in value:
            raise FaultyProbe(f"{where}.variables[{name!r}] cannot be an environment variable")
    _need(isinstance(kind.settings, Mapping), f"{where}.settings", "a mapping", kind.settings)
    for name, text in kind.settings.items():
        _need(_is_name(name), f"{where}.settings", "a mapping of names", name)
        check_text(text, f"{where}.settings[{name!r}]")
    _ways(kind.exports, Export, f"{where}.exports")
    _ways(kind.imports, Import, f"{where}.imports")


def check_text(value: Any, where: str) -> str:
    is_text = isinstance(value, str) and value == value.encode("utf-8", "replace").decode("utf-8")
    _need(is_text, where, "text", value)
    return str(value)


def check_use(use: Any, framework: str) -> str:
    """The code of an operation: text with ``{x}``, or a :class:`Use` with further arrays."""
    if not isinstance(use, Use):
        return check_code(use, f"what {framework}'s use returns")
    where = f"what {framework}'s use_many returns"
    check_text(use.setup, f"the setup of {where}")
    named = isinstance(use.others, Mapping) and all(name.isidentifier() for name in use.others)
    _need(named, f"the others of {where}", "shapes by name", use.others)
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
    missing = needs_array and ("x", "", None) not in fields
    if missing or any(field not in [(name, "", None) for name in names] for field in fields):
        more = ", ".join(f"{{{name}}}" for name in names[1:])
        allowed = f"{{x}} (and may hold {more})" if more else "{x}"
        raise FaultyProbe(f"{where} must hold {allowed} and nothing else in braces: {code!r}")
    try:
        compile(code.format(**{name: name for name in names}), where, "eval")
    except (SyntaxError, ValueError) as fault:
        why = fault.msg if isinstance(fault, SyntaxError) else fault
        raise FaultyProbe(f"{where} is not a Python expression: {code!r} ({why})") from None
    return code


def _need(is_right: bool, where: str, what: str, value: Any) -> None:
    if not is_right:
        raise FaultyProbe(f"{where} must be {what}, not {reprlib.repr(value)}")


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and bool(value) and value.isprintable()


def _names(values: Any, where: str) -> None:
    # A forgotten comma makes a string of a tuple, which can be iterated as well.
    _need(isinstance(values, tuple), where, "a tuple", values)
    for value in values:
        _need(_is_name(value), where, "names", value)


def _devices(values: Any, where: str) -> None:
    _names(values, where)
    known = bool(values) and set(values) <= set(ANY_DEVICE)
    _need(known, where, f"of {ANY_DEVICE}", values)


def _ways(ways: Any, kind: type[Export | Import], where: str) -> None:
    _need(isinstance(ways, tuple), where, "a tuple", ways)
    for way in ways:
        _need(isinstance(way, kind), where, f"a tuple of {kind.__name__}s", way)
        _need(_is_name(way.name), f"a name in {where}", "a name", way.name)
        _way(way, f"{where} {way.name!r}")
    for name, count in Counter(way.name for way in ways).items():
        if count > 1:
            raise FaultyProbe(f"{where} has two ways named {name!r}")


def _way(way: Export | Import, where: str) -> None:
    check_code(way.code, f"the code of {where}", names=("x", "dtype", "shape"))
    _devices(way.devices, f"devices of {where}")
    promised = way.promise in (None, "copy", "view")
    _need(promised, f"the promise of {where}", "copy or view", way.promise)
    protocols = way.protocols if isinstance(way, Import) else (way.protocol,)
    _need(isinstance(protocols, tuple), f"protocols of {where}", "a tuple", protocols)
    known = bool(protocols) and all(isinstance(one, Protocol) for one in protocols)
    _need(known, f"the protocol of {where}", "a Protocol", protocols)
    if isinstance(way, Import):
        _names(way.producers, f"producers of {where}")
        placed = way.result_device in ("", *ANY_DEVICE)
        _need(placed, f"the result_device of {where}", f"of {ANY_DEVICE}", way.result_device)
        check_text(way.setup, f"the setup of {where}")
        _names(way.layouts, f"layouts of {where}")
        laid = set(way.layouts) <= set(LAYOUTS)
        _need(laid, f"the layouts of {where}", f"of {', '.join(LAYOUTS)}", way.layouts)
