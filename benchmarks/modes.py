"""Where do copies of equal code have several times? One thing is changed, and nothing else.

- allocator: the system's, or the steady one of a gate;
- huge-pages: without and with glibc.malloc.hugetlb=1;
- order: blocks of 1 to 8 MiB are allocated before the arrays, and every second is freed;
- page-cache: the files of the installed packages are in memory or read from the disk;
- core: all threads on the first processor, or on the last;
- threads: the pools of OpenMP have all processors, or one.

Both ways take turns, a few processes each, so that they meet the same machine. The spread is the
largest over the smallest median of a process. p is the chance that equal processes are so far apart
(Mann and Whitney). By chance, one of twelve copies has a p below 0.08 on average.

    python benchmarks/modes.py order --json order.json
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import outcome
from scipy.stats import mannwhitneyu

from dlprof.runner.options import STEADY_TUNABLES, TUNABLES

HOLES = "held = [bytearray(n << 20) for n in (1, 2, 4, 8, 4, 2, 1)]; del held[::2]"
PROCESSES, AT_ONCE = 12, 3
"""So many processes of each way, and so many before the other way has its turn."""
SCENARIO = """
title = "Copies"
question = "How far apart are processes?"
pairs = [
    "jax->numpy", "jax->torch", "numpy->jax", "numpy->tf", "numpy->torch", "tf->jax", "tf->numpy",
    "tf->torch", "torch->jax", "torch->numpy",
]
paths = [
    "jnp.array(x)", "numpy.array(x)", "numpy.from_dlpack(x, copy=True)", "tf.constant(x)",
    "torch.tensor(x)",
]
devices = ["cpu"]
shapes = ["1024x1024"]
together = true
diagnose = false
"""


@dataclass(frozen=True)
class Way:
    """``words`` and ``variables`` are those of dlprof; ``core`` is the place of a processor.

    If it is ``cold``, each process reads the files of its packages from the disk.
    """

    name: str
    words: tuple[str, ...] = ("--allocator", "steady")
    variables: Mapping[str, str] = field(default_factory=dict)
    core: int | None = None
    cold: bool = False


STEADILY = Way("steady")
EXPERIMENTS = {
    "allocator": (Way("system", ("--allocator", "system")), STEADILY),
    "huge-pages": (
        STEADILY,
        Way("huge pages", variables={TUNABLES: f"{STEADY_TUNABLES}:glibc.malloc.hugetlb=1"}),
    ),
    "order": (STEADILY, Way("holes", (*STEADILY.words, "--setup", HOLES))),
    "page-cache": (Way("cached"), Way("cold", cold=True)),
    "core": (Way("first", core=0), Way("last", core=-1)),
    "threads": (Way("all"), Way("one", variables={"OMP_NUM_THREADS": "1"})),
}


def measure(given: argparse.Namespace) -> outcome.Outcome:
    ways = EXPERIMENTS[given.what]
    # Only the first process after the files were dropped reads them.
    at_once = 1 if any(way.cold for way in ways) else AT_ONCE
    turns = 1 if given.short else PROCESSES // at_once
    found: dict[str, dict[str, list[dict[str, Any]]]] = {}
    seconds: dict[str, list[float]] = {way.name: [] for way in ways}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "copies.toml"
        file.write_text(SCENARIO, encoding="utf-8")
        for turn in range(turns):
            for way in ways:
                outcome.tell(f"{turn + 1} of {turns}: {way.name}")
                how = ("--rounds", str(at_once), "--seed", str(turn), *way.words)
                with applied(way):
                    session, took_s = outcome.session("run", str(file), *how)
                seconds[way.name].append(took_s / at_once)
                for name, processes in copies(session):
                    found.setdefault(name, {}).setdefault(way.name, []).extend(processes)
    names = [f"{way.name}: {what}" for way in ways for what in ("µs", "spread", "page faults")]
    took = ", ".join(f"{name} {statistics.median(each):.1f}" for name, each in seconds.items())
    return outcome.Outcome(
        title=f"Copies of 4 MiB in fresh processes: {given.what}",
        columns=("copy", *names, "p"),
        rows=[row(name, *(of[way.name] for way in ways)) for name, of in found.items()],
        caption=(
            f"{turns * at_once} processes each. µs: the median of the processes. spread: the "
            "largest over the smallest.\npage faults: of a call, in the process with the fewest "
            f"and in the one with the most. Seconds for a process:\n{took}."
        ),
        targets=[],
        shortened=given.short,
        details={"processes": found, "seconds": seconds},
    )


@contextmanager
def applied(way: Way) -> Iterator[None]:
    """Inside, processes that are started run this way."""
    before, allowed = dict(os.environ), os.sched_getaffinity(0)
    os.environ.update(way.variables)
    if way.core is not None:
        os.sched_setaffinity(0, {sorted(allowed)[way.core]})
    if way.cold:
        drop_files()
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)
        for name in way.variables:
            os.environ.pop(name)
        os.environ.update(before)


def drop_files() -> None:
    """Take the files of the installed packages out of the page cache, where no process maps them.

    posix_fadvise(2) needs no privilege.
    """
    for folder in {path for path in sys.path if path.endswith("-packages")}:
        for path in filter(Path.is_file, Path(folder).rglob("*")):
            file = os.open(path, os.O_RDONLY)
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(file)


def copies(session: dict[str, Any]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The processes of each copy that has a time, by its name."""
    for result in session["results"]:
        case = result["case"]
        times = [result[which] or {} for which in ("ready_time", "host_time")]
        # One that has nothing to wait for has processes of its host time only.
        processes = next(filter(None, (time.get("processes") for time in times)), [])
        if processes:
            yield f"`{case['code']}` of {case['producer']} → {case['consumer']}", processes


def row(name: str, first: list[dict[str, Any]], second: list[dict[str, Any]]) -> tuple[str, ...]:
    p = mannwhitneyu(medians(first), medians(second)).pvalue
    return (name, *texts(first), *texts(second), f"{p:.3f}")


def medians(processes: list[dict[str, Any]]) -> list[float]:
    return [statistics.median(one["samples_ns"]) for one in processes]


def texts(processes: list[dict[str, Any]]) -> tuple[str, str, str]:
    times = medians(processes)
    faults = sorted(one["page_faults_per_call"] or 0.0 for one in processes)
    return (
        f"{statistics.median(times) / 1e3:.0f}",
        f"{max(times) / min(times):.2f}",
        f"{faults[0]:.0f} to {faults[-1]:.0f}",
    )


if __name__ == "__main__":
    parser = outcome.options(__doc__)
    parser.add_argument("what", choices=list(EXPERIMENTS))
    sys.exit(outcome.report(measure, parser.parse_args()))
