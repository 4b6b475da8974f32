"""One path with one release of a package after another, each in an environment of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dlprof.atlas.bisect import Tried
from dlprof.atlas.cells import read
from dlprof.errors import DlprofError, Interrupted, Unmeasured
from dlprof.jobs.environments import Unmade, made, resolved
from dlprof.plan.catalog import ProbeInfo
from dlprof.text.clean import first_line

LIMIT_BYTES = 20e9
"""Of kept environments; the longest unused are removed."""


def requirements(ends: Sequence[ProbeInfo], package: str) -> tuple[str, ...]:
    """The frameworks of a path in their versions here, without the package."""
    found = {}
    for end in ends:
        name = end.distribution or end.requirement
        version = (end.version or "").partition("+")[0]
        found[name] = f"{name}=={version}" if version else end.requirement
    found.pop(package, None)
    return tuple(found.values())


@dataclass(frozen=True)
class Trial:
    """``run`` measures the path in an interpreter and writes the session to a file.

    ``others`` are the requirements beside the package.
    """

    statement: str
    package: str
    others: tuple[str, ...]
    folder: Path
    run: Callable[[str, Path], object]

    def measure(self, version: str) -> Tried:
        """The cell of the path with a release, or why there is none."""
        required = {"requirements": [f"{self.package}=={version}", *self.others]}
        try:
            environment = resolved(required, f"with {self.package} {version}")
            with made(environment, LIMIT_BYTES) as python:
                return self._measured(version, python)
        except Unmade as error:
            lines = [line for line in error.lines if line.strip()] or [str(error)]
            return Tried(version, None, f"not installed: {first_line(lines[-1])}")
        except Interrupted:
            raise
        except DlprofError as error:
            return Tried(version, None, first_line(str(error)))

    def _measured(self, version: str, python: str) -> Tried:
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self.folder / f"{self.package}-{version}.json"
        try:
            self.run(python, file)
        except Unmeasured:  # a refusal is an answer, too
            if not file.exists():
                raise
        cells = [cell for case, cell in read(file).cells if case.code == self.statement]
        return Tried(version, cells[0]) if cells else Tried(version, None, "it has no such path")
