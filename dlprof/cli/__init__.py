"""The command line: an explicit list of verbs, and the only place where errors are caught."""

from __future__ import annotations

import functools
import io
import os
import re
import shlex
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, NoReturn

import typer
import typer.core

from dlprof.cli.streams import complain, say
from dlprof.errors import DlprofError, Interrupted, UsageError
from dlprof.runner.interrupts import stop_in_order
from dlprof.text.clean import clean

LONGEST_LINE = 2000
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
"""The module and the help group of each verb, in the order of the help."""
HELP = ("-h", "--help")


def command_line(first: str = "") -> typer.Typer:
    """Make the command line with the verb ``first``, or with all of them if that is no verb."""
    app = typer.Typer(
        name="dlprof",
        help="Measure conversions of tensors between frameworks: what they cost, view or copy.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": HELP},
    )
    app.callback(invoke_without_command=True)(_options)
    for name in (first,) if first in VERBS else VERBS:
        verb, panel = verb_named(name), VERBS[name][1]
        if isinstance(verb, typer.Typer):
            app.add_typer(verb, name=name, rich_help_panel=panel)
            continue
        settings = {"allow_interspersed_args": False} if name == "trace" else None
        command = app.command(
            name, help=verb.__doc__, context_settings=settings, rich_help_panel=panel
        )
        # The help of all verbs does not wait for their options.
        command((lambda: None) if first in HELP else _interruptible(verb))
    return app


for _parameter in (typer.core.TyperArgument, typer.core.TyperOption):
    # The help shows no type of Python beside a name that says what it takes.
    _parameter.display_type = lambda *_, **__: ""  # type: ignore[method-assign]


def verb_named(name: str) -> Any:
    """Return the function of a verb, or its Typer if it has verbs of its own."""
    module = import_module(f"dlprof.cli.{VERBS[name][0]}")
    return getattr(module, {"list": "list_"}.get(name, name))


def _options(
    version: bool = typer.Option(
        False, "--version", "-V", metavar="", help="Print the version and exit."
    ),
) -> None:
    if version:
        from dlprof._version import __version__

        say(f"dlprof {__version__}\n")
        raise typer.Exit


def _interruptible(verb: Callable[..., None]) -> Callable[..., None]:
    """Give a verb a message for Ctrl-C, which typer would swallow."""

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
        for name in ("COLUMNS", "LINES"):  # rich reads them with int()
            if not re.fullmatch(r"[0-9]{1,4}", os.environ.get(name, "0")):
                del os.environ[name]
        if "GITHUB_ACTIONS" in os.environ and not sys.stdout.isatty():
            from typer import rich_utils

            rich_utils.FORCE_TERMINAL = None  # typer would color the help in a pipe
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):  # not in a test
                stream.reconfigure(errors="replace")
        stop_in_order()
        sys.exit(_run(command_line(*sys.argv[1:2])))
    except KeyboardInterrupt:
        complain("dlprof: interrupted")
        sys.exit(Interrupted.exit_code)
    except DlprofError as error:
        complain(f"dlprof: {clean(' '.join(str(error).split(chr(10))), LONGEST_LINE)}")
        sys.exit(error.exit_code)


def _run(app: typer.Typer) -> int | str | None:
    """Run the command line and return its exit code."""
    code: int | str | None = 0
    try:
        code = app(standalone_mode=False)
    except SystemExit as ended:
        code = ended.code
    except OSError as error:  # such as a full disk
        where = f"{error.filename}: " if error.filename else ""
        raise UsageError(f"{where}{error.strerror}") from None
    except Exception as error:
        if type(error).__name__ == "Abort":  # Ctrl-C before a verb began
            raise Interrupted("interrupted") from None
        if not hasattr(error, "format_message"):
            raise
        message, context = str(error.format_message()), getattr(error, "ctx", None)
        if not message:  # the help was printed
            return UsageError.exit_code
        if hint := _meant_run(sys.argv[1:]):
            raise UsageError(hint) from None
        words = message[0].lower() + message[1:].rstrip(".")
        command = context.command_path if context is not None else "dlprof"
        raise UsageError(f"{words}; see '{command} -h'") from None
    return code


def _meant_run(words: list[str]) -> str:
    """Return a hint if the verb is a framework, as in ``dlprof torch jax``; empty if not."""
    from dlprof.probes.builtin import ALL

    known = {name for probe in ALL for name in (probe.name, *probe.aliases)}
    if len(words) < 2 or not {*words[0].split(","), *words[1].split(",")} <= known:  # noqa: PLR2004
        return ""
    return f"{words[0]} is a framework, not a verb: write dlprof run {shlex.join(words)}"
