"""dlprof: what does a conversion of tensors between frameworks cost, view or copy?

PYTEST_DONT_REWRITE: a traced pytest finds dlprof imported, and would warn of that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dlprof._version import __version__

if TYPE_CHECKING:
    from dlprof.api import Session, load, measure, run, trace
    from dlprof.errors import DlprofError

__all__ = ["DlprofError", "Session", "__version__", "load", "measure", "run", "trace"]

_HOMES = {
    "DlprofError": "dlprof.errors",
    "Session": "dlprof.api",
    "load": "dlprof.api",
    "measure": "dlprof.api",
    "run": "dlprof.api",
    "trace": "dlprof.api",
}


def __getattr__(name: str) -> Any:
    # Loaded at first use: 'dlprof --help' must not pay for pydantic.
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'dlprof' has no attribute {name!r}")
