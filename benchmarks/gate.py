"""Count false alarms and missed slowdowns of gates: sixteen conversions, six tools, one run.

Kinds of gates:

- equal code;
- equal code while another program loads one core half of the time;
- two of eleven views slower, one by 5 % and one by 10 %;
- a copy of 4 MiB slower by 10 %;
- a view slower by 2 %.

The same spin slows a conversion for all tools. All other conversions are equal code. The tools:

- dlprof gate;
- pytest-benchmark, --benchmark-compare-fail=median:5%;
- pyperf compare_to, ten processes, significant and at least 5 %;
- asv compare --factor 1.05, two processes;
- a bootstrap, as criterion does it: fifty samples in one process, and the 95 % interval of the
  ratio of medians lies above 2.5 %;
- a median of five samples with 5 %.

A full run takes many hours. Each finished gate is a line in --file. A later call continues there;
--hours limits its time. A gate that breaks is reported, writes no line, and is tried again by a
later call. --table prints the results. --paths selects conversions for all tools alike; such gates
need their own file. A gate of sixteen by pyperf starts 352 processes, one of eleven to choose the
number of loops, and takes about a quarter of an hour.

    python benchmarks/gate.py --file gates.jsonl --tools dlprof --hours 2
    python benchmarks/gate.py --file gates.jsonl --table
    python benchmarks/gate.py --file some.jsonl --gates 3 --paths "numpy.a*" "torch.tensor*"
"""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from fnmatch import fnmatchcase
from importlib import metadata
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import outcome
import tomllib
from scipy.stats import binomtest
from spun_probe import LEAST, VARIABLE, digits, wrapped

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
EQUAL, LOADED, SLOWER, COPY, SMALL = "equal", "loaded", "slower", "copy", "small"
KINDS = {EQUAL: 30, LOADED: 15, SLOWER: 30, COPY: 15, SMALL: 5}
"""The number of gates of each kind."""
LOAD = """
import time
while True:
    end = time.perf_counter() + 0.05
    while time.perf_counter() < end:
        pass
    time.sleep(0.05)
"""
FLOOR = 1.05
PERCENTS = (5.0, 10.0)
COPIED_PERCENT, SMALL_PERCENT = 10.0, 2.0
SIDES = ("base", "head")
SUITE = "suite.toml"
MOST_S = 120
MOST_BROKEN = 3
"""The run ends after this number of broken gates in a row."""
TIMED = """
import json, sys, timeit
found = {}
for one in json.load(open(sys.argv[1])):
    names = {}
    exec(one["setup"], names)
    timer = timeit.Timer(one["code"], globals=names)
    loops, _ = timer.autorange()
    repeats = timer.repeat(int(sys.argv[2]), max(loops // 10, 1))
    found[one["name"]] = [taken / loops for taken in repeats]
print(json.dumps(found))
"""
BENCHMARK = """
import json, pytest
CASES = {one["name"]: one for one in json.load(open(CONVERSIONS))}

@pytest.mark.parametrize("name", CASES)
def test_conversion(benchmark, name):
    names = {}
    exec(CASES[name]["setup"], names)
    benchmark(eval(f"lambda: {CASES[name]['code']}", names))
"""


class Broken(Exception):
    """A tool that gave no answer."""


ASV = """
import json
CASES = {one["name"]: one for one in json.load(open(CONVERSIONS))}

class Conversions:
    params = list(CASES)

    def setup(self, name):
        names = {}
        exec(CASES[name]["setup"], names)
        self.convert = eval(f"lambda: {CASES[name]['code']}", names)

    def time_conversion(self, name):
        self.convert()
"""
RESAMPLES, BOOTSTRAP_FLOOR = 2000, 1.025

Conversion = dict[str, Any]
"""``name``, ``setup`` and ``code`` as text, its time in ns, and whether it is a view."""
Found = dict[str, Any]
"""The names of slower conversions, and the number of undecided ones."""


