"""Standard streams that may be closed or full, or whose reader is gone.

Not only reports are printed: so are the help and the version, by the library that reads the command
line. What becomes of a failed write is therefore decided here, where all of them end.
"""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import sys
from collections.abc import Callable
from typing import Any, TextIO

from dlprof.errors import UsageError
from dlprof.text.clean import without_any_command

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
