"""Print reports: on a terminal in its width and colours, else plain text."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from dlprof.cli.files import check_no_session
from dlprof.session import files
from dlprof.text.clean import without_any_command

if TYPE_CHECKING:
    from dlprof.reports.document import Document

PIPED_WIDTH = 100
NOT_ASCII = re.compile(r"[^\x00-\x7f]+")


def width(is_error: bool = False) -> int:
    """Columns of the terminal behind stdout, or stderr; of a pipe, ``COLUMNS`` or 100."""
    if not is_error and sys.stdout.isatty():
        return max(shutil.get_terminal_size().columns, 40)
    if is_error and sys.stderr.isatty():
        return max(os.get_terminal_size(sys.stderr.fileno()).columns, 40)
    columns = os.environ.get("COLUMNS", "")
    return max(int(columns), 40) if columns.isdecimal() else PIPED_WIDTH


def colour() -> bool:
    """Colours on a terminal only, and never with ``NO_COLOR`` (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def show(document: Document, full: bool = False) -> None:
    """Print the first screen of a document, or all of it."""
    from dlprof.reports import terminal  # `dlprof list` does not wait for it
    from dlprof.reports.document import Level

    level = Level.FULL if full else Level.FIRST
    say(terminal.render(document, width(), colour(), level))


def say(text: str, is_json: bool = False) -> None:
    """Print on stdout; :mod:`dlprof.cli.streams` says what becomes of it where that fails.

    GitHub's runner obeys none of it: names and messages are a framework's. Not by ``typer.echo``,
    which writes UTF-8 to a stream that takes ASCII only.
    """
    text = without_any_command(text, is_json)
    sys.stdout.write(NOT_ASCII.sub(_escaped, text) if is_json else text)
    sys.stdout.flush()


def _escaped(found: re.Match[str]) -> str:
    """Characters in a string of JSON, for a stream that may not have them."""
    return json.dumps(found[0])[1:-1]


def write(path: Path | None, text: str, is_json: bool = False) -> None:
    """Write ``text`` to a file, whole or not at all; without one, or to ``-``, print it.

    Raises :class:`UsageError`.
    """
    if path is None or path == Path("-"):
        say(text, is_json)
        return
    check_no_session(path)
    with files.atomic(path) as file:
        file.write(text)
