"""Check what a probe declares, once, when it is loaded.

Later code relies on it: names stand in session files, and code is compiled.
"""

from __future__ import annotations

import reprlib
from collections.abc import Collection
from string import Formatter
from typing import Any

from dlprof.probes.base import ANY_DEVICE, LAYOUTS, Export, Import, Probe, Protocol
from dlprof.worker.refusal import FaultyProbe


def check_probe(kind: type[Probe]) -> None:
    """Raise :class:`FaultyProbe` for the first declaration of ``kind`` that cannot be used."""
    where = kind.__name__
    for attribute in ("name", "module", "requirement", "setup", "c_exchange_type"):
        check_text(getattr(kind, attribute, None), f"{where}.{attribute}")
    _need(kind.name.isprintable() and bool(kind.name), f"{where}.name", "a name", kind.name)
    for attribute in ("aliases", "distributions", "also"):
        _tuple_of(str, getattr(kind, attribute, None), f"{where}.{attribute}")
    _known(kind.devices, ANY_DEVICE, f"{where}.devices")
    _check_ways(Export, kind.exports, f"{where}.exports")
    _check_ways(Import, kind.imports, f"{where}.imports")


def check_text(value: Any, where: str) -> str:
    _need(isinstance(value, str), where, "text", value)
    return str(value)


def check_code(
    value: Any, where: str, needs_array: bool = True, names: tuple[str, ...] = ("x",)
) -> str:
    """Return ``value`` if it is a Python expression with ``{x}``.

    It may lack ``{x}`` if it needs no array. Each of ``names`` may stand in braces.
    """
    code = check_text(value, where)
    try:
        fields = {field for _, field, *_ in Formatter().parse(code) if field is not None}
        right = fields <= set(names) and ("x" in fields or not needs_array)
        compile(code.format(**{name: name for name in fields}), where, "eval")
    except (SyntaxError, ValueError) as fault:
        raise FaultyProbe(f"{where} is not a Python expression: {code!r} ({fault})") from None
    allowed = ", ".join(f"{{{name}}}" for name in names)
    _need(right, where, f"an expression of {allowed}", code)
    return code


def _check_ways(kind: type, ways: tuple[Export | Import, ...], where: str) -> None:
    _tuple_of(kind, ways, where)
    names = [way.name for way in ways]
    _need(len(set(names)) == len(names), f"names in {where}", "different", names)
    for way in ways:
        _check_way(way, f"{where} {way.name!r}")


def _check_way(way: Export | Import, where: str) -> None:
    check_code(way.code, f"the code of {where}", names=("x", "dtype", "shape"))
    _known(way.devices, ANY_DEVICE, f"devices of {where}")
    promised = way.promise in (None, "copy", "view")
    _need(promised, f"the promise of {where}", "copy or view", way.promise)
    protocols = way.protocols if isinstance(way, Import) else (way.protocol,)
    _tuple_of(Protocol, protocols, f"the protocol of {where}")
    if isinstance(way, Import):
        _tuple_of(str, way.producers, f"producers of {where}")
        check_text(way.setup, f"the setup of {where}")
        _known(way.layouts, LAYOUTS, f"the layouts of {where}")


def _tuple_of(kind: type, values: Any, where: str) -> None:
    # A forgotten comma makes a string of a tuple, which can be iterated as well.
    right = isinstance(values, tuple) and all(isinstance(one, kind) for one in values)
    _need(right, where, f"a tuple of {kind.__name__}", values)


def _known(values: Any, known: Collection[str], where: str) -> None:
    _tuple_of(str, values, where)
    _need(set(values) <= set(known), where, f"of {', '.join(known)}", values)


def _need(is_right: bool, where: str, what: str, value: Any) -> None:
    if not is_right:
        raise FaultyProbe(f"{where} must be {what}, not {reprlib.repr(value)}")