def suite(folder: Path, wanted: Sequence[str]) -> Path:
    """Write scenarios/gate.toml for the ``wanted`` paths, with the probes that plant slowdowns."""
    text = (ROOT / "scenarios" / "gate.toml").read_text(encoding="utf-8")
    kept = [
        path
        for path in tomllib.loads(text)["paths"]
        if any(fnmatchcase(path, glob) for glob in wanted)
    ]
    globs = [path.replace("(x)", "({x})") for path in kept]
    paths = [wrapped(glob).replace("{x}", "x") for glob in globs]
    head, _, rest = text.partition("paths = [")
    probes = f"probes = {json.dumps([str(HERE / 'spun_probe.py')])}"
    file = folder / SUITE
    tail = rest.partition("]")[2]
    file.write_text(f"{head}paths = {json.dumps(paths)}\n{probes}\n{tail}", encoding="utf-8")
    return file


def conversions(file: Path, codes: Sequence[str] = ()) -> list[Conversion]:
    """Return the suite as text, so that every tool runs the same setup and statement.

    ``codes`` limits it to these conversions.
    """
    only = [word for code in codes for word in ("--path", code)]
    found, _ = outcome.session("run", str(file), "--rounds", "6", "--no-diagnose", *only)
    return [
        {
            "name": name_of(one["case"]),
            "setup": "\n".join((*one["recipe"]["setup"], one["recipe"]["create"]["C"])),
            "code": one["case"]["code"],
            "ns": fastest_ns(one),
            "is_view": one["ownership"]["verdict"] == "view",
        }
        for one in found["results"]
        if one["status"] == "ok"
    ]


def fastest_ns(result: Mapping[str, Any]) -> float:
    """Return the least median of a process: noise makes the machine slower, never faster."""
    processes = result["ready_time"]["processes"] or result["host_time"]["processes"]
    return min(statistics.median(one["samples_ns"]) for one in processes)


def name_of(case: Mapping[str, str]) -> str:
    return f"{case['producer']}->{case['consumer']} {case['export']}->{case['import']}"


def turn_ns() -> float:
    """Return the time of one turn of the spin: the fastest of many."""

    def spin_ns(number: int) -> float:
        begun = time.perf_counter_ns()
        for _ in range(100):
            number.bit_count()
        return (time.perf_counter_ns() - begun) / 100

    many, none = digits(LEAST + 2000), digits(LEAST)
    times = [(spin_ns(many), spin_ns(none)) for _ in range(300)]
    return (min(long for long, _ in times) - min(short for _, short in times)) / 2000


def length(one: Conversion, percent: float, turn: float) -> int:
    """Return the length of a spin: in percent of its own time for a copy, in turns for a view."""
    return math.ceil(percent / 100 * one["ns"] / turn) if one["is_view"] else round(percent)


def planted(kind: str, number: int, known: list[Conversion]) -> dict[str, float]:
    """Return the slower conversions of a gate, in percent. Each pair of views gets its turn."""
    views = [one for one in known if one["is_view"]]
    copies = [one for one in known if not one["is_view"]]
    if kind == COPY:
        return {copies[number % len(copies)]["name"]: COPIED_PERCENT}
    if kind == SMALL:
        return {views[number % len(views)]["name"]: SMALL_PERCENT}
    if kind != SLOWER:
        return {}
    first, apart = number % len(views), 1 + number // len(views) % (len(views) - 1)
    second = (first + apart) % len(views)
    return {views[place]["name"]: p for place, p in zip((first, second), PERCENTS, strict=True)}


def ready_for(
    slower: Mapping[str, float], known: Sequence[Conversion], file: Path
) -> list[Conversion]:
    """Return the conversions to slow down, with their times now.

    The machine may be slower than at an earlier gate, and the spin slows by another factor.
    """
    if not slower:
        return []
    codes = [one["code"] for one in known if one["name"] in slower]
    found = {one["name"]: one for one in conversions(file, codes)}
    return [found[name] for name in slower]


