"""What a framework raises is an answer. This is the one place that catches it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from dlprof.probes.base import Unsupported
from dlprof.protocol.messages import words

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Refusal:
    """An error that was raised in place of an answer."""

    error: BaseException

    @property
    def reason(self) -> str:
        """The error in words. :class:`Unsupported` speaks for itself."""
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
