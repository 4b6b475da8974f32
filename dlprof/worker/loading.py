"""Find probes: those that come with dlprof, from files, and from installed packages.

A source is a word: ``builtin``, ``file:/path/to/probe.py``, ``entry:name``, ``code:`` and a user's
own conversion, or ``step:`` and a framework that runs a model. Foreign code runs here, in a
worker, and never in the parent.
"""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType
from typing import Any

from dlprof import inference
from dlprof.probes import ALL
from dlprof.probes.base import Probe
from dlprof.worker import own_code
from dlprof.worker.declared import FaultyProbe, check_probe

GROUP = "dlprof.probes"


def entry_names() -> list[str]:
    """Names in the entry-point group ``dlprof.probes``."""
    from importlib.metadata import entry_points

    return sorted({entry.name for entry in entry_points(group=GROUP)})


def load(source: str) -> list[Probe]:
    """The probes of a source. Raises :class:`FaultyProbe`; foreign code may raise anything."""
    if source == "builtin":
        return [kind() for kind in ALL]
    if source == "synthetic":
        from dlprof.selftest.device import probe as on_device
        from dlprof.selftest.probe import probes

        return [*probes(), *on_device.probes()]
    if source.startswith(own_code.PREFIX):
        return own_code.probes(source, find)
    if source.startswith(inference.PREFIX):
        return [inference.load(source)]
    if source.startswith("file:"):
        return _from_module(_load_file(source.removeprefix("file:")), source)
    return [_checked(_load_entry(source.removeprefix("entry:")), source)]


def find(source: str, name: str) -> Probe:
    """The probe called ``name`` of a source."""
    for probe in load(source):
        if probe.name == name:
            return probe
    raise FaultyProbe(f"{source} has no probe named {name}")


def _load_file(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"dlprof_outside_probe:{path}", path)
    if spec is None or spec.loader is None:
        raise FaultyProbe(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where a dataclass looks for the names in its annotations
    spec.loader.exec_module(module)
    return module


def _load_entry(name: str) -> Any:
    from importlib.metadata import entry_points

    (entry,) = (entry for entry in entry_points(group=GROUP) if entry.name == name)
    return entry.load()


def _from_module(module: ModuleType, source: str) -> list[Probe]:
    kinds = [
        thing
        for thing in vars(module).values()
        if isinstance(thing, type)
        and issubclass(thing, Probe)
        and thing.__module__ == module.__name__
    ]
    if not kinds:
        raise FaultyProbe("it defines no subclass of dlprof.probes.base.Probe")
    return [_checked(kind, source) for kind in dict.fromkeys(kinds)]  # a class may have two names


def _checked(kind: Any, source: str) -> Probe:
    if not (isinstance(kind, type) and issubclass(kind, Probe)):
        raise FaultyProbe(f"{source} is not a subclass of dlprof.probes.base.Probe")
    check_probe(kind)
    return kind()
