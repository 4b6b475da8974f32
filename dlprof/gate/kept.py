"""Where a gate keeps the sessions of its sides: nothing that was measured is lost."""

from __future__ import annotations

import itertools
import os
from dataclasses import dataclass
from pathlib import Path

from dlprof.errors import UsageError
from dlprof.session.state import default_path

NAMES = ("base", "head", "base-again", "head-again")


@dataclass(frozen=True)
class Kept:
    """Files ``base.json``, ``head.json`` and those of the second pass, beside each other."""

    folder: Path
    prefix: str = ""

    def path(self, name: str) -> Path:
        return self.folder / f"{self.prefix}{name}.json"

    def written(self) -> list[Path]:
        """The files that are there."""
        return [path for path in map(self.path, NAMES) if path.is_file()]


def kept_in(folder: Path | None) -> Kept:
    """The folder that the user named, or the state folder. Raises :class:`UsageError`."""
    if folder is None:
        path = default_path("gate")
        return Kept(path.parent, f"{path.stem}-")
    if folder.suffix == ".json" or folder.is_file():
        raise UsageError(f"-o {folder}: a gate keeps several sessions, so name a folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot make the folder {folder}: {error.strerror}") from None
    return Kept(folder)


def set_aside(kept: Kept) -> Path | None:
    """Move what an earlier gate left there into a new folder ``1``, ``2``, …; None for nothing.

    Raises :class:`UsageError`.
    """
    earlier = [path for path in map(kept.path, NAMES) if os.path.lexists(path)]
    if not earlier:
        return None
    numbers = (kept.folder / str(number) for number in itertools.count(1))
    folder = next(path for path in numbers if not os.path.lexists(path))
    try:
        folder.mkdir()
        for path in earlier:
            path.rename(folder / path.name)
    except OSError as error:
        raise UsageError(
            f"cannot set the sessions of an earlier gate in {kept.folder} aside: {error.strerror}"
        ) from None
    return folder
