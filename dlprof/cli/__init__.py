"""The command line: an explicit list of verbs, and the only place where errors are caught."""

from __future__ import annotations

import errno
import functools
import gc
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import typer

from dlprof.cli import streams, variables
from dlprof.cli.streams import complain
from dlprof.errors import DlprofError, Interrupted, UsageError
from dlprof.runner.interrupts import stop_in_order
from dlprof.text.clean import clean

LONGEST_LINE = 2000
RARELY = 1_000_000
"""Of so many new objects the collector looks for circles: a session of many cases has none."""

FORBIDDEN = (errno.EACCES, errno.EPERM, errno.ENAMETOOLONG)
"""What pathlib raises if it is asked for a file in a folder that must not be searched."""
TOO_MANY = (errno.EMFILE, errno.ENFILE)
MEASURE, DECIDE, SHOW, CHECK, SCALE = "Measure", "Decide", "Show", "Check", "Scale"
VERBS = {
    "run": ("run", MEASURE),
    "matrix": ("run", MEASURE),
    "time": ("run", MEASURE),
    "trace": ("trace", MEASURE),
    "survey": ("run", MEASURE),
    "conformance": ("conformance", MEASURE),
    "gate": ("gate", DECIDE),
    "compare": ("compare", DECIDE),
    "report": ("report", SHOW),
    "ticket": ("ticket", SHOW),
    "explain": ("listing", SHOW),
    "list": ("listing", SHOW),
    "selftest": ("run", CHECK),
    "jobs": ("jobs", SCALE),
    "bisect": ("bisect", SCALE),
}
"""The verbs in the order of the help: the module of each, and its group."""


def command_line(first: str = "") -> typer.Typer:
    """The command line with the verb ``first``; with all of them where that is no verb."""
    app = typer.Typer(
        name="dlprof",
        help="Measure conversions of tensors between frameworks: what they cost, view or copy.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(invoke_without_command=True)(_options)
    for name in (first,) if first in VERBS else VERBS:
        verb = verb_named(name)
        if isinstance(verb, typer.Typer):
            app.add_typer(verb, name=name, rich_help_panel=VERBS[name][1])
        else:
            settings = getattr(verb, "context_settings", None)
            panel = VERBS[name][1]
            app.command(name, context_settings=settings, rich_help_panel=panel)(
                _interruptible(verb)
            )
    return app


def verb_named(name: str) -> Any:
    """The function of a verb; a Typer where it has verbs of its own."""
    module = import_module(f"dlprof.cli.{VERBS[name][0]}")
    return getattr(module, {"list": "list_"}.get(name, name))


def _options(
    version: bool = typer.Option(
        False, "--version", metavar="", help="Print the version and exit."
    ),
) -> None:
    if version:
        from dlprof._version import __version__

        typer.echo(f"dlprof {__version__}")
        raise typer.Exit
    try:
        Path.cwd()
    except OSError as error:  # no file can be named there, and frameworks do not start
        raise UsageError(
            f"the current folder cannot be used: {error.strerror}; change into another"
        ) from None


def _interruptible(verb: Callable[..., None]) -> Callable[..., None]:
    """The verb with a message for Ctrl-C, which typer would swallow."""

    @functools.wraps(verb)
    def called(*args: Any, **options: Any) -> None:
        try:
            verb(*args, **options)
        except KeyboardInterrupt as stop:
            raise Interrupted(str(stop) or "interrupted") from None

    return called


def main() -> NoReturn:
    """Run the command line; exit codes as in :mod:`dlprof.errors`."""
    try:
        gc.set_threshold(RARELY)
        streams.settle()
        variables.settle()
        stop_in_order()
        sys.exit(_run(command_line(*sys.argv[1:2])))
    except KeyboardInterrupt:
        print("dlprof: interrupted", file=sys.stderr)  # noqa: T201 - the message to the user
        sys.exit(Interrupted.exit_code)
    except DlprofError as error:
        complain(f"dlprof: {_shown(error)}")
        sys.exit(error.exit_code)


def _run(app: typer.Typer) -> int | str | None:
    """The exit code of what was typed."""
    code: int | str | None = 0
    try:
        code = app(standalone_mode=False, obj=command_line)
    except SystemExit as ended:
        code = ended.code
    except Exception as error:  # noqa: BLE001 - usage errors become a message, others are raised
        code = _exit_code_of(error)
    streams.finish()
    if code == Interrupted.exit_code:  # what newer typers make of a Ctrl-C before a verb began
        raise Interrupted("interrupted")
    return code


def _exit_code_of(error: Exception) -> int:
    """Raise :class:`UsageError` for an error of typer, else the error itself.

    Returns the exit code of a help page that typer has printed. The class of its errors depends on
    typer's version; all of them have ``format_message``.
    """
    if type(error).__name__ == "Abort":  # Ctrl-C before a verb began
        raise Interrupted("interrupted") from None
    if isinstance(error, OSError) and error.errno in FORBIDDEN:
        raise UsageError(f"cannot look at {error.filename}: {error.strerror}") from None
    if isinstance(error, OSError) and error.errno in TOO_MANY:
        raise UsageError(f"{error.strerror}: raise the limit (ulimit -n 256)") from None
    if isinstance(error, MemoryError):
        raise UsageError("out of memory: free some, or raise its limit (ulimit -v)") from None
    if not hasattr(error, "format_message"):
        raise error
    message, context = str(error.format_message()), getattr(error, "ctx", None)
    if message:  # without words at all the help was printed
        words = message[0].lower() + message[1:].rstrip(".").replace("Input should", "it should")
        command = context.command_path if context is not None else "dlprof"
        raise UsageError(f"{words}; see '{command} -h'") from None
    return UsageError.exit_code


def _shown(error: DlprofError) -> str:
    """The message in one line; it may hold names of files and text of frameworks."""
    return clean(" ".join(str(error).split("\n")), LONGEST_LINE)
