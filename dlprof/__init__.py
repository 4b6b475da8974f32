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


def __getattr__(name: str) -> Any:
    # Loaded at first use: 'dlprof --help' must not pay for pydantic.
    if name in __all__:
        from importlib import import_module

        module = "dlprof.errors" if name == "DlprofError" else "dlprof.api"
        return getattr(import_module(module), name)
    raise AttributeError(f"module 'dlprof' has no attribute {name!r}")


def load_ipython_extension(shell: Any) -> None:
    """Add ``%dlprof`` and ``%%dlprof`` to IPython, which calls this for ``%load_ext dlprof``."""
    from dlprof.notebook import register

    register(shell)
