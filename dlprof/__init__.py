"""dlprof: what does a conversion of tensors between frameworks cost, view or copy?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dlprof.session import Session, load

__version__ = "0.1.0"

__all__ = ["Session", "__version__", "load"]


def __getattr__(name: str) -> Any:
    # Loaded at first use: 'dlprof --help' must not pay for pydantic.
    if name in ("Session", "load"):
        from dlprof import session

        return getattr(session, name)
    raise AttributeError(f"module 'dlprof' has no attribute {name!r}")
