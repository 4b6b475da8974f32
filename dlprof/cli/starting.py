"""While an interpreter starts, which may take a minute: say so where somebody looks."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext

from rich.console import Console
from rich.text import Text

from dlprof.catalog import Catalog
from dlprof.clean import clean
from dlprof.measuring import inspect_interpreter


def started(python: str, probe_files: tuple[str, ...] = ()) -> Catalog:
    """As :func:`dlprof.measuring.inspect_interpreter`, and said on a terminal."""
    with _said(f"starting {python}"):
        return inspect_interpreter(python, probe_files)


def _said(text: str) -> AbstractContextManager[object]:
    if not sys.stderr.isatty():  # rich takes FORCE_COLOR for a terminal
        return nullcontext()
    return Console(stderr=True).status(Text(clean(text)))
