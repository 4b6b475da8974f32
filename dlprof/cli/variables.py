"""Environment variables that dlprof changes for itself, and as the user set them."""

from __future__ import annotations

import os
import re
import sys

NO_TERMINAL = "_TYPER_FORCE_DISABLE_TERMINAL"
_before: dict[str, str | None] = {}
"""What was there before; None where nothing was."""


def settle() -> None:
    """Change what the libraries behind the command line cannot read, or read wrongly."""
    _before.clear()
    for name in ("COLUMNS", "LINES"):  # rich reads them with int()
        if not re.fullmatch(r"[0-9]{1,4}", os.environ.get(name, "0")):
            _before[name] = os.environ.pop(name)
    # On GitHub typer takes every pipe for a terminal, with colors.
    if not sys.stdout.isatty() and NO_TERMINAL not in os.environ:
        _before[NO_TERMINAL] = None
        os.environ[NO_TERMINAL] = "1"


def of_user() -> dict[str, str]:
    """All variables, as the user set them."""
    found = {**os.environ, **_before}
    return {name: value for name, value in found.items() if value is not None}
