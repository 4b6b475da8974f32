"""``dlprof history add`` and ``dlprof history show``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dlprof.cli import files
from dlprof.cli.options import Given, takes
from dlprof.plan import options as every

history = typer.Typer(
    help="Keep sessions for weeks, and see when something changed. See docs/history.md.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@history.command()
def add(
    session: Annotated[
        list[Path],
        typer.Argument(parser=files.session, metavar="SESSION", help="Session files; - is stdin."),
    ],
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="ADDRESS",
            help="A folder, or an address that fsspec knows: s3://bucket/folder. "
            "Default: $DLPROF_HISTORY.",
        ),
    ] = None,
    label: Annotated[
        str | None,
        typer.Option(
            "--label",
            metavar="TEXT",
            help="What was measured. Default: GITHUB_SHA, CI_COMMIT_SHA or the commit that is "
            "checked out; '' for none.",
        ),
    ] = None,
) -> None:
    """Add sessions to a history. Nothing in it is ever changed.

    Example: dlprof history add session.json --to history
    """
    from dlprof.cli.history_task import add_sessions

    add_sessions(session, to, label)


@history.command()
@takes(every.HTML, every.FULL)
def show(
    address: Annotated[
        str | None,
        typer.Argument(metavar="ADDRESS", help="The folder or address. Default: $DLPROF_HISTORY."),
    ] = None,
    case: Annotated[
        list[str] | None,
        typer.Option(
            "--case", metavar="GLOB", help="Only cases whose code or pair matches; may be repeated."
        ),
    ] = None,
    measure: Annotated[
        str, typer.Option("--measure", metavar="NAME", help="ready, host, first_call or device.")
    ] = "ready",
    last: Annotated[
        int | None, typer.Option("--last", min=1, metavar="N", help="Only the N newest sessions.")
    ] = None,
    json: Annotated[
        str | None,
        typer.Option(
            "--json",
            metavar="FILE|-",
            help="Write it as JSON; - prints it instead of the table.",
            rich_help_panel=every.OUTPUT,
        ),
    ] = None,
    *,
    given: Given,
) -> None:
    """Show the trend of each case, its steps, and which version brought them.

    Example: dlprof history show history --case '*from_dlpack*'
    """
    from dlprof.cli.history_task import show_trends

    show_trends(address, case or [], measure, last, json, given.raw["html"], given.raw["full"])
