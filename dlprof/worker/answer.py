"""What a worker sends for one request: stages, parts, and what failed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dlprof.worker.channel import Channel


class Answer:
    """What is sent for one request."""

    def __init__(self, channel: Channel, identity: int) -> None:
        self.channel = channel
        self.identity = identity
        self.outcome: tuple[str, str | None] = ("ok", None)
        self.at = ""
        """The stage that was told last."""
        self.refusals: dict[str, str] = {}
        """Why an instrument failed, by its name."""

    def stage(self, name: str) -> None:
        """Tell the parent what comes next, so that a crash or a hang can be placed."""
        self.at = name
        self.channel.send({"id": self.identity, "stage": name})

    def part(self, name: str, value: Any) -> None:
        self.channel.send({"id": self.identity, "part": name, "value": value})

    def failed(self, instrument: str, reason: str) -> None:
        self.refusals[instrument] = reason
        self.part("failed", {"instrument": instrument, "reason": reason})

    def done(self, status: str, reason: str | None) -> None:
        self.channel.send({"id": self.identity, "done": status, "reason": reason})
