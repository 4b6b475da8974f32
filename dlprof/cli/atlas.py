"""``dlprof atlas build``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from dlprof.cli import files
from dlprof.cli.options import Given, takes
from dlprof.cli.streams import complain, say
from dlprof.errors import UsageError
from dlprof.plan import options as every
from dlprof.plan.option import Option, Text
from dlprof.text.clean import clean

atlas = typer.Typer(
    help="Show sessions of many environments as a static site. See docs/atlas.md.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

OUT = Option("out", Text(), "The folder of the site.", every.OUTPUT, metavar="FOLDER")
MARK = '<meta name="generator" content="dlprof '
OWN = re.compile(r"(index|changes|environments|pair-.*|DLP\d{3})\.html")
"""A page that an earlier site left has such a name and this mark, and may be replaced."""


@atlas.command()
@takes(OUT)
def build(
    session: Annotated[
        list[Any],
        typer.Argument(
            parser=files.sessions,
            metavar="SESSION...",
            help="Session files, or folders of them, also as s3://….",
        ),
    ],
    *,
    given: Given,
) -> None:
    """Write a site: a matrix, a page for each pair and rule, the changes, and a search.

    Example: dlprof atlas build sessions/ --out site
    """
    from dlprof.atlas.changes import changes_of
    from dlprof.atlas.grid import grid_of
    from dlprof.reports.html.site import pages_of
    from dlprof.session.files import atomic

    if not given.raw["out"]:
        raise UsageError("name the folder of the site: --out site")
    folder = Path(given.raw["out"])
    own = own_pages(folder)
    grid = grid_of(session, lambda why: complain(f"dlprof: left out: {why}"))
    changes = changes_of(grid)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write the folder {folder}: {error.strerror}") from None
    count = 0
    for name, text in pages_of(grid, changes):
        own.discard(folder / name)
        count += 1
        with atomic(folder / name) as file:
            file.write(text)
    for stale in own:
        stale.unlink(missing_ok=True)
    start = clean(str(folder / "index.html"))
    say(f"{count:,} pages of {grid.sessions:,} sessions: open {start}\n")


def own_pages(folder: Path) -> set[Path]:
    """The pages of an earlier site. Raises :class:`UsageError` if other pages are there."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"cannot write the folder {folder}: it is a file")
    found = {page for page in folder.glob("*.html") if OWN.fullmatch(page.name)}
    for page in found:
        try:
            with page.open(encoding="utf-8", errors="replace") as file:
                is_own = MARK in file.read(2000)
        except OSError as error:
            raise UsageError(f"cannot read {page}: {error.strerror}") from None
        if not is_own:
            raise UsageError(f"{folder} has pages of something else ({page.name}): name another")
    return found
