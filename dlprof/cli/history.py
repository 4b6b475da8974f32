"""``dlprof history add`` and ``dlprof history show``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dlprof.cli import files
from dlprof.cli.options import Given, group, takes
from dlprof.cli.streams import complain, say
from dlprof.errors import DlprofError, HistoryError, Unmeasured
from dlprof.runner import options as every
from dlprof.runner.option import Choice, Option, Several, Text, Whole
from dlprof.text.clean import clean, counted

if TYPE_CHECKING:
    from dlprof.history.store import Added, Folder

history = group("Keep sessions for weeks, and see when something changed.")

TO = Option(
    "to",
    Text(),
    "A folder, or an address that fsspec knows: s3://bucket/folder.",
    every.OUTPUT,
    metavar="ADDRESS",
    meaning="$DLPROF_HISTORY",
)
LABEL = Option(
    "label",
    Text(),
    "What was measured; '' for nothing.",
    every.OUTPUT,
    metavar="TEXT",
    meaning="GITHUB_SHA, CI_COMMIT_SHA or the commit that is checked out",
)
CASE = Option(
    "case", Several(), "Only cases whose code or pair matches.", every.ARRAYS, metavar="GLOB"
)
MEASURE = Option(
    "measure",
    Choice(every.MEASURES),
    "ready, host, first_call or device.",
    every.FINDINGS,
    default="ready",
    metavar="NAME",
)
LAST = Option(
    "last",
    Whole(1, 1_000_000),
    "Only the N newest sessions, and the steps within them.",
    every.FINDINGS,
    metavar="N",
)
JSON = replace(every.JSON, help=every.JSON.help.replace("the session", "the trend"))


@history.command()
@takes(TO, LABEL)
def add(
    session: Annotated[
        list[Path],
        typer.Argument(parser=files.session, metavar="SESSION", help="Session files; - is stdin."),
    ],
    *,
    given: Given,
) -> None:
    """Add sessions to a history. Nothing in it is ever changed.

    Example: dlprof history add session.json --to history
    """
    from dlprof.history import store
    from dlprof.history.entry import entry_of, label_for, moment
    from dlprof.runner import session as sessions

    folder = store.folder_at(given.raw["to"], "--to ADDRESS")
    entries = []
    for file in session:  # all are read before the first is added
        found = sessions.load(file)
        try:
            entries.append(entry_of(found, label_for(moment(found.created), given.raw["label"])))
        except DlprofError as error:
            raise type(error)(f"cannot add {file}: {error}") from None
    for file, done in zip(session, store.add(folder, entries), strict=True):
        say(_added_text(file, done, folder))


@history.command()
@takes(CASE, MEASURE, LAST, JSON, every.HTML, every.FULL)
def show(
    address: Annotated[
        str | None,
        typer.Argument(metavar="ADDRESS", help="The folder or address. Default: $DLPROF_HISTORY."),
    ] = None,
    *,
    given: Given,
) -> None:
    """Show the trend of each case, its steps, and which version brought them.

    Example: dlprof history show history --case '*from_dlpack*'
    """
    from dlprof.cli.outputs import Outputs
    from dlprof.history.series import series_of
    from dlprof.history.store import folder_at, read
    from dlprof.history.trend import chosen, trends_of
    from dlprof.report.history_document import history_document, render_json

    measure, globs = given[MEASURE], given[CASE]
    outputs = Outputs.of(given.raw)
    place = folder_at(address, "an ADDRESS")
    kept = read(place, given[LAST])
    for name, reason in kept.ignored:
        complain(f"dlprof: {name} is left out: {clean(reason)}")
    if not kept.entries:
        raise Unmeasured(f"the history {place.shown} holds no session")
    found = chosen(series_of(kept.entries, measure), globs)
    if not found:
        raise HistoryError(f"no case of the history matches --case {' '.join(globs)}")
    trends = trends_of(found, measure)
    document = history_document(kept, trends, measure)
    texts = {"--json": lambda: [render_json(kept, trends, measure)]}
    outputs.write(document, texts)
    outputs.print_report(document)


def _added_text(file: Path, done: Added, folder: Folder) -> str:
    from dlprof.report.history_document import label_text

    if not done.new:
        there = f"this measurement is in {folder.shown} already; nothing added"
        return f"{clean(str(file))}: {there}\n"
    label = done.entry.label
    told = f"label {label_text(label.text)} (from {label.source})" if label.text else "no label"
    cases = counted(len(done.entry.session.results))
    where = f"{'the new history ' if done.first else ''}{folder.shown}"
    return f"{clean(str(file))}: added to {where}: {cases}, {told}\n"
