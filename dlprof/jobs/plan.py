"""What a plan says: environments, scenarios and machines, and the jobs that their product is.

A plan is refused as a whole before anything is made or submitted.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from dlprof._version import __version__
from dlprof.errors import UsageError
from dlprof.measuring.scenario import read as read_scenario
from dlprof.runner.session_file import first_error
from dlprof.text.clean import clean, listed, sanitised

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MOST_JOBS = 10_000
MOST_INCLUDED = 100
MOST_FILES_BYTES = 64 << 20
LONGEST_PLAN = 1 << 20
GATE, CONFORMANCE, SURVEY, SWEEP = "gate", "conformance", "survey", "run"
VERBS = (SWEEP, SURVEY, CONFORMANCE, "matrix", GATE, "time")
"""The verbs that a scenario may name. A file alone is a ``run``."""
OWN_OPTIONS = ("-o", "--output", "--python", "--json", "--base-python", "--head-python")
"""What a job sets itself."""
VERSION = re.compile(r"3\.\d{1,2}(\.\d{1,3})?")
LOGIN = re.compile(
    r"(?i)://[^/\s]*@|\bhttps?:[^/\s]*:[^/\s]*@|[?&][\w-]*(?:token|key|passw|secret|sig)[\w-]*="
)
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _one_line(text: str) -> str:
    if len(text.splitlines()) > 1:
        raise ValueError("a text here has one line")
    return text


Text = Annotated[str, Field(min_length=1, max_length=1000), AfterValidator(_one_line)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]


class Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class Environment(Part):
    """Packages and a Python, an interpreter that is there, or the two sides of a gate."""

    requirements: list[Text] = []
    python: Text | None = None
    index_url: Text | None = None
    extra_index_urls: list[Text] = []
    find_links: list[Text] = []
    installer: Literal["uv", "pip"] | None = None
    base: Text | None = None
    head: Text | None = None

    @property
    def is_pair(self) -> bool:
        return self.base is not None

    @model_validator(mode="after")
    def _can_be_made(self) -> Environment:
        more = self.model_fields_set - {"base", "head"}
        if (self.base is None) != (self.head is None) or (self.is_pair and more):
            raise ValueError("a pair for a gate has base and head, and no more")
        asked = self.python or ""
        if re.fullmatch(r"[\d.]+", asked) and not VERSION.fullmatch(asked):
            raise ValueError(f"there is no Python {self.python!r} for dlprof: name one like 3.11")
        if not self.is_pair and not self.requirements and not self.is_interpreter:
            raise ValueError("name requirements, or an interpreter as python")
        indexes = (self.index_url or "", *self.extra_index_urls)
        for text in (*self.requirements, *self.find_links, *indexes, self.python or ""):
            if LOGIN.search(text):
                raise ValueError("an address holds a login: keep it in the installer's own files")
            if text.startswith("-"):
                raise ValueError(f"{text!r} is an option and no package")
        return self

    @property
    def is_interpreter(self) -> bool:
        """Whether it is taken as it is."""
        return (
            not self.requirements and self.python is not None and not VERSION.fullmatch(self.python)
        )


class Machine(Part):
    """A kind of machine, and the engine that gives one."""

    executor: Literal["local", "slurm", "ray"] = "local"
    cpus: Annotated[int, Field(ge=1, le=4096)] = 1
    gpus: Annotated[float, Field(ge=0, le=64)] = 0
    memory_gb: Annotated[float, Field(gt=0)] | None = None
    minutes: Annotated[int, Field(ge=1, le=100_000)] = 60
    partition: Text | None = None
    at_once: Annotated[int, Field(ge=1, le=100_000)] = 256
    cluster: Literal["slurm", "local"] = "slurm"
    slurm: dict[str, str | int | float | bool] = {}
    address: Text = "local"
    resources: dict[str, float] = {}
    runtime_env: dict[str, Any] = {}


class Exclude(Part):
    environment: Text = "*"
    scenario: Text = "*"
    machine: Text = "*"

    def matches(self, environment: str, scenario: str, machine: str) -> bool:
        found = (
            (self.environment, environment),
            (self.scenario, scenario),
            (self.machine, machine),
        )
        return all(fnmatchcase(name, glob) for glob, name in found)


class Written(Part):
    """The keys of a plan."""

    store: Text
    environments: dict[Name, Environment] = Field(min_length=1)
    scenarios: list[Text] = Field(min_length=1)
    machines: dict[Name, Machine] = Field({"here": Machine()}, min_length=1)
    exclude: list[Exclude] = []
    variables: list[Text] = []
    disk_limit_gb: float = Field(50, gt=0)


@dataclass(frozen=True)
class Scenario:
    """A command of dlprof. ``files`` are those that it reads, below ``root``."""

    text: str
    words: tuple[str, ...]
    files: tuple[Path, ...]

    @property
    def verb(self) -> str:
        return self.words[0]

    @property
    def may_share(self) -> bool:
        """Whether it takes no times, so that another job beside it disturbs nothing."""
        return self.verb in (SURVEY, CONFORMANCE)


@dataclass(frozen=True)
class Job:
    """``contents`` is all that decides what is measured; ``id`` is the digest of it."""

    environment: str
    scenario: Scenario
    machine: str
    contents: Mapping[str, Any] = field(repr=False, hash=False)
    id: str

    @property
    def results(self) -> dict[str, str]:
        """The files in the store that a finished job has, and the end of their names in answers."""
        if self.scenario.verb == GATE:
            return {f"{self.id}.json": "", f"{self.id}.base.json": ".base"}
        kind = ".conformance" if self.scenario.verb == CONFORMANCE else ""
        return {f"{self.id}{kind}.json": ""}

    @property
    def title(self) -> str:
        return f"{self.environment}  {self.scenario.text}  {self.machine}"


@dataclass(frozen=True)
class Plan:
    file: Path
    written: Written
    jobs: tuple[Job, ...]
    root: Path
    """The folder above the plan and all files that jobs read."""
    files: Mapping[str, str] = field(repr=False)
    """The contents of those files, as base64, by their path below it."""

    @property
    def folder(self) -> str:
        """Where the plan lies below the root."""
        return self.file.parent.resolve().relative_to(self.root).as_posix()

    def files_of(self, job: Job) -> dict[str, str]:
        """The files that one job reads."""
        names = (file.relative_to(self.root).as_posix() for file in job.scenario.files)
        return {name: self.files[name] for name in names}

    def environments(self, job: Job) -> tuple[str, ...]:
        """The names of the environments of a job: one, or BASE and HEAD of a gate."""
        found = self.written.environments[job.environment]
        return (str(found.base), str(found.head)) if found.is_pair else (job.environment,)

    def environment(self, name: str) -> dict[str, Any]:
        """An environment, with its paths from the root of the file system."""
        written = self.written.environments[name].model_dump()
        here = self.file.parent.resolve()
        places = [one if "://" in one else str(here / one) for one in written["find_links"]]
        python = written["python"]
        if python and not python[:1].isdigit() and "/" in python:
            python = str(here / python)
        return {**written, "find_links": places, "python": python}

    def variables(self) -> dict[str, str]:
        """The environment variables that travel. Raises :class:`UsageError` for a missing one."""
        found = {}
        for text in self.written.variables:
            name, is_given, value = text.partition("=")
            if not is_given and name not in os.environ:
                raise UsageError(f"{self.file} names the variable {name}, and it is not set")
            found[name] = value if is_given else os.environ[name]
        return found


def read(path: Path) -> Plan:
    """The plan of a file. Raises :class:`UsageError`."""
    content = _merged(path, (), [])
    try:
        written = Written.model_validate(content)
    except ValidationError as error:
        raise UsageError(f"{path}: {clean(first_error(error))}") from None
    for text in written.variables:
        if not VARIABLE.fullmatch(text.partition("=")[0]):
            raise UsageError(f"{path}: variables {text!r}: expected NAME or NAME=value")
    _check_pairs(path, written)
    found = [_scenario(text, path) for text in dict.fromkeys(written.scenarios)]
    combinations = _combinations(path, written, found)
    every = {file for one in found for file in one.files}
    folder = path.parent.resolve()
    root = Path(os.path.commonpath([folder, *(file.parent for file in every)]))
    files = _contents(path, root, sorted(every))
    jobs = [_job(written, folder, root, files, *names) for names in combinations]
    return Plan(path, written, tuple(jobs), root, files)


def _merged(path: Path, above: tuple[Path, ...], read: list[Path]) -> dict[str, Any]:
    """The content of a plan over that of the plans that it includes; ``read`` has all of them."""
    place = path.resolve()
    read.append(place)
    if len(read) > MOST_INCLUDED:
        raise UsageError(f"{read[0]} includes more than {MOST_INCLUDED} plans")
    if place in above:
        names = " includes ".join(clean(one.name) for one in (*above[above.index(place) :], place))
        raise UsageError(f"{path}: {names}: a plan cannot include itself")
    try:
        data = path.read_bytes() if path.stat().st_size <= LONGEST_PLAN else None
        if data is None:
            raise UsageError(f"{path} is too long for a plan")
        content = sanitised(tomllib.loads(data.decode("utf-8-sig")))
    except OSError as error:
        raise UsageError(f"cannot read the plan {path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not TOML: {clean(str(error))}") from None
    found: dict[str, Any] = {}
    names = content.pop("include", [])
    for name in names if isinstance(names, list) else [names]:
        _lay_over(found, _merged(path.parent / str(name), (*above, place), read))
    _lay_over(found, content)
    return found


def _lay_over(below: dict[str, Any], content: Mapping[str, Any]) -> None:
    """Tables are joined, lists go on, and of what is one value the later counts."""
    for key, value in content.items():
        old = below.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            below[key] = {**old, **value}
        elif isinstance(old, list) and isinstance(value, list):
            below[key] = [*old, *value]
        else:
            below[key] = value


def _check_pairs(path: Path, written: Written) -> None:
    for name, one in written.environments.items():
        for side in (one.base, one.head):
            found = written.environments.get(side or "")
            if side is not None and (found is None or found.is_pair):
                raise UsageError(f"{path}: environments.{name}: there is no environment {side!r}")


def _scenario(text: str, path: Path) -> Scenario:
    """The command that a plan calls a scenario. Raises :class:`UsageError`."""
    start = f"{path}: scenario {text!r}"
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"{start}: {error}") from None
    if words and words[0].endswith(".toml"):
        words = [SWEEP, *words]
    if not words or words[0] not in VERBS:
        raise UsageError(f"{start}: expected a scenario file, or a command: {', '.join(VERBS)}")
    own = [word for word in words if word.partition("=")[0] in OWN_OPTIONS]
    if own:
        raise UsageError(f"{start}: a job sets {listed(own)} itself: leave it out")
    if words[0] in (SWEEP, GATE) and len(words) > 1 and words[1].endswith(".toml"):
        files = _read_by(path.parent / words[1])
    else:
        files = []
    for word in words[1:]:
        place = path.parent / word
        if place.is_file():
            files.append(place)
        if Path(word).is_absolute() and place.exists():
            raise UsageError(f"{start}: name {word} as a path that begins at the plan")
    resolved = dict.fromkeys(one.resolve() for one in files)
    return Scenario(text, tuple(words), tuple(resolved))


def _read_by(file: Path) -> list[Path]:
    """A scenario file and the files that it names. Raises :class:`UsageError`."""
    found = read_scenario(file)
    models = [file.parent / step.model for step in found.problem.step if step.model]
    return [file, *map(Path, found.options.get("probes", ())), *models]


def _combinations(
    path: Path, written: Written, found: Sequence[Scenario]
) -> list[tuple[str, Scenario, str]]:
    """The product without what is excluded. A gate takes a pair, and everything else does not."""
    sides = {True: [0, 0], False: [0, 0]}
    for one in written.environments.values():
        sides[one.is_pair][0] += 1
    for scenario in found:
        sides[scenario.verb == GATE][1] += 1
    if sides[True][1] and not sides[True][0]:
        raise UsageError(f"{path}: a gate needs an environment with base and head")
    count = sum(many * times for many, times in sides.values()) * len(written.machines)
    if count > MOST_JOBS:
        raise UsageError(f"{path} asks for {count:,} jobs: at most {MOST_JOBS:,} are possible")
    kept = [
        (environment, scenario, machine)
        for machine in written.machines
        for environment, one in written.environments.items()
        for scenario in found
        if one.is_pair == (scenario.verb == GATE)
        and not any(e.matches(environment, scenario.text, machine) for e in written.exclude)
    ]
    if not kept:
        raise UsageError(f"{path}: no job is left of {count:,}: look at exclude")
    return kept


def _contents(path: Path, root: Path, files: Sequence[Path]) -> dict[str, str]:
    found, size = {}, 0
    for file in files:
        try:
            size += file.stat().st_size
            if size > MOST_FILES_BYTES:
                raise UsageError(f"{path}: its files have more than {MOST_FILES_BYTES >> 20} MiB")
            name = file.relative_to(root).as_posix()
            found[name] = base64.b64encode(file.read_bytes()).decode("ascii")
        except OSError as error:
            raise UsageError(f"{path}: cannot read {file}: {error.strerror}") from None
    return found


def _job(
    written: Written,
    folder: Path,
    root: Path,
    files: Mapping[str, str],
    environment: str,
    scenario: Scenario,
    machine: str,
) -> Job:
    found = written.environments[environment]
    sides = [written.environments[name] for name in (found.base, found.head) if name] or [found]
    contents = {
        "words": scenario.words,
        "files": {
            os.path.relpath(one, folder): _digest(files[one.relative_to(root).as_posix()])
            for one in scenario.files
        },
        "environment": environment,
        "environments": [one.model_dump(exclude_defaults=True) for one in sides],
        "machine": machine,
        "variables": sorted(written.variables),
        "dlprof": __version__,
    }
    digest = _digest(json.dumps(contents, sort_keys=True))[:16]
    return Job(environment, scenario, machine, contents, digest)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
