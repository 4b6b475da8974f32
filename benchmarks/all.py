"""Run every benchmark program in turn and write ``docs/results/benchmarks.md``.

Outcomes that the programs wrote themselves (``--json FOLDER/PROGRAM.json``) can be put together
with ``--reuse FOLDER``; what is not there is run.
"""

from __future__ import annotations

import contextlib
import datetime
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import outcome

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "results" / "benchmarks.md"
PROGRAMS = (
    "truth",
    "overhead",
    "accuracy",
    "speed",
    "memory",
    "waiting",
    "selftest",
    "html_report",
    "report_scale",
)
PACKAGES = (
    *("dlprof", "numpy", "torch", "tensorflow", "tensorflow-cpu", "jax", "onnxruntime"),
    *("numba", "pyperf"),
)


def run(program: str, short: bool) -> dict[str, Any]:
    """The outcome of one program; its own exit code only says whether a target was missed."""
    outcome.tell(f"== {program}")
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) / "outcome.json"
        command = [sys.executable, str(HERE / f"{program}.py"), "--json", str(kept)]
        done = subprocess.run([*command, *(["--short"] if short else [])], check=False)
        if not kept.exists():
            raise SystemExit(f"{program}.py failed with exit code {done.returncode}")
        found: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8"))
    return found


def reused(folder: Path | None, program: str) -> dict[str, Any] | None:
    """The outcome of an earlier run of a program; None where there is none."""
    kept = folder / f"{program}.json" if folder is not None else None
    if kept is None or not kept.exists():
        return None
    found: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8"))
    return found


def machine() -> str:
    """The machine in words, such as "2-core AMD EPYC machine"."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    names = [line.partition(": ")[2] for line in lines if line.startswith("model name")]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()}-core {names[0] if names else 'machine'}, {memory:.0f} GiB of memory"


def versions() -> str:
    """Python and the packages that are measured."""
    words = [f"Python {platform.python_version()}"]
    for name in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            words.append(f"{name} {importlib.metadata.version(name)}")
    return ", ".join(words)


def page(found: dict[str, dict[str, Any]], pieced: bool = False) -> str:
    """The page: what was promised, then every table."""
    outcomes = [restored(one) for one in found.values()]
    promises = [target for one in outcomes for target in one.targets]
    met = sum(target.met for target in promises)
    date = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    minutes = sum(one.wall_s for one in outcomes) / 60
    head = [
        "# Benchmarks",
        "",
        "`make benchmarks` writes this page. Each table comes from a program in `benchmarks/`.",
        "",
        f"- Date: {date}",
        f"- Machine: {machine()}, {platform.system()} {platform.release().split('-')[0]}",
        f"- Versions: {versions()}",
        "- Put together from several runs; the captions say where that matters."
        if pieced
        else f"- The run took {minutes:.0f} minutes.",
        "",
        f"{met} of {len(promises)} targets are met:",
        "",
        *(
            f"- [{'x' if target.met else ' '}] {target.promise}: {target.found}"
            for target in promises
        ),
    ]
    blocks = [
        f"\n## {one.title}\n\n`benchmarks/{name}.py`\n\n```text\n{outcome.render(one)}\n```"
        for name, one in zip(found, outcomes, strict=True)
    ]
    return "\n".join([*head, *blocks]) + "\n"


def restored(content: dict[str, Any]) -> outcome.Outcome:
    """An outcome from its JSON."""
    targets = [outcome.Target(**target) for target in content["targets"]]
    return outcome.Outcome(**{**content, "targets": targets})


def main() -> int:
    parser = outcome.options(__doc__)
    parser.add_argument("--output", type=Path, default=PAGE, help="the page to write")
    parser.add_argument("--reuse", type=Path, metavar="FOLDER", help="outcomes that are there")
    given = parser.parse_args()
    found = {
        program: reused(given.reuse, program) or run(program, given.short) for program in PROGRAMS
    }
    if given.json is not None:
        given.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    given.output.parent.mkdir(parents=True, exist_ok=True)
    given.output.write_text(page(found, given.reuse is not None), encoding="utf-8")
    outcome.tell(f"written: {given.output}")
    return 0 if all(target["met"] for one in found.values() for target in one["targets"]) else 1


if __name__ == "__main__":
    sys.exit(main())
