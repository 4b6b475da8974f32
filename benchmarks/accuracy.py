"""Is the median host time that dlprof gives right, and does it come sooner?

Proves that, on at least 11 of 12 CPU paths between 0.2 us and 30 ms, dlprof's median host time is
within 3 % of what pyperf's rigorous mode finds (40 processes of three values), while dlprof takes
at most a fifth of pyperf's time. Both are measured in turns in one run, so that a drift of the
machine meets both alike; the wall time of each counts from the start of its first process to the
end of its last one, imports included.

It needs a quiet machine: a value of pyperf is a mean over 100 ms, which holds every time that
another program takes the processor, while most of dlprof's samples of 1 ms hold none.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import Any

import outcome
from duel import Duel, Way, dlprof_round, duel
from outcome import duration_text
from rigorous import PROCESSES, Rigorous, spread

from dlprof.measuring.measuring import inspect_interpreter
from dlprof.session.journal import Journal

TURNS = 8
DEFAULT_ROUNDS = 3
WITHIN = 0.03
SMALL, MIDDLE, LARGE, HUGE = (16, 16), (256, 256), (4096, 4096), (8192, 4096)

# Left out are copies of 100 KiB to a few MiB, and larger ones into pages of 4 KiB: their time
# depends on what else the process has allocated and on where its pages are, so that a process may
# take twice as long as the next under either program. NumPy asks for huge pages.
WAYS = (
    Way("numpy", "numpy", "numpy.array(x)", SMALL),
    Way("numpy", "torch", "torch.from_numpy(x)", LARGE),
    Way("torch", "numpy", "x.numpy()", LARGE),
    Way("numpy", "torch", "torch.from_dlpack(x)", LARGE),
    Way("numpy", "onnxruntime", "onnxruntime.OrtValue.ortvalue_from_numpy(x)", LARGE),
    Way("torch", "numpy", "numpy.from_dlpack(x)", LARGE),
    Way("jax", "numpy", "numpy.from_dlpack(x)", MIDDLE),
    Way("torch", "tensorflow", "tf.experimental.dlpack.from_dlpack(x.__dlpack__())", LARGE),
    Way("numpy", "tensorflow", "tf.constant(x)", SMALL),
    Way("numpy", "jax", "jax.dlpack.from_dlpack(x)", MIDDLE, "aligned"),
    Way("tensorflow", "numpy", "x.numpy()", LARGE),
    Way("torch", "numpy", "numpy.array(x)", HUGE),
)


def measure(given: Namespace) -> outcome.Outcome:
    catalog = inspect_interpreter(sys.executable)
    duels = [duel(catalog, way) for way in WAYS if given.path in way.code]
    empty = Rigorous("", "pass")
    processes = given.processes or (4 if given.short else PROCESSES)
    turns = given.turns or (2 if given.short else TURNS)
    journal, dlprof_s = Journal(), 0.0
    for turn in range(turns):
        outcome.tell(f"turn {turn + 1} of {turns}")
        dlprof_s += dlprof_round(duels, journal, turn, last=turn == turns - 1)
        for rival in (empty, *(one.pyperf for one in duels)):
            rival.batch(len(range(turn, processes, turns)))
    return _outcome(duels, empty.median_ns(), dlprof_s)


def _outcome(duels: list[Duel], empty_ns: float, dlprof_s: float) -> outcome.Outcome:
    rounds, processes = len(duels[0].answers), len(duels[0].pyperf.values_ns)
    pyperf_s = sum(one.pyperf.seconds for one in duels)
    close = _close(duels, empty_ns, range(rounds))
    needed = len(duels) - len(duels) // 12
    few = sorted({round(place * (rounds - 1) / (DEFAULT_ROUNDS - 1)) for place in range(3)})
    return outcome.Outcome(
        title="Accuracy: dlprof against pyperf's rigorous mode",
        columns=("path", "shape", "dlprof", "pyperf", "difference", "+/- dlprof", "+/- pyperf"),
        rows=[_row(one, empty_ns) for one in duels],
        caption=(
            f"Medians. dlprof: {rounds} rounds, {dlprof_s:.0f} s. pyperf: {processes} processes of "
            f"3 values each, {pyperf_s:.0f} s.\npyperf leaves the cost of its loop in; a loop over "
            f"'pass' took it {empty_ns:.2f} ns, which is taken off here.\n+/- is half the distance "
            "of the quartiles of the processes, a difference between processes that is not noise.\n"
            f"With {len(few)} of the rounds alone, {_close(duels, empty_ns, few)} of {len(duels)} "
            f"paths are within {WITHIN:.0%}."
        ),
        targets=[
            outcome.Target(
                f"median host time within {WITHIN:.0%} of pyperf's on {needed} of {len(duels)}",
                f"{close} of {len(duels)}",
                close >= needed,
            ),
            outcome.Target(
                "dlprof takes at most a fifth of pyperf's time",
                f"{dlprof_s / pyperf_s:.1%}",
                5 * dlprof_s <= pyperf_s,
            ),
        ],
        shortened=processes < PROCESSES or len(duels) < len(WAYS),
        details={"empty_ns": empty_ns, "paths": [_details(one) for one in duels]},
    )


def _close(duels: list[Duel], empty_ns: float, rounds: Any) -> int:
    """How many paths are within 3 % of pyperf."""
    return sum(abs(_ratio(one, empty_ns, rounds) - 1) <= WITHIN for one in duels)


def _ratio(one: Duel, empty_ns: float, rounds: Any = None) -> float:
    return one.host_time(rounds).median_ns / (one.pyperf.median_ns() - empty_ns)


def _row(one: Duel, empty_ns: float) -> tuple[str, ...]:
    return (
        f"{one.case.path.code} of {one.case.producer.name}",
        "x".join(map(str, one.case.shape)),
        duration_text(one.host_time().median_ns),
        duration_text(one.pyperf.median_ns() - empty_ns),
        f"{_ratio(one, empty_ns) - 1:+.1%}",
        f"{spread(one.dlprof_medians_ns()):.1%}",
        f"{spread(one.pyperf_medians_ns()):.1%}",
    )


def _details(one: Duel) -> dict[str, Any]:
    return {
        "code": one.case.path.code,
        "pyperf_ns": one.pyperf.values_ns,
        "pyperf_loops": one.pyperf.loops,
        "pyperf_s": one.pyperf.seconds,
        "dlprof": one.host_time().model_dump(),
    }


if __name__ == "__main__":
    parser = outcome.options(__doc__)
    parser.add_argument("--turns", type=int, help=f"rounds of dlprof; default: {TURNS}")
    parser.add_argument("--processes", type=int, help="of pyperf; default: 40")
    parser.add_argument("--path", default="", help="only paths whose code contains this")
    sys.exit(outcome.report(measure, parser.parse_args()))
