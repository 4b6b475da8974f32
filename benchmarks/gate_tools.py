"""What each tool says of BASE and HEAD: which of the sixteen conversions it calls slower.

Every tool is run as its documents advise, but pyperf with fewer processes than its 20: with these
one of its gates would take most of an hour. All run the functions of ``gate_suite`` with the same
planted slowdown. This file is also what the tools run: ``python gate_tools.py pyperf …``.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import timeit
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gate_suite import ROOT, SUITE, Conversion, function, name_of, scenario
from spun_probe import VARIABLE

ME = Path(__file__)
FLOOR, HALF = 1.05, 1.025
"""dlprof says SLOWER of what is surely slower than half its floor: the others are asked with half
of theirs, too."""
REPEATS = 5
LEAST_S = 0.02


@dataclass(frozen=True)
class Planted:
    """Turns of the spin behind conversions of HEAD; none for equal code."""

    turns: Mapping[Conversion, int] = field(default_factory=dict)

    def variables(self, head: bool) -> dict[str, str]:
        texts = [f"{one.pair} {one.way} {turns}" for one, turns in self.turns.items()]
        return {VARIABLE: ";".join(texts)} if head and texts else {}


@dataclass(frozen=True)
class Said:
    """``slower`` are names of conversions; ``unsure`` how many a tool could not tell.

    ``told`` is what it says of those that it does not call the same, ``ratios`` HEAD's time over
    BASE's as it measured them. ``by_half`` are those that it calls slower with 2.5 % instead of 5 %
    (None where it has no such threshold), ``changed`` those of which more than the time is worse.
    ``failed`` says why there is no answer. ``medians_ns`` are dlprof's medians of each process, by
    session, conversion and round; ``differences`` those of HEAD from BASE that it judges, in
    logarithms, by pass: another way of judging can be tried on them.
    """

    slower: list[str]
    unsure: int
    wall_s: float
    exit_code: int
    note: str = ""
    told: dict[str, str] = field(default_factory=dict)
    ratios: dict[str, float] = field(default_factory=dict)
    by_half: list[str] | None = None
    changed: list[str] = field(default_factory=list)
    failed: str = ""
    medians_ns: dict[str, dict[str, list[float | None]]] = field(default_factory=dict)
    differences: dict[str, dict[str, list[float]]] = field(default_factory=dict)


@dataclass(frozen=True)
class Options:
    """``budget_s`` is dlprof's; ``processes`` pyperf's, of each conversion and side; ``head`` the
    Python of HEAD in dlprof's gates, the one of BASE where nothing else is said.
    """

    budget_s: float
    processes: int
    head: str = sys.executable


def dlprof(planted: Planted, folder: Path, options: Options) -> Said:
    """``dlprof gate SCENARIO --base-python A --head-python B``."""
    file, told = folder / "suite.toml", folder / "told.json"
    file.write_text(scenario(), encoding="utf-8")
    pythons = zip(SIDES, (sys.executable, options.head), strict=True)
    sides = [
        _interpreter(folder / name, python, planted.variables(name == "head"))
        for name, python in pythons
    ]
    command = [sys.executable, "-m", "dlprof", "gate", file, "--base-python", sides[0]]
    command += ["--head-python", sides[1], "--budget", options.budget_s]
    command += ["-o", folder / "sessions", "--json", told]
    done, wall_s = _run(command, {"PYTHONPATH": str(ROOT)})
    if not told.exists():
        return Said([], len(SUITE), wall_s, done.returncode, failed=done.stderr[-1000:])
    content = json.loads(told.read_text(encoding="utf-8"))
    times = {name_of(one["case"]): one["times"][0] for one in content["cases"] if one["times"]}
    words = {name: time_["word"] for name, time_ in times.items()}
    return Said(
        slower=[name for name, word in words.items() if word == "SLOWER"],
        unsure=sum(words.get(one.name) not in ("SAME", "SLOWER", "FASTER") for one in SUITE),
        wall_s=wall_s,
        exit_code=done.returncode,
        note=" ".join(content["answers"][1:]),
        told={name: _why(times[name]) for name, word in words.items() if word != "SAME"},
        ratios={name: time_["ratio"] for name, time_ in times.items() if time_["ratio"]},
        changed=[name_of(one["case"]) for one in content["cases"] if _is_worse(one)],
        **_rounds(folder / "sessions"),
    )


def _rounds(kept: Path) -> dict[str, Any]:
    """What each process and round found, to a ten-thousandth; None where a round has no process."""
    # Here, since the other tools run this file in each of their processes.
    from dlprof.compare.process import processes
    from dlprof.compare.turn import in_turns
    from dlprof.session import model as sessions

    sides = {
        path.stem: {
            name_of(result.case.model_dump(by_alias=True)): processes(result, "ready")
            for result in sessions.load(path).results
        }
        for path in sorted(kept.glob("*.json"))
    }
    medians: dict[str, dict[str, list[float | None]]] = {}
    for stem, cases in sides.items():
        medians[stem] = {}
        for name, side in cases.items():
            found = {one.round: float(f"{one.time_ns:.5g}") for one in side}
            medians[stem][name] = [found.get(n) for n in range(max(found, default=-1) + 1)]
    passes = [(base, base.replace("base", "head")) for base in sides if base.startswith("base")]
    differences = {
        head.replace("head", "pass"): {
            name: [round(float(one), 5) for one in in_turns(side, sides[head][name]).differences]
            for name, side in sides[base].items()
            if name in sides[head]
        }
        for base, head in passes
        if head in sides
    }
    return {"medians_ns": medians, "differences": differences}


def foretold(budget_s: float) -> dict[str, float | None]:
    """What ``dlprof calibrate`` says a gate would catch of each conversion; None for nothing."""
    with tempfile.TemporaryDirectory(prefix="dlprof-calibrate-") as folder:
        file, noise = Path(folder, "suite.toml"), Path(folder, "noise.json")
        file.write_text(scenario(), encoding="utf-8")
        command = [sys.executable, "-m", "dlprof", "calibrate", file, "--budget", budget_s]
        _run([*command, "-o", noise], {"PYTHONPATH": str(ROOT)})
        content = json.loads(noise.read_text(encoding="utf-8"))
    return {name_of(one["case"]): one["caught"] for one in content["cases"]}


def _why(time_: Mapping[str, Any]) -> str:
    return f"{time_['word']} {time_['ratio'] or 0:.3f} {time_['reason'] or time_['note'] or ''}"


def _is_worse(case: Mapping[str, Any]) -> bool:
    return any(change["direction"] == "worse" for change in case["changes"])


def pytest_benchmark(planted: Planted, folder: Path, options: Options) -> Said:  # noqa: ARG001
    """``pytest --benchmark-compare --benchmark-compare-fail=min:5%``."""
    command = [sys.executable, "-m", "pytest", ME, "-q", "-p", "no:cacheprovider", "-c", os.devnull]
    command += [f"--rootdir={ME.parent}", f"--benchmark-storage={folder}"]
    _, base_s = _run([*command, "--benchmark-save=base"], planted.variables(head=False))
    more = ["--benchmark-save=head", "--benchmark-compare=0001"]
    more += ["--benchmark-compare-fail=min:5%"]
    done, head_s = _run([*command, *more], planted.variables(head=True))
    base, head = (_least(next(folder.glob(f"*/*_{name}.json"))) for name in SIDES)
    return _by_ratio(base, head, base_s + head_s, done.returncode)


def _by_ratio(
    base: Mapping[str, float], head: Mapping[str, float], wall_s: float, exit_code: int
) -> Said:
    """What is called slower by nothing but how its two times compare."""
    ratios = {one.name: head[one.name] / base[one.name] for one in SUITE}
    slower, by_half = ([name for name in ratios if ratios[name] > n] for n in (FLOOR, HALF))
    return Said(slower, 0, wall_s, exit_code, ratios=ratios, by_half=by_half)


def _least(path: Path) -> dict[str, float]:
    content = json.loads(path.read_text(encoding="utf-8"))
    return {one["param"]: one["stats"]["min"] for one in content["benchmarks"]}


def pyperf(planted: Planted, folder: Path, options: Options) -> Said:
    """``pyperf compare_to --min-speed 5``: significant and at least 5 %."""
    files = [folder / f"{name}.json" for name in SIDES]
    begun = time.monotonic()
    for name, file in zip(SIDES, files, strict=True):
        command = [sys.executable, ME, "pyperf", "-o", file, "--processes", options.processes]
        command += ["--inherit-environ", f"{VARIABLE},PYTHONPATH"]
        _run(command, planted.variables(name == "head"))
    slower = _called_slower(files, FLOOR)
    wall_s = time.monotonic() - begun
    base, head = (_means(file) for file in files)
    ratios = {one.name: head[one.name] / base[one.name] for one in SUITE}
    by_half = _called_slower(files, HALF)
    return Said(slower, 0, wall_s, int(bool(slower)), ratios=ratios, by_half=by_half)


def _called_slower(files: Sequence[Path], floor: float) -> list[str]:
    command = [sys.executable, "-m", "pyperf", "compare_to", *files]
    done, _ = _run([*command, "--min-speed", f"{100 * (floor - 1):.3g}"], {})
    lines = [line for line in done.stdout.splitlines() if "slower" in line]
    return [one.name for one in SUITE if any(_names(line, one) for line in lines)]


def _means(path: Path) -> dict[str, float]:
    import pyperf

    return {one.get_name(): one.mean() for one in pyperf.BenchmarkSuite.load(str(path))}


def _names(line: str, conversion: Conversion) -> bool:
    return line.startswith(f"{conversion.name}:")


def median_of_five(planted: Planted, folder: Path, options: Options) -> Said:  # noqa: ARG001
    """What people write themselves: five samples of a loop, the median, and 5 %."""
    begun = time.monotonic()
    medians = []
    for name in SIDES:
        done, _ = _run([sys.executable, ME, "median"], planted.variables(name == "head"))
        medians.append(json.loads(done.stdout.splitlines()[-1]))
    found = _by_ratio(*medians, time.monotonic() - begun, 0)
    return replace(found, exit_code=int(bool(found.slower)))


Tool = Callable[[Planted, Path, Options], Said]
SIDES = ("base", "head")
TOOLS: dict[str, Tool] = {
    "dlprof": dlprof,
    "pytest-benchmark": pytest_benchmark,
    "pyperf": pyperf,
    "median of 5": median_of_five,
}


def _run(command: list[Any], variables: Mapping[str, str]) -> tuple[Any, float]:
    """Run to the end. Raises RuntimeError for a command line that makes no sense, or a crash."""
    inherited = {name: value for name, value in os.environ.items() if name != VARIABLE}
    begun = time.monotonic()
    done = subprocess.run(
        [str(word) for word in command],
        env={**inherited, **variables, "TF_CPP_MIN_LOG_LEVEL": "2"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 2 or done.returncode < 0:
        raise RuntimeError(f"{' '.join(map(str, command))}:\n{done.stdout}{done.stderr}")
    return done, time.monotonic() - begun


def _interpreter(path: Path, python: str, variables: Mapping[str, str]) -> Path:
    """A Python with variables set."""
    lines = "".join(f"export {name}='{value}'\n" for name, value in variables.items())
    path.write_text(f'#!/bin/sh\n{lines}exec {python} "$@"\n', encoding="utf-8")
    path.chmod(0o755)
    return path


def samples_ns(conversion: Conversion, repeats: int = REPEATS) -> list[float]:
    """A few samples of a loop, in ns per call."""
    timer = timeit.Timer(function(conversion))
    timer.timeit(1)
    loops = 1
    while timer.timeit(loops) < LEAST_S:
        loops *= 2
    return [taken_s / loops * 1e9 for taken_s in timer.repeat(repeats, loops)]


def _medians() -> None:
    print(json.dumps({one.name: statistics.median(samples_ns(one)) for one in SUITE}))


def _pyperf() -> None:
    import pyperf

    sys.argv.remove("pyperf")
    runner = pyperf.Runner(program_args=(str(ME), "pyperf"))
    args = runner.parse_args()
    for number, one in enumerate(SUITE):
        # Only the process that measures a conversion imports its frameworks.
        here = args.worker and args.worker_task == number
        runner.bench_func(one.name, function(one) if here else print)


def pytest_generate_tests(metafunc: Any) -> None:
    if "conversion" in metafunc.fixturenames:
        metafunc.parametrize("conversion", [one.name for one in SUITE])


def test_conversion(benchmark: Any, conversion: str) -> None:
    benchmark(function(next(one for one in SUITE if one.name == conversion)))


if __name__ == "__main__":
    {"pyperf": _pyperf, "median": _medians}[
        next(word for word in sys.argv if word in ("pyperf", "median"))
    ]()
