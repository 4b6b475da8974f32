"""Steps of inference, from what the user named to a request like any other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from dlprof import inference
from dlprof.errors import UsageError
from dlprof.inference.base import UNITS
from dlprof.session import files
from dlprof.text.clean import nearest

DEFAULT_SHAPES = tuple(f"{rows}x{UNITS}" for rows in (1, 1024, 16384))
"""Inputs of the built-in model: one row, and outputs of 256 KiB and 4 MiB."""


@dataclass(frozen=True)
class Step:
    """A framework, and the file of a model; the built-in one where there is none.

    ``threads`` is how many it may use on the host; 0 leaves it the choice.
    """

    framework: str
    model: str = ""
    threads: int = 0

    @property
    def name(self) -> str:
        return inference.name_of(self.framework, self.model)

    @property
    def pair(self) -> tuple[str, str]:
        """A step converts nothing: its framework stands on both sides."""
        return self.name, self.name

    @property
    def source(self) -> str:
        return inference.reference(self.framework, self.model, self.threads)


def steps_named(
    words: Iterable[str], model: str | None, threads: int = 0, folder: Path | None = None
) -> tuple[Step, ...]:
    """What frameworks of these names and a model come to; without names, those that can run it.

    A relative model begins at ``folder``. Raises :class:`UsageError`.
    """
    path, suffix = "", ""
    if model is not None:
        file = (folder or Path()) / files.at_home(Path(model))
        if not file.is_file():
            raise UsageError(f"there is no model file {model}")
        path, suffix = str(file.absolute()), file.suffix.lower()
    able = [name for name, kind in inference.KNOWN.items() if suffix in ("", kind.suffix)]
    found = [framework(word) for word in words] or able
    unable = [name for name in found if name not in able]
    if unable or not found:
        kinds = {name: kind.suffix for name, kind in inference.KNOWN.items()}
        reads = ", ".join(f"{name} reads {kinds[name]}" for name in unable or kinds)
        raise UsageError(f"the model {path} cannot be run: {reads}")
    return tuple(dict.fromkeys(Step(name, path, threads) for name in found))


def framework(word: str) -> str:
    """The framework of a name or alias. Raises :class:`UsageError` with the nearest one."""
    names = {
        alias.lower(): name
        for name, kind in inference.KNOWN.items()
        for alias in (name, *kind.aliases)
    }
    if word.lower() in names:
        return names[word.lower()]
    raise UsageError(f"dlprof measures no steps of {word!r}: {nearest(word, inference.KNOWN)}")