def run(given: Namespace) -> None:
    """Run the gates that the file lacks, all kinds and tools in turn."""
    done = {(line["tool"], line["kind"], line["number"]) for line in lines(given.file)}
    until = time.monotonic() + 3600 * given.hours
    with tempfile.TemporaryDirectory(prefix="dlprof-gate-") as name:
        known = conversions(of := suite(Path(name), given.paths))
        (Path(name) / "conversions.json").write_text(json.dumps(known), encoding="utf-8")
        broken, provenance = 0, {"commit": commit(), "versions": dict(versions())}
        provenance["conversions"] = len(known)
        for number, tool, kind in product(
            range(given.gates or max(KINDS.values())), given.tools, given.kinds
        ):
            if time.monotonic() > until or broken == MOST_BROKEN:
                return
            if (tool, kind, number) in done or number >= (given.gates or KINDS[kind]):
                continue
            slower = planted(kind, number, known)
            ready, turn = ready_for(slower, known, of), turn_ns()
            spin = ";".join(
                f"{one['name']} {length(one, slower[one['name']], turn)}" for one in ready
            )
            begun = time.monotonic()
            try:
                with loaded() if kind == LOADED else nullcontext():
                    found = TOOLS[tool](Path(name), [one["name"] for one in known], spin, given)
            except Broken as error:
                outcome.tell(f"{tool} {kind} {number}: {error}")
                broken += 1
                continue
            broken = 0
            line = {"tool": tool, "kind": kind, "number": number, "planted": slower}
            line["ns"] = {one["name"]: one["ns"] for one in ready}
            line |= found | {"wall_s": time.monotonic() - begun, "load": os.getloadavg()[0]}
            line |= provenance
            outcome.tell(json.dumps(line))
            with given.file.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")


def commit() -> str:
    """Return the commit of this checkout, or an empty text outside of one."""
    done = subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip()


def versions() -> Iterator[tuple[str, str]]:
    for name in ("numpy", "torch", "tensorflow-cpu", "jax", "onnxruntime"):
        with suppress(metadata.PackageNotFoundError):
            yield name, metadata.version(name)


@contextmanager
def loaded() -> Iterator[None]:
    """Load one core half of the time with another program."""
    with subprocess.Popen([sys.executable, "-c", LOAD]) as load:
        try:
            yield
        finally:
            load.kill()


def dlprof(folder: Path, names: list[str], spin: str, given: Namespace) -> Found:
    """``dlprof gate SCENARIO --base-python A --head-python B``."""
    told = folder / "told.json"
    told.unlink(missing_ok=True)
    head = folder / "head-python"
    head.write_text(
        f"#!/bin/sh\nexport {VARIABLE}='{spin}'\nexec {sys.executable} \"$@\"\n", encoding="utf-8"
    )
    head.chmod(0o755)
    command = [sys.executable, "-m", "dlprof", "gate", str(folder / SUITE), "--json", str(told)]
    command += ["--base-python", sys.executable, "--head-python", str(head)]
    done = execute([*command, *(["--budget", given.budget] if given.budget else [])], "")
    if not told.exists():
        raise Broken(f"exit code {done.returncode}:\n{done.stdout}{done.stderr}")
    content = json.loads(told.read_text(encoding="utf-8"))
    times = {name_of(one["case"]): one["times"][0] for one in content["cases"] if one["times"]}
    words = {name: time["word"] for name, time in times.items()}
    known = ("SAME", "SLOWER", "FASTER", "WIDE")
    return {
        "slower": [name for name, word in words.items() if word == "SLOWER"],
        "wide": {name: times[name]["bound"] for name, word in words.items() if word == "WIDE"},
        "unsure": sum(words.get(one) not in known for one in names),
        "words": words,
        "base_ns": {name: time["base_ns"] for name, time in times.items()},
        "ratios": {name: time["ratio"] for name, time in times.items()},
        "answers": content["answers"],
        "exit_code": done.returncode,
    }


