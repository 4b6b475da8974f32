"""What the user sees: reports and complaints."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from dlprof.cli.files import check_no_session
from dlprof.errors import UsageError
from dlprof.runner import files
from dlprof.text.clean import without_any_command

if TYPE_CHECKING:
    from dlprof.report.document import Document

PIPED_WIDTH = 100


def complain(text: str, nl: bool = True) -> None:
    """Print on stderr, without commands to GitHub. A full or closed one changes no exit code."""
    with contextlib.suppress(OSError):
        sys.stderr.write(without_any_command(text) + "\n" * nl)
        sys.stderr.flush()


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
    from dlprof.report import terminal  # `dlprof list` does not wait for it

    say(terminal.render(document, width(), colour(), full))


def say(text: str, is_json: bool = False) -> None:
    """Print on stdout. GitHub's runner obeys none of it: names and messages are a framework's."""
    try:
        sys.stdout.write(without_any_command(text, is_json))
        sys.stdout.flush()
    except OSError as error:
        # What is left in the buffer must not fail once more at the end of the process.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):  # as of `dlprof report LAST | head`
            raise UsageError(f"cannot print the report: {error.strerror}") from None


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
