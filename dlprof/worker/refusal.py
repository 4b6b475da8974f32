"""Errors of frameworks are answers. This is the one place that catches them."""

from __future__ import annotations

import sysconfig
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from dlprof.probes.base import Unsupported
from dlprof.protocol.messages import FAULTY, words

Answer = TypeVar("Answer")


class FaultyProbe(Exception):
    """A probe cannot be used; the message says why."""


@dataclass(frozen=True)
class Refusal:
    """An error that was raised in place of an answer."""

    error: BaseException

    @property
    def reason(self) -> str:
        """The error in words; the message alone of :class:`Unsupported`."""
        if isinstance(self.error, FaultyProbe):
            return f"{FAULTY}: {self.error}"
        return (isinstance(self.error, Unsupported) and str(self.error)) or words(self.error)


def attempt(call: Callable[[], Answer], catch: type[BaseException] = Exception) -> Answer | Refusal:
    """Call ``call``; return its answer or its error.

    Frameworks raise any error. Text of users and of foreign probes may also end the process:
    ``catch`` is BaseException for these.
    """
    try:
        return call()
    except catch as error:
        return Refusal(error)


DLPROF = Path(__file__).parents[1]
LIBRARY = sysconfig.get_path("stdlib")


def own_place(error: BaseException) -> str:
    """Return the file and line of dlprof that raised an error by mistake.

    Empty for an answer in the form of an error, and for an error of frameworks, of probes and of
    their texts.
    """
    if not isinstance(error, Exception) or isinstance(error, Unsupported):
        return ""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if _is_own(Path(frame.filename))]
    others = [frame.filename for frame in frames if frame not in own]
    if own and all(file.startswith(LIBRARY) and "-packages" not in file for file in others):
        return f"{Path(own[-1].filename).name}, line {own[-1].lineno}"
    return ""


def _is_own(file: Path) -> bool:
    return file.is_relative_to(DLPROF) and not file.is_relative_to(DLPROF / "probes")
