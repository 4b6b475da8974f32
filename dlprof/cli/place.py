"""Which file of the repository a report points to: a conversion has no line in the source."""

from __future__ import annotations

from pathlib import Path

from dlprof.analysis.case_view import mapping
from dlprof.session.model import Header
from dlprof.text.clean import clean

LONGEST = 200


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
