"""What a framework raises is an answer. This is the one place that catches it."""

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
        """The error in words. :class:`Unsupported` speaks for itself."""
        if isinstance(self.error, FaultyProbe):
            return f"{FAULTY}: {self.error}"
        return (isinstance(self.error, Unsupported) and str(self.error)) or words(self.error)


def attempt(call: Callable[[], Answer], catch: type[BaseException] = Exception) -> Answer | Refusal:
    """What ``call`` returns, or what it raised.

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
    """The file and the line of dlprof that raised an error by mistake; empty for an answer in the
    form of an error, and for one of frameworks, of probes and of their texts.
    """
    frames = [*traceback.walk_tb(error.__traceback__)]
    files = [frame.f_code.co_filename for frame, _ in frames]
    if not isinstance(error, Exception) or isinstance(error, Unsupported):
        return ""
    own = [
        (Path(file).name, line)
        for file, (_, line) in zip(files, frames, strict=True)
        if _is_own(file)
    ]
    is_own = bool(own) and all(_is_own(file) or _is_of_library(file) for file in files)
    return f"{own[-1][0]}, line {own[-1][1]}" if is_own else ""


def _is_own(file: str) -> bool:
    return Path(file).is_relative_to(DLPROF) and not Path(file).is_relative_to(DLPROF / "probes")


def _is_of_library(file: str) -> bool:
    return Path(file).is_relative_to(LIBRARY) and "-packages" not in file
