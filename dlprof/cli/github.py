"""``--github``: annotations on stdout, and the summary of the step."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import typer

from dlprof.cli.distinct import check_distinct, check_no_session
from dlprof.cli.show import say
from dlprof.errors import UsageError
from dlprof.reports.ci import github
from dlprof.reports.ci.remark import Remark

SUMMARY = "GITHUB_STEP_SUMMARY"


@contextmanager
def no_commands(wanted: bool) -> Iterator[None]:
    """Whatever is printed meanwhile, GitHub obeys none of it: it may be a framework's words."""
    if not wanted:
        yield
        return
    token = secrets.token_hex(16)
    say(f"::stop-commands::{token}\n")
    try:
        yield
    finally:
        say(f"\n::{token}::\n")


def check_summary(outputs: Mapping[str, str]) -> None:
    """Raises :class:`UsageError` where the summary could not be written; it may be unset.

    ``outputs`` are files, by the options that name them, of which it must be none.
    """
    name = os.environ.get(SUMMARY)
    if name:
        check_distinct({"the summary of the step": name, **outputs})
        check_no_session(Path(name))
        _append(Path(name), "")


def tell(remarks: Sequence[Remark], summary: str, file: str | None) -> None:
    """Print the annotations and append the summary. Raises :class:`UsageError`."""
    say(github.commands(remarks, file))
    name = os.environ.get(SUMMARY)
    if not name:
        typer.echo(f"no summary: {SUMMARY} is not set", err=True)
        return
    path = Path(name)
    _append(path, github.room(f"{summary}\n", path.stat().st_size if path.exists() else 0))


def _append(path: Path, text: str) -> None:
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
    except (OSError, ValueError) as error:
        cause = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"cannot write the summary {path} ({SUMMARY}): {cause}") from None
