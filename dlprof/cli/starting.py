"""While an interpreter starts, which may take a minute: say so where somebody looks."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext

from dlprof.plan.catalog import Catalog
from dlprof.runner.inspection import Inspection
from dlprof.text.clean import clean


class Starting(Inspection):
    """An inspection that tells a user on a terminal what he waits for."""

    def catalog(self) -> Catalog:
        with _said(f"starting {self.python}"):
            return super().catalog()


def started(python: str, probe_files: tuple[str, ...] = ()) -> Catalog:
    """The catalog of an interpreter."""
    with Starting(python, probe_files) as starting:
        return starting.catalog()


def _said(text: str) -> AbstractContextManager[object]:
    if not sys.stderr.isatty():  # rich takes FORCE_COLOR for a terminal
        return nullcontext()
    from rich.console import Console
    from rich.text import Text

    return Console(stderr=True).status(Text(clean(text)))
