"""How often do gates cry wolf, and what do they catch? Sixteen conversions, four tools, one run.

Equal code against equal code; and code in which two of eleven views are slower, one by 5 % and one
by 10 %, by the same spin for all tools: dlprof gate, pytest-benchmark
(--benchmark-compare-fail=min:5%), pyperf compare_to (significant and at least 5 %), and a median of
five samples with 5 %. The fourteen other conversions of a slower suite are equal code, too. What
``dlprof calibrate`` says it would catch of the copies is planted as well, one copy in a gate.

A full run takes many hours. Every gate is a line in --file as soon as it is done, and a later call
goes on where an earlier one stopped; --hours says when to stop. --table prints what is there.

    python benchmarks/gate.py --file gates.jsonl --hours 2
    python benchmarks/gate.py --file gates.jsonl --table

Two calls at once, with different --kinds, disturb each other: the load stands in each line.

With --environments and --head-python, the Python of a second environment with the same packages,
dlprof compares the one that runs this with that: equal code that was installed twice.

What a turn of the spin adds to each conversion is measured once for every start of the machine and
kept in the file (gate_shares.py), as is what dlprof calibrate says: the processor may be another
one later. The true slowdown of each gate is in the file, too. It is of what dlprof measures:
another tool with calls of its own around a conversion meets as many nanoseconds, and fewer percent.
A copy that is slower by the spin is so by as many nanoseconds in each of its states.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from importlib import metadata
from itertools import product
from pathlib import Path
from typing import Any

import outcome
from gate_shares import turn_shares
from gate_suite import COPIES, ROOT, VIEWS, Conversion
from gate_summary import CAUGHT, COPIED, EQUAL, FORETOLD, INSTALLED, KINDS, SLOWER, summary
from gate_tools import TOOLS, Options, Planted, foretold

from dlprof.gate.measure import HALF

TURN_SHARES = "turn_shares"
BOOT = Path("/proc/sys/kernel/random/boot_id")
DISTRIBUTIONS = (
    "jax",
    "numpy",
    "onnxruntime",
    "pyperf",
    "pytest-benchmark",
    "tensorflow-cpu",
    "torch",
)


@dataclass(frozen=True)
class Gate:
    """One gate to be run; ``percents`` is what is slower by how much."""

    tool: str
    kind: str
    number: int
    percents: Mapping[Conversion, float] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str, int]:
        return self.tool, self.kind, self.number


def main() -> int:
    given = arguments()
    # Where a machine sets this, each process would compile dlprof anew.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if not given.table:
        run(given)
    return outcome.report(summary, given)


def arguments() -> argparse.Namespace:
    parser = outcome.options(__doc__)
    parser.add_argument("--file", type=Path, required=True, metavar="JSONL")
    parser.add_argument("--table", action="store_true", help="measure nothing")
    parser.add_argument("--equal", type=int, default=100, help="gates of equal code (100)")
    parser.add_argument("--slower", type=int, default=100, help="gates with slower views (100)")
    parser.add_argument("--copies", type=int, default=5, help="gates with slower copies (5)")
    parser.add_argument("--foretold", type=int, default=20, help="gates of what was foretold (20)")
    parser.add_argument(
        "--environments", type=int, default=0, help="gates of two environments (none)"
    )
    parser.add_argument(
        "--head-python", default=sys.executable, metavar="PYTHON", help="of the second environment"
    )
    parser.add_argument(
        "--others", type=int, default=20, help="of each other tool, spread over all (20)"
    )
    parser.add_argument("--tools", nargs="*", default=list(TOOLS), choices=list(TOOLS))
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=KINDS)
    parser.add_argument("--hours", type=float, default=math.inf, help="start no gate after this")
    parser.add_argument("--budget", type=float, default=300.0, help="of dlprof's gate, seconds")
    parser.add_argument("--processes", type=int, default=2, help="of pyperf (2)")
    given = parser.parse_args()
    if given.environments and given.head_python == sys.executable:
        parser.error("--environments needs --head-python")
    return given


def run(given: argparse.Namespace) -> None:
    """Run what is not in the file yet, all kinds and tools in turn."""
    calibration = calibrated(given)
    options = Options(given.budget, given.processes)
    written = _written(options)
    gates = [line for line in lines(given.file) if "key" in line]
    if any(line["options"] != written for line in gates):
        sys.exit(f"{given.file} has gates with other options: give another file")
    done = {tuple(line["key"]) for line in gates}
    made_with = {"commit": commit(), "python": sys.version.split()[0], **versions()}
    until = time.monotonic() + 3600 * given.hours
    for gate in wanted(given, calibration):
        if time.monotonic() > until:
            return
        if gate.key not in done:
            line = played(gate, calibration, options, given.head_python)
            append(given.file, line | {"made_with": made_with})


def wanted(given: argparse.Namespace, calibration: dict[str, Any]) -> Iterator[Gate]:
    """All gates; whatever is interrupted has about as many of each."""
    most = {EQUAL: given.equal, SLOWER: given.slower, COPIED: given.copies}
    most[INSTALLED] = given.environments
    for number in range(max(*most.values(), given.foretold)):
        percents = planned(number)
        for kind, tool in product(given.kinds, given.tools):
            if kind == FORETOLD or (kind == INSTALLED and tool != "dlprof"):
                continue
            step = 1 if tool == "dlprof" else math.ceil(most[kind] / max(given.others, 1))
            if number < most[kind] and number % step == 0:
                yield Gate(tool, kind, number, percents[kind])
        if FORETOLD in given.kinds and "dlprof" in given.tools and number < given.foretold:
            yield from seen(number, calibration)


def planned(number: int) -> dict[str, dict[Conversion, float]]:
    """What is slower in the gates of this number, by kind: any two views meet in turn."""
    first, apart = number % len(VIEWS), 1 + number // len(VIEWS) % (len(VIEWS) - 1)
    second = (first + apart) % len(VIEWS)
    small, large = CAUGHT
    slower = {VIEWS[first]: small, VIEWS[second]: large}
    copies = {COPIES[number % len(COPIES)]: small, COPIES[(number + 1) % len(COPIES)]: large}
    return {EQUAL: {}, INSTALLED: {}, SLOWER: slower, COPIED: copies}


def seen(number: int, calibration: dict[str, Any]) -> Iterator[Gate]:
    """One copy, slower by what dlprof calibrate says of it; none where that is nothing."""
    copy = COPIES[number % len(COPIES)]
    size = calibration[FORETOLD].get(copy.name)
    if size:
        yield Gate("dlprof", FORETOLD, number, {copy: 100 * size})


def commit() -> str:
    """The version of dlprof that is measured, with a plus where files were changed since."""
    git = ["git", "-C", str(ROOT), "describe", "--always", "--dirty=+", "--exclude=*"]
    return subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip()


def versions() -> dict[str, str]:
    return {one.metadata["Name"]: one.version for one in map(metadata.distribution, DISTRIBUTIONS)}


def played(
    gate: Gate, calibration: dict[str, Any], options: Options, head_python: str = sys.executable
) -> dict[str, Any]:
    """One line for the file."""
    begun, load_before = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), os.getloadavg()[0]
    turns = {one: turns_of(one, gate.percents[one], calibration) for one in gate.percents}
    with tempfile.TemporaryDirectory(prefix="dlprof-gate-") as folder:
        used = replace(options, head=head_python) if gate.kind == INSTALLED else options
        said = TOOLS[gate.tool](Planted(turns), Path(folder), used)
    outcome.tell(
        f"{gate.tool} {gate.kind} number {gate.number}: {len(said.slower)} slower, "
        f"{said.unsure} unsure, {said.wall_s:.0f} s, load {os.getloadavg()[0]:.1f}"
    )
    planted = {
        one.name: {
            "percent": gate.percents[one],
            "turns": turns[one],
            "true_percent": 100 * turns[one] * calibration[TURN_SHARES][one.name],
        }
        for one in turns
    }
    return {
        "key": gate.key,
        "planted": planted,
        "begun": begun,
        "load_before": load_before,
        "load": os.getloadavg()[0],
        "options": _written(options),
        "half": HALF,
        **asdict(said),
    }


def _written(options: Options) -> dict[str, Any]:
    """What the gates of a file have in common: no paths of this machine."""
    return {"budget_s": options.budget_s, "processes": options.processes}


def turns_of(conversion: Conversion, percent: float, calibration: dict[str, Any]) -> int:
    """The least number of turns that is slow enough."""
    return math.ceil(percent / 100 / calibration[TURN_SHARES][conversion.name])


def calibrated(given: argparse.Namespace) -> dict[str, Any]:
    """The share of each conversion that a turn of the spin takes and, where it is planted, what
    dlprof calibrate says it sees of each; measured once for every start of the machine.
    """
    boot = BOOT.read_text(encoding="utf-8").strip()
    measured = {TURN_SHARES: turn_shares}
    if FORETOLD in given.kinds and "dlprof" in given.tools:
        measured[FORETOLD] = partial(foretold, given.budget)
    known: dict[str, Any] = {}
    for line in lines(given.file):
        if line.get("boot") == boot:
            known |= line
    for name in measured.keys() - known:
        found = {"boot": boot, name: measured[name]()}
        append(given.file, found)
        known |= found
    return known


def lines(file: Path) -> list[dict[str, Any]]:
    """What is in the file; a last line that was cut off is left out."""
    if not file.exists():
        return []
    found = []
    for text in file.read_text(encoding="utf-8").splitlines():
        try:
            found.append(json.loads(text))
        except ValueError:
            continue
    return found


def append(file: Path, line: dict[str, Any]) -> None:
    with file.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    sys.exit(main())
