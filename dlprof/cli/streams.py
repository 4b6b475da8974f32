"""What the user sees: reports and complaints.

Standard streams may be closed or full, or their reader is gone. Not only reports are printed: so
are the help and the version, by the library that reads the command line. What becomes of a failed
write is therefore decided here, where all of them end.
"""

from __future__ import annotations

import codecs
import contextlib
import io
import json
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from dlprof.cli.files import check_no_session
from dlprof.errors import UsageError
from dlprof.text.clean import without_any_command

if TYPE_CHECKING:
    from dlprof.report.document import Document

PIPED_WIDTH = 100
NOT_ASCII = re.compile(r"[^\x00-\x7f]+")

PLAIN = {
    "\N{RIGHTWARDS ARROW}": "->",
    "\N{MICRO SIGN}": "u",
    "\N{MULTIPLICATION SIGN}": "x",
    "\N{HORIZONTAL ELLIPSIS}": "...",
    "\N{MIDDLE DOT}": "|",
    "\N{PLUS-MINUS SIGN}": "+-",
}
"""What stands for a character that an encoding does not have."""
PLAINER = "dlprof-plainer"


def _plainer(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    return "".join(PLAIN.get(one, "?") for one in text), error.end


codecs.register_error(PLAINER, _plainer)


def settle() -> None:
    """Replace stdout and stderr by streams that fail as :class:`Guarded` says.

    A standard stream that the caller closed is opened: else the next pipe would get its number.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115, PTH123 - as long as the process
    sys.stdout = _guarded(sys.stdout, _cannot_print)
    sys.stderr = _guarded(sys.stderr, _say_nothing)


def finish() -> None:
    """Write what still waits in stdout. Raises :class:`UsageError` where that cannot be done."""
    sys.stdout.flush()


class Guarded(io.FileIO):
    """A stream that is given up at the first write that fails.

    A reader that has gone changes nothing. For any other cause ``failed`` is called, which may
    raise; whatever is written later is lost without a word.
    """

    def __init__(self, stream: TextIO, failed: Callable[[OSError], None]) -> None:
        super().__init__(stream.fileno(), "w", closefd=False)
        self._stream = stream  # closes the descriptor when it is collected
        self._failed = failed

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            # What is left in the buffer must not fail once more at the end of the process.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
            if not isinstance(error, BrokenPipeError):
                self._failed(error)
            return len(data)


def _guarded(stream: TextIO, failed: Callable[[OSError], None]) -> TextIO:
    if not isinstance(stream, io.TextIOWrapper):
        return stream  # replaced by a caller, as in a test
    stream.flush()
    return io.TextIOWrapper(
        io.BufferedWriter(Guarded(stream, failed)),
        encoding=stream.encoding,
        errors=PLAINER,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def _cannot_print(error: OSError) -> None:
    raise UsageError(f"cannot print the report: {error.strerror}")


def _say_nothing(_: OSError) -> None:
    """There is no place left to say it."""


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
    from dlprof.report.document import Level

    level = Level.FULL if full else Level.FIRST
    say(terminal.render(document, width(), colour(), level))


def say(text: str, is_json: bool = False) -> None:
    """Print on stdout; :class:`Guarded` says what becomes of it where that fails.

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
    from dlprof.runner import files

    check_no_session(path)
    with files.atomic(path) as file:
        file.write(text)
