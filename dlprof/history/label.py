"""What a session is a measurement of: a label, such as a commit, and how it is known."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

COMMITS = ("GITHUB_SHA", "CI_COMMIT_SHA")
GIT = "git HEAD of this folder"
GIT_LIMIT_S = 20.0


@dataclass(frozen=True)
class Label:
    """``source`` is the option, the variable or the command that said it; empty for none."""

    text: str = ""
    source: str = ""


def label_for(
    created: datetime,
    given: str | None,
    folder: Path | None = None,
    variables: Mapping[str, str] | None = None,
) -> Label:
    """The label of a session: what was given, what CI says, or the commit that is checked out.

    An empty one means none. The commit that CI builds, or that is checked out in ``folder`` (by
    default the current one), is not taken for a session that is older: it was measured before.
    """
    if given is not None:
        return Label(given.strip(), "--label") if given.strip() else Label()
    variables = os.environ if variables is None else variables
    for name in COMMITS:
        commit = variables.get(name, "").strip()
        if commit:
            return _of_ci(created, folder or Path.cwd(), commit, name)
    return _of_git(created, folder or Path.cwd())


def _of_ci(created: datetime, folder: Path, commit: str, name: str) -> Label:
    """Its time is known where the repository is there."""
    told = _git(folder, "show", "--no-patch", "--format=%ct", "--end-of-options", commit).strip()
    older = told.isdigit() and created.timestamp() < int(told)
    return Label() if older else Label(commit, name)


def _of_git(created: datetime, folder: Path) -> Label:
    told = _git(folder, "log", "-1", "--format=%H %ct").split()
    if len(told) != 2 or not told[1].isdigit() or created.timestamp() < int(told[1]):  # noqa: PLR2004 - the format above
        return Label()
    changed = _git(folder, "status", "--porcelain", "--untracked-files=no")
    return Label(told[0] + ("-dirty" if changed.strip() else ""), GIT)


def _git(folder: Path, *words: str) -> str:
    """What git says; nothing where there is no git, or no repository."""
    try:
        done = subprocess.run(  # noqa: S603 - our own words
            ["git", "-C", str(folder), *words],  # noqa: S607 - the user's git
            capture_output=True,
            text=True,
            errors="replace",
            timeout=GIT_LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout if done.returncode == 0 else ""