def pytest_benchmark(folder: Path, names: list[str], spin: str, given: Namespace) -> Found:  # noqa: ARG001
    """``pytest --benchmark-compare --benchmark-compare-fail=median:5%``."""
    file, kept = folder / "test_suite.py", tempfile.mkdtemp(dir=folder)
    conversions = repr(str(folder / "conversions.json"))
    file.write_text(BENCHMARK.replace("CONVERSIONS", conversions), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", str(file), "-q", "-p", "no:cacheprovider"]
    command += ["-c", os.devnull, f"--rootdir={folder}", f"--benchmark-storage={kept}"]
    execute([*command, "--benchmark-save=base"], "")
    fail = ["--benchmark-compare=0001", "--benchmark-compare-fail=median:5%"]
    done = execute([*command, "--benchmark-save=head", *fail], spin)
    base, head = (
        {
            one["param"]: one["stats"]["median"]
            for one in json.loads(next(Path(kept).glob(f"*/*_{side}.json")).read_text())[
                "benchmarks"
            ]
        }
        for side in SIDES
    )
    slower = [name for name in names if head[name] > FLOOR * base[name]]
    return {"slower": slower, "unsure": 0, "exit_code": done.returncode}


def pyperf(folder: Path, names: list[str], spin: str, given: Namespace) -> Found:
    """``pyperf compare_to --min-speed 5``: significant and at least 5 %."""
    files = [folder / f"pyperf-{side}.json" for side in SIDES]
    for file, variable in zip(files, ("", spin), strict=True):
        file.unlink(missing_ok=True)
        for one in json.loads((folder / "conversions.json").read_text(encoding="utf-8")):
            command = [sys.executable, "-m", "pyperf", "timeit", "-q", "--append", str(file)]
            command += ["--processes", str(given.processes), "--name", one["name"], "--copy-env"]
            whole([*command, "-s", f"exec({one['setup']!r}, globals())", one["code"]], variable)
    compare = [sys.executable, "-m", "pyperf", "compare_to", *map(str, files), "--min-speed", "5"]
    told = [line for line in whole(compare, "").stdout.splitlines() if "slower" in line]
    slower = [name for name in names if any(line.startswith(f"{name}:") for line in told)]
    return {"slower": slower, "unsure": 0, "exit_code": int(bool(slower))}


def asv(folder: Path, names: list[str], spin: str, given: Namespace) -> Found:  # noqa: ARG001
    """``asv compare --factor 1.05`` of two commits that hold nothing, in this interpreter."""
    place = Path(tempfile.mkdtemp(dir=folder))
    (place / "benchmarks").mkdir()
    conversions = repr(str(folder / "conversions.json"))
    (place / "benchmarks" / "__init__.py").touch()
    (place / "benchmarks" / "suite.py").write_text(ASV.replace("CONVERSIONS", conversions))
    settings = {"version": 1, "project": "suite", "project_url": "", "repo": ".", "branches": ["x"]}
    settings |= {"environment_type": "virtualenv", "pythons": ["same"]}
    (place / "asv.conf.json").write_text(json.dumps(settings))
    git = ["git", "-C", str(place), "-c", "user.name=gate", "-c", "user.email=gate@localhost"]
    execute(["git", "init", "-q", "-b", "x", str(place)], "")
    home = {"HOME": str(place)}
    command = [sys.executable, "-m", "asv"]
    where = ["--config", str(place / "asv.conf.json")]
    execute([*command, "machine", "--yes", *where], "", home)
    commits = []
    for side, variable in zip(SIDES, ("", spin), strict=True):
        execute([*git, "commit", "-q", "--allow-empty", "-m", side], "")
        commits.append(execute([*git, "rev-parse", "HEAD"], "").stdout.strip())
        kept = ["--python=same", "--set-commit-hash", commits[-1]]
        whole([*command, "run", *kept, *where], variable, home)
    told = execute([*command, "compare", "--factor", "1.05", *where, *commits], "", home).stdout
    worse = [line for line in told.splitlines() if line.lstrip("| ").startswith("+")]
    slower = [name for name in names if any(f"'{name}'" in line for line in worse)]
    known = sum(any(f"'{name}'" in line for line in told.splitlines()) for name in names)
    return {"slower": slower, "unsure": len(names) - known, "exit_code": int(bool(slower))}


def bootstrap(folder: Path, names: list[str], spin: str, given: Namespace) -> Found:  # noqa: ARG001
    """Fifty samples of either side, and the interval of the ratio of their medians."""
    base, head = timed(folder, spin, 50)
    chance = np.random.default_rng(0)

    def medians(samples: list[float]) -> np.ndarray:
        return np.median(chance.choice(samples, (RESAMPLES, len(samples))), axis=1)

    slower = [
        name
        for name in names
        if np.percentile(medians(head[name]) / medians(base[name]), 2.5) > BOOTSTRAP_FLOOR
    ]
    return {"slower": slower, "unsure": 0, "exit_code": int(bool(slower))}


def median_of_five(folder: Path, names: list[str], spin: str, given: Namespace) -> Found:  # noqa: ARG001
    """The gate people write by hand: five samples of a loop, the median, and 5 %."""
    base, head = timed(folder, spin, 5)
    medians = {name: [statistics.median(side[name]) for side in (base, head)] for name in names}
    slower = [name for name, (before, after) in medians.items() if after > FLOOR * before]
    return {"slower": slower, "unsure": 0, "exit_code": int(bool(slower))}


def timed(folder: Path, spin: str, samples: int) -> list[dict[str, list[float]]]:
    """Take ``samples`` of each conversion on either side, in one process each."""
    command = [sys.executable, "-c", TIMED, str(folder / "conversions.json"), str(samples)]
    return [json.loads(execute(command, one).stdout) for one in ("", spin)]


TOOLS = {
    "dlprof": dlprof,
    "pytest-benchmark": pytest_benchmark,
    "pyperf": pyperf,
    "asv": asv,
    "bootstrap": bootstrap,
    "median of 5": median_of_five,
}
MODULES = {"pytest-benchmark": "pytest_benchmark", "pyperf": "pyperf", "asv": "asv"}
"""Modules of the tools that must be installed."""


def execute(
    command: list[str], spin: str, more: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a tool with the planted ``spin`` and ``more`` variables."""
    variables = {**os.environ, VARIABLE: spin, "TF_CPP_MIN_LOG_LEVEL": "2", **(more or {})}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    if done.returncode == 2 or done.returncode < 0:
        raise Broken(f"{' '.join(command)}:\n{done.stdout}{done.stderr}")
    return done


def whole(
    command: list[str], spin: str, more: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command and raise if it fails: a failed tool gave no alarm."""
    done = execute(command, spin, more)
    if done.returncode:
        raise Broken(f"{' '.join(command)}:\n{done.stdout}{done.stderr}")
    return done


def lines(file: Path) -> list[dict[str, Any]]:
    """Read the lines of the file, without a torn last one."""
    found = []
    for text in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        with suppress(ValueError):
            found.append(json.loads(text))
    return found


def summary(given: Namespace) -> outcome.Outcome:
    gates = lines(given.file)
    ours = [line for line in gates if line["tool"] == "dlprof"]
    return outcome.Outcome(
        title="Gates: dlprof against what people use",
        columns=(
            *("tool", "equal: exit 0", "loaded: exit 0", "false alarms", "elsewhere"),
            *("+5 % view", "+10 % view", "+10 % copy", "+2 % not faster", "s", "most s"),
        ),
        rows=[row(tool, gates) for tool in TOOLS if any(one["tool"] == tool for one in gates)],
        caption=(
            f"Gates of {works(gates)} conversions; in brackets the 95 % interval (Clopper and "
            "Pearson). false alarms:\ngates of equal code that fail. elsewhere: gates of slower "
            "code that call slower what is not.\nTimes are of whole gates."
        ),
        targets=list(targets(ours)),
    )


def works(gates: list[dict[str, Any]]) -> str:
    """Return the number of conversions of these gates. Older lines omit it: they have sixteen."""
    return " or ".join(map(str, sorted({line.get("conversions", 16) for line in gates})))


def row(tool: str, gates: list[dict[str, Any]]) -> tuple[str, ...]:
    ours = [line for line in gates if line["tool"] == tool]
    seconds = [line["wall_s"] for line in ours]
    found = (
        *(green(ours, kind) for kind in (EQUAL, LOADED)),
        alarms(ours),
        elsewhere(ours),
        *(caught(ours, SLOWER, percent) for percent in PERCENTS),
        caught(ours, COPY, COPIED_PERCENT),
        small_is_true(ours),
    )
    return (tool, *map(share, found), f"{statistics.median(seconds):.0f}", f"{max(seconds):.0f}")


def green(gates: list[dict[str, Any]], kind: str) -> list[bool]:
    return [line["exit_code"] == 0 for line in gates if line["kind"] == kind]


def small_is_true(gates: list[dict[str, Any]]) -> list[bool]:
    """Whether a case slower by 2 % is SAME, or WIDE with a true bound."""
    least = 1 + SMALL_PERCENT / 100
    return [
        line["words"][name] == "SAME" or line["wide"].get(name, 0.0) >= least
        for line in gates
        if line["kind"] == SMALL and "words" in line
        for name in line["planted"]
    ]


def alarms(gates: list[dict[str, Any]]) -> list[bool]:
    equal = (line for line in gates if line["kind"] in (EQUAL, LOADED))
    return [bool(line["slower"]) or line["exit_code"] == 1 for line in equal]


def elsewhere(gates: list[dict[str, Any]]) -> list[bool]:
    return [bool(set(line["slower"]) - set(line["planted"])) for line in gates if line["planted"]]


def caught(gates: list[dict[str, Any]], kind: str, percent: float) -> list[bool]:
    return [
        name in line["slower"] and line["exit_code"] == 1
        for line in gates
        if line["kind"] == kind
        for name, size in line["planted"].items()
        if size == percent
    ]


def share(held: list[bool]) -> str:
    if not held:
        return "-"
    interval = binomtest(sum(held), len(held)).proportion_ci(0.95)
    return f"{sum(held)} of {len(held)} ({100 * interval.low:.0f}-{100 * interval.high:.0f} %)"


def targets(ours: list[dict[str, Any]]) -> Iterator[outcome.Target]:
    """Yield promises about a number of gates, judged after that number or too many misses."""
    for promise, of, least, held in (
        ("equal code ends with 0", 30, 29, green(ours, EQUAL)),
        ("equal code beside a load ends with 0", 15, 13, green(ours, LOADED)),
        ("equal code never fails", 45, 45, [not one for one in alarms(ours)]),
        ("+5 % on a view fails, and is named", 30, 29, caught(ours, SLOWER, 5.0)),
        ("+10 % on a copy fails, and is named", 15, 13, caught(ours, COPY, COPIED_PERCENT)),
        ("+2 % is SAME, or WIDE with a true bound", 5, 5, small_is_true(ours)),
        ("no other case is called slower", 50, 50, [not one for one in elsewhere(ours)]),
    ):
        met = False if held.count(False) > of - least else True if len(held) >= of else None
        yield outcome.Target(f"{promise}: {least} of {of}", share(held), met)
    seconds = [line["wall_s"] for line in ours]
    if seconds:
        median_s = statistics.median(seconds)
        yield outcome.Target(
            f"a gate takes {MOST_S} s at most, in the median",
            f"{median_s:.0f} s",
            median_s <= MOST_S,
        )


if __name__ == "__main__":
    parser = outcome.options(__doc__)
    parser.add_argument("--file", type=Path, required=True, metavar="JSONL")
    parser.add_argument("--table", action="store_true", help="measure nothing")
    parser.add_argument(
        "--gates", type=int, help=f"of each kind and tool ({', '.join(map(str, KINDS.values()))})"
    )
    parser.add_argument("--tools", nargs="*", default=list(TOOLS), choices=list(TOOLS))
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--paths", nargs="*", default=["*"], metavar="GLOB", help="of gate.toml")
    parser.add_argument("--hours", type=float, default=math.inf, help="start no gate after this")
    parser.add_argument("--budget", default="", help="of dlprof's gate (the gate's own default)")
    parser.add_argument("--processes", type=int, default=10, help="of pyperf (10)")
    arguments = parser.parse_args()
    if not arguments.table:
        modules = [MODULES[tool] for tool in arguments.tools if tool in MODULES]
        if missing := [module for module in modules if find_spec(module) is None]:
            parser.error(f"not installed: {', '.join(missing)}")
        run(arguments)
    sys.exit(outcome.report(summary, arguments))
