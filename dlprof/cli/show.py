"""Print reports: on a terminal in its width and colours, else plain text."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dlprof.cli.names import STANDARD
from dlprof.session import files

if TYPE_CHECKING:
    from dlprof.reports.row import Row
    from dlprof.session.model import Header

Show = Callable[["Header", Sequence["Row"]], None]

PIPED_WIDTH = 120


def width() -> int:
    """Columns of the terminal; of a pipe, ``COLUMNS`` or 120."""
    if sys.stdout.isatty():
        return max(shutil.get_terminal_size().columns, 40)
    columns = os.environ.get("COLUMNS", "")
    return max(int(columns), 40) if columns.isdecimal() else PIPED_WIDTH


def colour() -> bool:
    """Colours on a terminal only, and never with ``NO_COLOR`` (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def show_table(header: Header, rows: Sequence[Row]) -> None:
    from dlprof.reports import terminal  # who lists frameworks needs none of it, and waits for it

    say(terminal.render(header, rows, width(), colour()))


def say(text: str) -> None:
    """Print on stdout; :mod:`dlprof.cli.streams` says what becomes of it where that fails."""
    typer.echo(text, nl=False, color=colour())


def write(path: Path | None, text: str) -> None:
    """Write ``text`` to a file, whole or not at all; without one, or to ``-``, print it.

    Raises :class:`UsageError`.
    """
    if path is None or path == STANDARD:
        say(text)
        return
    with files.atomic(path) as file:
        file.write(text)
