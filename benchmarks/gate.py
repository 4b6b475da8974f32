"""How often do gates cry wolf, and what do they catch? Sixteen conversions, four tools, one run.

Equal code against equal code, and code in which one of eleven views is slower by a known share, by
the same spin for all tools: dlprof gate, pytest-benchmark (--benchmark-compare-fail=min:5%), pyperf
compare_to (significant and at least 5 %), and a median of five samples with 5 %.

A full run takes many hours. Every gate is a line in --file as soon as it is done, and a later call
goes on where an earlier one stopped; --hours says when to stop. --table prints what is there.

    python benchmarks/gate.py --file gates.jsonl --hours 2
    python benchmarks/gate.py --file gates.jsonl --table

The turns of the spin come from times that are measured once, by the first call, and kept in the
file: the machine must be quiet then. The true slowdown of each gate is in the file, too.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
import tempfile
import time
import timeit
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import outcome
from gate_suite import COPIES, SUITE, VIEWS, Conversion
from gate_tools import TOOLS, Options, Planted, samples_ns

FALSE_ALARMS = 0.01
CAUGHT = {5.0: 0.95, 10.0: 1.0}
MOST_S = 300.0
MOST_EQUAL_S = 150.0
TURNS = 10_000


@dataclass(frozen=True)
class Gate:
    """One gate to be run: which tool, how much is planted in percent, where, and its number."""

    tool: str
    percent: float
    number: int
    conversion: Conversion | None = None

    @property
    def key(self) -> tuple[str, float, int, bool]:
        return self.tool, self.percent, self.number, self.of_copy

    @property
    def of_copy(self) -> bool:
        return self.conversion is not None and self.conversion.copies


def main() -> int:
    given = arguments()
    if not given.table:
        run(given)
    return outcome.report(summary, given)


def arguments() -> argparse.Namespace:
    parser = outcome.options(__doc__)
    parser.add_argument("--file", type=Path, required=True, metavar="JSONL")
    parser.add_argument("--table", action="store_true", help="measure nothing")
    parser.add_argument("--equal", type=int, default=100, help="gates of equal code (100)")
    parser.add_argument("--slow", type=int, default=100, help="gates of each slowdown (100)")
    parser.add_argument("--copies", type=int, default=0, help="the same with slower copies (0)")
    parser.add_argument("--percent", type=float, nargs="*", default=[5.0, 10.0])
    parser.add_argument("--tools", nargs="*", default=list(TOOLS), choices=list(TOOLS))
    parser.add_argument("--hours", type=float, default=math.inf, help="start no gate after this")
    parser.add_argument("--budget", type=float, default=300.0, help="of dlprof's gate, seconds")
    parser.add_argument("--processes", type=int, default=2, help="of pyperf (2)")
    return parser.parse_args()


def run(given: argparse.Namespace) -> None:
    """Run what is not in the file yet, all kinds and tools in turn."""
    calibration = calibrated(given.file)
    done = {tuple(line["key"]) for line in lines(given.file) if "key" in line}
    options = Options(given.budget, given.processes)
    until = time.monotonic() + 3600 * given.hours
    for gate in wanted(given):
        if time.monotonic() > until:
            return
        if gate.key not in done:
            append(given.file, played(gate, calibration, options))


def wanted(given: argparse.Namespace) -> Iterator[Gate]:
    """All gates; whatever is interrupted has about as many of each."""
    for number in range(max(given.equal, given.slow, given.copies)):
        for tool in given.tools:
            if number < given.equal:
                yield Gate(tool, 0.0, number)
            for percent in given.percent:
                if number < given.slow:
                    yield Gate(tool, percent, number, VIEWS[number % len(VIEWS)])
                if number < given.copies:
                    yield Gate(tool, percent, number, COPIES[number % len(COPIES)])


def played(gate: Gate, calibration: dict[str, Any], options: Options) -> dict[str, Any]:
    """One line for the file."""
    planted, true = plant(gate, calibration)
    with tempfile.TemporaryDirectory(prefix="dlprof-gate-") as folder:
        said = TOOLS[gate.tool](planted, Path(folder), options)
    outcome.tell(
        f"{gate.tool} {gate.percent:g} % number {gate.number}: {len(said.slower)} slower, "
        f"{said.unsure} unsure, {said.wall_s:.0f} s, load {os.getloadavg()[0]:.1f}"
    )
    return {
        "key": gate.key,
        "target": None if gate.conversion is None else gate.conversion.name,
        "true_percent": true,
        "turns": planted.turns,
        "load": os.getloadavg()[0],
        "options": asdict(options),
        **asdict(said),
    }


def plant(gate: Gate, calibration: dict[str, Any]) -> tuple[Planted, float]:
    """The least number of turns that is slow enough, and the slowdown in percent."""
    if gate.conversion is None:
        return Planted(), 0.0
    taken_ns = calibration["times_ns"][gate.conversion.name]
    turns = math.ceil(gate.percent / 100 * taken_ns / calibration["turn_ns"])
    return Planted(gate.conversion, turns), 100 * turns * calibration["turn_ns"] / taken_ns


def calibrated(file: Path) -> dict[str, Any]:
    """What a turn of the spin and each conversion takes; measured once for a file."""
    for line in lines(file):
        if "turn_ns" in line:
            return line
    loop = f"for _ in range({TURNS}): pass"
    found = {
        "turn_ns": min(timeit.repeat(loop, repeat=20, number=10)) / 10 / TURNS * 1e9,
        "times_ns": {one.name: min(samples_ns(one, 20)) for one in SUITE},
    }
    append(file, found)
    return found


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


def summary(given: argparse.Namespace) -> outcome.Outcome:
    """The table and the targets, from the file alone."""
    gates = [line for line in lines(given.file) if "key" in line]
    tools = [tool for tool in TOOLS if any(line["key"][0] == tool for line in gates)]
    percents = sorted({line["key"][1] for line in gates} - {0.0})
    columns = ["tool", "false alarms", "unsure"]
    columns += [f"+{percent:g} % caught" for percent in percents]
    columns += ["copies caught", "s, equal", "s, slower", "s, most"]
    equal = sum(line["key"][1] == 0 for line in gates if line["key"][0] == "dlprof")
    return outcome.Outcome(
        title="Gates: dlprof against what people use",
        columns=tuple(columns),
        rows=[
            row(tool, [line for line in gates if line["key"][0] == tool], percents)
            for tool in tools
        ],
        caption=(
            "Gates of sixteen conversions. false alarms: gates of equal code that call anything "
            "slower.\nunsure: gates of equal code in which a case could not be told. caught: the "
            "view that is slower is called so.\nTimes are medians of whole gates, both sides."
        ),
        targets=list(targets(of_tool(gates, "dlprof"))),
        shortened=equal < 100,
        details={"gates": len(gates)},
    )


def of_tool(gates: Sequence[dict[str, Any]], tool: str) -> list[dict[str, Any]]:
    return [line for line in gates if line["key"][0] == tool]


def row(tool: str, gates: Sequence[dict[str, Any]], percents: Sequence[float]) -> tuple[str, ...]:
    equal = kind(gates, 0.0)
    slow = [line for line in gates if line["key"][1] > 0]
    return (
        tool,
        share(equal, lambda line: bool(line["slower"])),
        share(equal, lambda line: line["unsure"] > 0),
        *(share(kind(gates, percent), caught) for percent in percents),
        share([line for line in slow if line["key"][3]], caught),
        middle(equal),
        middle(slow),
        f"{max((line['wall_s'] for line in gates), default=0):.0f}",
    )


def kind(gates: Sequence[dict[str, Any]], percent: float) -> list[dict[str, Any]]:
    """Gates of one slowdown of views, or of equal code."""
    return [line for line in gates if line["key"][1] == percent and not line["key"][3]]


def caught(line: dict[str, Any]) -> bool:
    return line["target"] in line["slower"]


def share(gates: Sequence[dict[str, Any]], held: Any) -> str:
    return f"{sum(map(held, gates))} of {len(gates)}" if gates else "-"


def middle(gates: Sequence[dict[str, Any]]) -> str:
    return f"{statistics.median(line['wall_s'] for line in gates):.0f}" if gates else "-"


def targets(gates: Sequence[dict[str, Any]]) -> Iterator[outcome.Target]:
    equal = kind(gates, 0.0)
    if not gates:
        return
    alarms = sum(bool(line["slower"]) for line in equal)
    yield outcome.Target(
        "at most 1 false alarm in 100 gates",
        f"{alarms} of {len(equal)}",
        len(equal) > 0 and alarms <= FALSE_ALARMS * max(len(equal), 100),
    )
    for percent, least in CAUGHT.items():
        of = kind(gates, percent)
        if of:
            found = sum(map(caught, of))
            promise = f"+{percent:g} % on a view caught in {100 * least:g} of 100"
            yield outcome.Target(promise, f"{found} of {len(of)}", found >= least * len(of))
    most = max(line["wall_s"] for line in gates)
    yield outcome.Target("at most 5 min per gate", f"{most:.0f} s", most <= MOST_S)
    if equal:
        usual = statistics.median(line["wall_s"] for line in equal)
        promise = "half of it when nothing has changed"
        yield outcome.Target(promise, f"{usual:.0f} s", usual <= MOST_EQUAL_S)


if __name__ == "__main__":
    sys.exit(main())
