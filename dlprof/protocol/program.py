"""An external program that plays a framework: its command, as the source of two probes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class ProgramSource:
    """A command, the folder where it starts, and the seconds in which it must say hello."""

    PREFIX: ClassVar[str] = "program:"

    command: str
    folder: str
    limit_s: float

    def reference(self) -> str:
        return self.PREFIX + json.dumps(vars(self))

    @classmethod
    def read(cls, reference: str) -> ProgramSource:
        return cls(**json.loads(reference.removeprefix(cls.PREFIX)))
