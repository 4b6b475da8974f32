"""Sessions as users name them, and text for stdout and stderr."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from dlprof.errors import UsageError
from dlprof.runner import files
from dlprof.text.clean import clean, without_any_command

if TYPE_CHECKING:
    from dlprof.report.document import Document

LAST = "LAST"
PIPED_WIDTH = 100


def session(text: str) -> Path:
    """Return the file of ``LAST``, of ``-`` for stdin, of a kept session's number, or of a name."""
    if text == LAST:
        return files.newest(files.LAST)
    if text.isascii() and text.isdecimal() and not Path(text).exists():
        sessions = files.kept_sessions()
        if not 1 <= int(text[:9]) <= len(sessions):
            raise UsageError(f"there is no session {text}: dlprof list sessions lists them")
        return sessions[int(text) - 1]
    return files.STDIN if text == "-" else Path(text)


def session_or_trace(text: str) -> Path:
    """Return the file as :func:`session` does; ``LAST`` may be a trace."""
    return files.newest(files.LAST, files.LAST_TRACE) if text == LAST else session(text)


def session_name(path: Path) -> str:
    """Return the name of a session or trace for commands: ``LAST`` for the newest file."""
    with contextlib.suppress(UsageError):
        if path == session_or_trace(LAST) and files.is_kept(path):
            return LAST
    return shlex.quote(clean(str(path)))


def complain(text: str, nl: bool = True) -> None:
    """Print on stderr, without commands to GitHub. A full or closed one changes no exit code."""
    with contextlib.suppress(OSError):
        sys.stderr.write(without_any_command(text) + "\n" * nl)
        sys.stderr.flush()


def width(is_error: bool = False) -> int:
    """Return ``COLUMNS``, or the width of the terminal of stdout or stderr, or 100."""
    stream = sys.stderr if is_error else sys.stdout
    columns = int(os.environ.get("COLUMNS", "0"))
    if not columns and stream.isatty():
        columns = os.get_terminal_size(stream.fileno()).columns
    return max(columns or PIPED_WIDTH, 40)


def color(is_error: bool = False) -> bool:
    """Whether to color: on a terminal only, and never with ``NO_COLOR`` (https://no-color.org)."""
    stream = sys.stderr if is_error else sys.stdout
    return stream.isatty() and not os.environ.get("NO_COLOR")


def show(document: Document, full: bool = False) -> None:
    """Print the first screen of a document, or all of it."""
    from dlprof.report import terminal  # `dlprof list` does not wait for it

    say(terminal.render(document, width(), color(), full))


def say(text: str, is_json: bool = False) -> None:
    """Print on stdout, without commands to GitHub: messages are text of frameworks."""
    try:
        sys.stdout.write(without_any_command(text, is_json))
        sys.stdout.flush()
    except OSError as error:
        # The rest of the buffer must not fail again at the end of the process.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):  # as of `dlprof report LAST | head`
            raise UsageError(f"cannot print the report: {error.strerror}") from None
