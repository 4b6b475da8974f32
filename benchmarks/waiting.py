"""Check that dlprof finds each wait for JAX's queue, with its full length, and no other.

Proves that dlprof's slope is between 0.95 and 1.05 for every path into NumPy, torch, TensorFlow,
ONNX Runtime and JAX that waits for a job of 200 ms on the CPU; and that no other conversion is
called host-sync. The truth comes from a loop without dlprof: it queues a job of
200 ms and times the conversion behind it.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from argparse import Namespace
from typing import Any

import outcome

CONSUMERS = ("numpy", "torch", "tensorflow", "onnxruntime", "jax")
JOB_NS = 200_000_000
LEAST_SLOPE, MOST_SLOPE = 0.95, 1.05
WAITS, FREE = 0.8, 0.2
REPEATS = 3
JOB = """
import jax, jax.numpy as jnp
@jax.jit
def job(x, turns):
    busy = jax.lax.fori_loop(0, turns, lambda _, z: jnp.sin(z) + 0.5, jnp.arange(4096.0))
    return x + busy[0] * 0
"""


def measure(given: Namespace) -> outcome.Outcome:
    rows, waiting, wrong = [], [], []
    for consumer in CONSUMERS[:1] if given.short else CONSUMERS:
        outcome.tell(f"jax to {consumer}")
        words = ("run", "jax", consumer, "--device", "cpu", "--shape", "256x256", "--diagnose")
        found, _ = outcome.session(*words, "--rounds", "1")
        results = [one for one in found["results"] if one["status"] == "ok" and one["ordering"]]
        for result, share in zip(results, _shares(results), strict=True):
            verdict = result["ordering"]["verdict"]
            slope = (result["ordering"]["evidence"].get("host") or {}).get("slope")
            told = "" if slope is None else f"{slope:.3f}"
            rows.append((consumer, result["case"]["code"], f"{share:.3f}", told, verdict))
            if share >= WAITS:
                waiting.append(slope or 0.0)
            elif share <= FREE and verdict in ("host-sync", "device-sync"):
                wrong.append(result["case"]["code"])
    good = sum(LEAST_SLOPE <= slope <= MOST_SLOPE for slope in waiting)
    return outcome.Outcome(
        title="Waiting: conversions behind 200 ms of queued JAX work, on the CPU",
        columns=("into", "code", "by hand", "slope", "verdict"),
        rows=rows,
        caption=(
            "by hand: the call's time as a share of a queued job of 200 ms, median of "
            f"{REPEATS}.\nslope: dlprof's, of the host's time against the end of the very queue "
            "that the call was\nbehind: what part of it was waited for."
        ),
        targets=[
            outcome.Target(
                f"the slope of every conversion that waits is {LEAST_SLOPE} to {MOST_SLOPE}",
                f"{good} of {len(waiting)}",
                bool(waiting) and good == len(waiting),
            ),
            outcome.Target(
                "no conversion that does not wait is called host-sync", f"{len(wrong)}", not wrong
            ),
        ],
        shortened=given.short,
    )


def _shares(results: list[dict[str, Any]]) -> list[float]:
    """Return the share of a queued job that each conversion waits for, from a separate process."""
    cases = [
        {
            "code": result["case"]["code"],
            "setup": [*result["recipe"]["setup"], result["recipe"]["create"]["C"]],
        }
        for result in results
    ]
    done = subprocess.run(
        [sys.executable, __file__, "--by-hand"],
        input=json.dumps(cases),
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"},
    )
    found: list[float] = json.loads(done.stdout.splitlines()[-1])
    return found


def by_hand(case: dict[str, Any]) -> float:
    names: dict[str, Any] = {}
    for text in (*case["setup"], JOB):
        exec(text, names)
    job, source, code = names["job"], names["x"], compile(case["code"], "<code>", "eval")
    names["x"] = job(source, 1)
    eval(code, names)
    turns, took_ns = 1, 0
    while took_ns < JOB_NS:
        turns *= 2
        took_ns = _timed(lambda turns=turns: job(source, turns).block_until_ready())
    turns = round(turns * JOB_NS / took_ns)
    shares = []
    for _ in range(REPEATS):
        whole_ns = _timed(lambda: job(source, turns).block_until_ready())
        names["x"] = job(source, turns)
        shares.append(_timed(lambda: eval(code, names)) / whole_ns)
        names["x"].block_until_ready()
    return statistics.median(shares)


def _timed(call: Any) -> int:
    begun = time.perf_counter_ns()
    call()
    return time.perf_counter_ns() - begun


if __name__ == "__main__":
    parser = outcome.options(__doc__)
    parser.add_argument("--by-hand", action="store_true", help="time cases in JSON on stdin")
    given = parser.parse_args()
    if given.by_hand:
        print("\n" + json.dumps([by_hand(case) for case in json.load(sys.stdin)]))
        sys.exit(0)
    sys.exit(outcome.report(measure, given))
