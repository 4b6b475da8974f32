"""``--github``: annotations on stdout, and the summary of the step."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import typer

from dlprof.analysis.case_view import mapping
from dlprof.cli.files import check_distinct, check_no_session
from dlprof.cli.show import say
from dlprof.errors import UsageError
from dlprof.reports import github
from dlprof.reports.document import Check, Problem
from dlprof.session.model import Header
from dlprof.text.clean import clean

SUMMARY = "GITHUB_STEP_SUMMARY"
LONGEST = 200


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


def check_summary(files: Mapping[str, str | Path | None]) -> None:
    """Raises :class:`UsageError` where the summary could not be written; it may be unset.

    ``files`` are others that are read or written, of which it must be none.
    """
    name = os.environ.get(SUMMARY)
    if name:
        for what, file in files.items():
            check_distinct({"the summary of the step": name, what: file})
        check_no_session(Path(name))
        _append(Path(name), "")


def tell(
    problems: Iterable[Problem], summary: str, file: str | None, checks: Iterable[Check] = ()
) -> None:
    """Print the annotations and append the summary. Raises :class:`UsageError`."""
    say(github.commands(problems, checks, file))
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


def scenario_file(header: Header) -> str | None:
    """The scenario file, as a path below the working folder; None where there is none such."""
    file = mapping(header.request.get("scenario")).get("file")
    return below(file) if isinstance(file, str) and file else None


def below(file: str) -> str | None:
    """``file`` as a path below the working folder, which is the repository in a pipeline.

    None where it is elsewhere, or is no file: a session may name any.
    """
    try:
        here, path = Path.cwd().resolve(), Path(file).resolve()
        inside = path.is_file() and path.is_relative_to(here)
    except (OSError, RuntimeError, ValueError):  # a loop of links, a null byte, a name too long
        return None
    return clean(path.relative_to(here).as_posix(), LONGEST) if inside else None
