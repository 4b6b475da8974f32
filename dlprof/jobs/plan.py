"""A plan: environments times scenarios, and the session file of each."""

from __future__ import annotations

import hashlib
import re
import shlex
import sys
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dlprof._version import __version__
from dlprof.errors import SessionError, UsageError
from dlprof.runner.session_file import first_error, load
from dlprof.text.clean import clean

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

VERBS = ("run", "survey", "matrix", "time")
"""The verbs that a scenario may begin with. A file alone is a ``run``."""
EXIT_CODE = re.compile(r"^exit code (-?\d+)$")

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]


class Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Environment(Part):
    """Packages for uv to install, or an interpreter that is there."""

    requirements: list[str] = []
    python: str | None = None
    uv_options: list[str] = []


class Engine(Part):
    """What runs the jobs. ``options`` are those of submitit, or of a task of Ray."""

    name: Literal["local", "slurm", "ray"] = "local"
    options: dict[str, Any] = {}


class Plan(Part):
    """The keys of a plan. Paths begin at the plan."""

    store: str
    environments: dict[Name, Environment] = Field(min_length=1)
    scenarios: list[str] = Field(min_length=1)
    engine: Engine = Engine()


@dataclass(frozen=True)
class Job:
    """One scenario in one environment; ``words`` are its command, without the interpreter."""

    environment: str
    scenario: str
    words: tuple[str, ...]
    folder: Path
    """Where the command runs."""
    session: Path

    @property
    def log(self) -> Path:
        return self.session.with_suffix(".log")

    @property
    def title(self) -> str:
        return f"{self.environment}  {self.scenario}"

    @property
    def is_done(self) -> bool:
        """Whether its session is there, and came to its end."""
        try:
            return self.session.is_file() and load(self.session).complete
        except SessionError:  # torn
            return False

    @property
    def exit_code(self) -> int | None:
        """The exit code of its last run, from its log."""
        found = EXIT_CODE.match(self._last_lines()[-1])
        return int(found[1]) if found else None

    @property
    def last_line(self) -> str:
        """What it said last."""
        return next((line for line in reversed(self._last_lines()[:-1]) if line.strip()), "")

    def _last_lines(self) -> list[str]:
        text = self.log.read_text("utf-8", "replace") if self.log.is_file() else ""
        return text.splitlines() or [""]


def read(path: Path) -> tuple[Plan, list[Job]]:
    """Read a plan and return it with its jobs. Raises :class:`UsageError`."""
    try:
        plan = Plan.model_validate(tomllib.loads(path.read_text("utf-8")))
    except OSError as error:
        raise UsageError(f"cannot read the plan {path}: {error.strerror}") from None
    except ValidationError as error:
        raise UsageError(f"{path}: {clean(first_error(error))}") from None
    except ValueError as error:
        raise UsageError(f"{path} is not TOML: {clean(str(error))}") from None
    for name, one in plan.environments.items():
        if not one.requirements and not one.python:
            raise UsageError(f"{path}: environments.{name}: name requirements or a python")
    folder = path.parent.resolve()
    pairs = product(plan.environments, plan.scenarios)
    return plan, list(dict.fromkeys(_job(plan, folder, *pair) for pair in pairs))


def _job(plan: Plan, folder: Path, name: str, scenario: str) -> Job:
    words = shlex.split(scenario)
    if words and words[0].endswith(".toml"):
        words = ["run", *words]
    if not words or words[0] not in VERBS:
        raise UsageError(
            f"scenario {scenario!r}: expected a scenario file, or a command: {', '.join(VERBS)}"
        )
    contents = [__version__, words, plan.environments[name].model_dump()]
    file = folder / words[1] if len(words) > 1 else folder
    if file.suffix == ".toml" and file.is_file():
        contents.append(file.read_text("utf-8", "replace"))
    digest = hashlib.sha256(repr(contents).encode()).hexdigest()[:12]
    session = folder / plan.store / f"{name}-{digest}.json"
    return Job(name, scenario, tuple(words), folder, session)
