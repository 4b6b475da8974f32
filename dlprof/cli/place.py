"""Which file of the repository a report points to: a conversion has no line in the source."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

from dlprof.analysis.known import mapping
from dlprof.session.model import Header
from dlprof.text.clean import clean

NOWHERE = "dlprof"
"""Where a report points to if nothing better is there; no such file may exist."""

INSTEAD = ("pyproject.toml", "setup.py", "README.md", "README.rst", "README")
"""Files that a repository is likely to have, for what has no place of its own."""

LONGEST = 200


def scenario_file(header: Header) -> str | None:
    """The scenario file, as a path below the working folder; None where there is none such."""
    file = mapping(header.request.get("scenario")).get("file")
    return below(file) if isinstance(file, str) and file else None


def place_of(header: Header, session: Path | None) -> str:
    """The scenario file, else the session file, else one of :data:`INSTEAD` that is there."""
    return scenario_file(header) or place_of_file(session)


def place_of_file(file: Path | None) -> str:
    """The file, if it is below the working folder, else one of :data:`INSTEAD` that is there."""
    names = [*([str(file)] if file is not None else []), *INSTEAD]
    return next(filter(None, map(below, names)), NOWHERE)


def documentation() -> str | None:
    """The address of dlprof's documentation, if its package names one."""
    try:
        urls = metadata.metadata("dlprof").get_all("Project-URL") or []
    except metadata.PackageNotFoundError:
        return None
    named = dict(url.split(", ", 1) for url in urls if ", " in url)
    return named.get("Documentation")


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
