"""What a CUDA suite does, the most important first.

Everything that is measured is kept in the suite's folder; the limits are meant for a machine that
is lent for minutes. ``device`` is ``cuda``, or ``cpu`` for a rehearsal of the same commands.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from step_runner import Step, last_line, tail

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
ENVIRONMENT = "environment.json"
COUNTED = re.compile(
    r"\d+ (?:passed|failed|errors?)\b.* in [\d.]+s|^SKIPPED \[\d+\] \S+?:\d+: (.*)"
)
"""The sum of some tests; where all of them were skipped, why the last one was."""
NO_TESTS, NOTHING_MEASURED = 5, 4
"""Exit codes of pytest and of dlprof."""
SELFTEST_SUM = re.compile(r"^\d+ of \d+ faults found.*")
SHAPE = ("--shape", "1024x1024")
"""A size at which calls and bytes both cost."""
DIRECT = (
    *("*from_dlpack(x)", "*from_dlpack(x, copy=*", "*as_cuda_array(x)", "cupy.asarray(x)"),
    *("torch.as_tensor(x, device=*", "jnp.asarray(x)"),
    *("torch.from_numpy(x.cpu().numpy()).cuda()", "cupy.asarray(x.get())"),
)
"""Ways from device to device, and two by the host. A diagnosis of all others too, some 320, would
take more than the time there is."""
LIMIT = ("--timeout", "30")
"""A case that hangs must not take the time of all others."""
TRIPS = ("--no-diagnose", "--rounds", "2")
"""Round trips come last, and a diagnosis might leave no time for them."""


@dataclass(frozen=True)
class Suite:
    """Where a suite runs, and where it keeps what it found."""

    python: str
    folder: Path
    device: str = "cuda"

    def file(self, name: str) -> Path:
        return self.folder / name

    def no_device(self) -> str | None:
        """Why no step can be run on the device; asked once the environment is written down."""
        if self.device != "cuda":
            return None
        try:
            found = json.loads(self.file(ENVIRONMENT).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return "whether there is a CUDA device is not known"
        reason = found["no_cuda"]
        return None if reason is None else f"no CUDA device: {reason}"

    def needs(self, name: str) -> Callable[[], str | None]:
        """That an earlier step wrote this file."""

        def why_not() -> str | None:
            missing = None if self.file(name).exists() else f"there is no {name}"
            return self.no_device() or missing

        return why_not

    def dlprof(self, *arguments: str | Path) -> tuple[str, ...]:
        return (self.python, "-m", "dlprof", *map(str, arguments))


def environment(suite: Suite) -> Step:
    """Device, driver and versions: all others ask it whether there is a device."""
    script = HERE / "cuda_environment.py"
    command = (suite.python, str(script), str(suite.file(ENVIRONMENT)))
    return Step("environment", command, 60)


def steps(suite: Suite) -> list[Step]:
    """All steps behind the environment."""
    loaded = "matrix-loaded"
    return [
        tests(suite, "spin-and-device", 90, "test_cuda_device.py", "test_spin_length.py"),
        tests(suite, "device-time-torch", 60, "test_device_time_of_torch.py"),
        tests(suite, "device-time-nvbench", 90, "test_device_time_against_nvbench.py"),
        tests(suite, "frameworks-on-streams", 45, "test_synthetic_frameworks.py"),
        selftest(suite),
        matrix(suite, loaded, 150, "--diagnose", "--rounds", "1", *paths(*DIRECT)),
        html(suite, loaded),
        ticket(suite, loaded),
        sweep(suite, "torch-numba-loop", ROOT / "scenarios", 45),
        sweep(suite, "ingest", ROOT / "scenarios", 60, "--rounds", "1", *onto_device(suite)),
        sweep(suite, "round-trip-torch-cupy", HERE, 45, *TRIPS),
        sweep(suite, "round-trip-cuda", ROOT / "scenarios", 45, *TRIPS),
        sweep(suite, "output-buffers", ROOT / "scenarios", 60, "--rounds", "2"),
        matrix(suite, "matrix", 120, "--quick"),
        tests(suite, "selftest-on-streams", 150, "test_selftest_on_streams.py"),
    ]


def tests(suite: Suite, name: str, limit_s: float, *files: str) -> Step:
    """Tests of ``tests/cuda``: together, the steps are ``make test-cuda``."""
    command = (
        *(suite.python, "-m", "pytest", "-m", "cuda", "-v", "--tb=short", "--durations=5"),
        # A warning of some version of a framework is no reason to measure nothing.
        *("-W", "default", "-p", "no:cacheprovider", "-rfEsP"),
        *("--basetemp", str(suite.file(f"tests-{name}"))),
        f"--junitxml={suite.file(f'tests-{name}.xml')}",
        *(f"tests/cuda/{file}" for file in files),
    )
    return Step(
        f"tests-{name}",
        command,
        limit_s,
        why_not=suite.no_device,
        tell=matching(COUNTED),
        nothing_rc=NO_TESTS,
    )


def selftest(suite: Suite) -> Step:
    command = suite.dlprof("selftest", "--device", suite.device)
    tell = matching(SELFTEST_SUM)
    return Step("selftest", command, 200, least_s=30, why_not=suite.no_device, tell=tell)


def matrix(suite: Suite, name: str, limit_s: float, *how: str) -> Step:
    """Every framework with every other; a diagnosis puts load on default and on own streams."""
    where = ("--device", suite.device)
    command = suite.dlprof("matrix", *where, *SHAPE, *LIMIT, *how, *kept(suite, name))
    return measuring(suite, name, command, limit_s)


def sweep(suite: Suite, name: str, folder: Path, limit_s: float, *how: str) -> Step:
    """A scenario; of its frameworks, those that are installed."""
    command = suite.dlprof("sweep", folder / f"{name}.toml", *LIMIT, *how, *kept(suite, name))
    html_file = ("--html", str(suite.file(f"{name}.html")))
    return measuring(suite, name, (*command, *html_file), limit_s)


def measuring(suite: Suite, name: str, command: tuple[str, ...], limit_s: float) -> Step:
    """A step that writes a session."""
    return Step(
        name,
        command,
        limit_s,
        least_s=20,
        why_not=suite.no_device,
        tell=session_line(suite.file(f"{name}.json")),
        nothing_rc=NOTHING_MEASURED,
    )


def onto_device(suite: Suite) -> tuple[str, ...]:
    """Paths that end on the device: what plain memory costs on the host needs no such machine."""
    return paths("*cuda*", "*cupy*") if suite.device == "cuda" else ()


def paths(*globs: str) -> tuple[str, ...]:
    """Measure only the paths that any of these match."""
    return tuple(word for glob in globs for word in ("--path", glob))


def html(suite: Suite, name: str) -> Step:
    page = suite.file(f"{name}.html")
    command = suite.dlprof("report", suite.file(f"{name}.json"), "--html", page)
    why_not = suite.needs(f"{name}.json")
    return Step(f"html-{name}", command, 45, why_not=why_not, tell=size_of(page))


def ticket(suite: Suite, name: str) -> Step:
    """The worst finding as a ticket, with what its reproducer printed on this machine."""
    text = suite.file(f"ticket-{name}.md")
    command = suite.dlprof("ticket", suite.file(f"{name}.json"), "--run", "-o", text)
    why_not = suite.needs(f"{name}.json")
    return Step(f"ticket-{name}", command, 60, why_not=why_not, tell=size_of(text))


def kept(suite: Suite, name: str) -> tuple[str, ...]:
    """A session, and its tables."""
    forms = (("-o", "json"), ("--csv", "csv"), ("--markdown", "md"))
    return tuple(
        word for option, ending in forms for word in (option, str(suite.file(f"{name}.{ending}")))
    )


def matching(pattern: re.Pattern[str]) -> Callable[[Path], str]:
    """Read the last line of a log in which the pattern is found, else the last of all."""

    def tell(log: Path) -> str:
        found = [match for line in tail(log).splitlines() if (match := pattern.search(line))]
        return str(found[-1][found[-1].lastindex or 0]) if found else last_line(log)

    return tell


def size_of(path: Path) -> Callable[[Path], str]:
    """Say how large a file became that a step wrote, else what the step said."""

    def tell(log: Path) -> str:
        return f"{path.stat().st_size / 1024:.0f} KiB" if path.exists() else last_line(log)

    return tell


def session_line(path: Path) -> Callable[[Path], str]:
    """Count a session's results and findings, else what the step said."""

    def tell(log: Path) -> str:
        if not path.exists():
            return last_line(log)
        return counted(json.loads(path.read_text(encoding="utf-8")))

    return tell


def counted(session: dict[str, Any]) -> str:
    """Results by status, what was found of their order on streams, findings by severity."""
    results = session["results"]
    groups = [
        Counter(one["status"] for one in results),
        Counter(one["ordering"]["verdict"] for one in results if one.get("ordering")),
        Counter(one["severity"] for one in session.get("findings", ())),
    ]
    told = [", ".join(f"{n} {word}" for word, n in one.most_common()) for one in groups if one]
    return "; ".join([*told, *([] if session.get("complete", True) else ["not complete"])])
