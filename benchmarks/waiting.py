"""Is a wait for JAX's queue seen, with its full length, and is none seen where there is none?

Proves that dlprof's slope is between 0.95 and 1.05 for every way into NumPy, torch,
TensorFlow, ONNX Runtime and JAX that waits for a job of 200 ms on the CPU; and that no
conversion is called host-sync that does not. What waits is decided without dlprof: a job of
200 ms is queued by a loop of this program's own, and the conversion is timed behind it.
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

from dlprof.probes.base import ArraySpec, Export, Import, Probe
from dlprof.worker import loading
from dlprof.worker.instruments import ordering
from dlprof.worker.subject import Subject, compile_call, compose, namespace_for, prepare

CONSUMERS = ("numpy", "torch", "tensorflow", "onnxruntime", "jax")
JOB_NS = 200_000_000
LENGTHS_NS = (JOB_NS // 4, JOB_NS // 2, JOB_NS)
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
    for consumer in CONSUMERS:
        outcome.tell(f"jax to {consumer}")
        for found in _of(consumer):
            rows.append(_row(consumer, found))
            if found["share"] >= WAITS:
                waiting.append(found)
            elif found["share"] <= FREE and found["verdict"] in ("host-sync", "device-sync"):
                wrong.append(found)
    good = [one for one in waiting if LEAST_SLOPE <= (one["slope"] or 0) <= MOST_SLOPE]
    return outcome.Outcome(
        title="Waiting: conversions behind 200 ms of queued JAX work, on the CPU",
        columns=("into", "code", "by hand", "slope", "verdict"),
        rows=rows,
        caption=(
            "by hand: the call's time as a share of a queued job of 200 ms, median of "
            f"{REPEATS}.\nslope: dlprof's, at 50, 100 and 200 ms, of the host's time against the"
            " end of the very\nqueue that the call was behind: what part of it was waited for."
        ),
        targets=[
            outcome.Target(
                "the slope of every conversion that waits is 0.95 to 1.05",
                f"{len(good)} of {len(waiting)}",
                len(good) == len(waiting) > 0,
            ),
            outcome.Target(
                "no conversion that does not wait is called host-sync", f"{len(wrong)}", not wrong
            ),
        ],
        shortened=given.short,
    )


def _row(consumer: str, found: dict[str, Any]) -> tuple[str, ...]:
    slope = "" if found["slope"] is None else f"{found['slope']:.3f}"
    return consumer, found["code"], f"{found['share']:.3f}", slope, found["verdict"]


def _of(consumer: str) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, __file__, "--one", consumer],
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"},
    )
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"')]


def one(consumer: str) -> None:
    """Print what was found of every way into ``consumer``, from the first way out that works."""
    probes = {probe.name: probe for probe in loading.load("builtin")}
    jax, taker = probes["jax"], probes[consumer]
    for import_ in taker.imports:
        for export in jax.exports:
            subject = _subject(jax, taker, export, import_)
            if subject is not None:
                print(json.dumps(_found(subject)), flush=True)
                break


def _subject(jax: Probe, taker: Probe, export: Export, import_: Import) -> Subject | None:
    ways = "cpu" in export.devices and "cpu" in import_.devices
    if export.protocol not in import_.protocols or not ways or compose(export, import_) == "x":
        return None
    try:
        namespace = namespace_for(jax, taker, import_)
        spec = ArraySpec((256, 256), "float32")
        subject = prepare(jax, taker, export, import_, spec, namespace)
        subject.convert()
    except Exception:  # noqa: BLE001 - any framework, any refusal: another way out may work
        return None
    return subject


def _found(subject: Subject) -> dict[str, Any]:
    share = _by_hand(subject)
    told = ordering.measure(subject, None, LENGTHS_NS)
    slope = (told["evidence"].get("host") or {}).get("slope")
    return {"code": subject.code, "share": share, "slope": slope, "verdict": told["verdict"]}


def _by_hand(subject: Subject) -> float:
    namespace: dict[str, Any] = {}
    exec(JOB, namespace)
    job, x = namespace["job"], subject.source
    convert = compile_call(subject.code, dict(subject.namespace), "x")
    convert(job(x, 1))
    turns, took_ns = 1, 0
    while took_ns < JOB_NS:
        turns *= 2
        took_ns = _timed(lambda turns=turns: job(x, turns).block_until_ready())
    turns = round(turns * JOB_NS / took_ns)
    shares = []
    for _ in range(REPEATS):
        whole_ns = _timed(lambda: job(x, turns).block_until_ready())
        queued = job(x, turns)
        shares.append(_timed(lambda queued=queued: convert(queued)) / whole_ns)
        queued.block_until_ready()
    return statistics.median(shares)


def _timed(call: Any) -> int:
    begun = time.perf_counter_ns()
    call()
    return time.perf_counter_ns() - begun


if __name__ == "__main__":
    parser = outcome.options(__doc__)
    parser.add_argument("--one", choices=CONSUMERS, help="print what is found into this framework")
    given = parser.parse_args()
    if given.one:
        one(given.one)
        sys.exit(0)
    sys.exit(outcome.report(measure, given))
