"""Ask the interpreter to measure what it has; on a terminal, say what the user waits for."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext

from dlprof.plan.catalog import Catalog
from dlprof.runner.inspection import Inspection
from dlprof.text.clean import clean


def inspected(python: str, probe_files: tuple[str, ...] = (), simulated: int = 0) -> Catalog:
    """The catalog of an interpreter, with so many ``simulated`` CUDA devices or the machine's own.

    What takes as long to import as the interpreter needs to answer is imported meanwhile.
    """
    with Inspection(python, probe_files, simulated) as inspection:
        from dlprof.cli import measure  # noqa: F401

        with _status(f"starting {python}"):
            return inspection.catalog()


def _status(text: str) -> AbstractContextManager[object]:
    if not sys.stderr.isatty():  # rich takes FORCE_COLOR for a terminal
        return nullcontext()
    from rich.console import Console
    from rich.text import Text

    return Console(stderr=True).status(Text(clean(text)))
