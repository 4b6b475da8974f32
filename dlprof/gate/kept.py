"""Where a gate keeps the sessions of its sides: nothing that was measured is lost."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

from dlprof.errors import UsageError
from dlprof.state import default_path

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
    """The folder that the user named, or the state folder. Raises :class:`UsageError`.

    What an earlier gate left in the folder is removed, so that no pass of another gate stays.
    """
    if folder is None:
        path = default_path("gate")
        return Kept(path.parent, f"{path.stem}-")
    if folder.suffix == ".json" or folder.is_file():
        raise UsageError(f"-o {folder}: a gate keeps several sessions, so name a folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot make the folder {folder}: {error.strerror}") from None
    found = Kept(folder)
    for name in NAMES:
        with contextlib.suppress(OSError):
            found.path(name).unlink()
    return found
