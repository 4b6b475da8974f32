"""Sessions as large as one likes, shaped like those of a matrix over several sizes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

FRAMEWORKS = ("numpy", "torch", "tensorflow", "jax", "numba", "onnxruntime", "cupy")
SIDES = (1, 64, 256, 1024, 2048)
WAYS = ("from_dlpack", "from_dlpack_copy", "asarray", "array", "as_tensor", "tensor")
PROCESSES = 3
SAMPLES = 15
MEMCPY_GB_PER_S = 40.0


def content(count: int, seed: int = 0) -> dict[str, Any]:
    """A session of ``count`` cases as JSON, with samples, evidence and handshakes of its own."""
    numbers = random.Random(seed)
    cases = _cases()
    return {
        "schema": "dlprof.session/1",
        "created": "2026-01-01T00:00:00+00:00",
        "command": ["matrix"],
        "seed": seed,
        "request": {"pairs": [[a, b] for a in FRAMEWORKS for b in FRAMEWORKS]},
        "environment": {"python": "3.11.7", "packages": dict.fromkeys(FRAMEWORKS, "1.0")},
        "rounds": PROCESSES,
        "results": [_result(next(cases), place, numbers) for place in range(count)],
    }


def _cases() -> Iterator[dict[str, Any]]:
    """Without an end: dtypes are numbered when shapes and pairs are used up."""
    number = 0
    while True:
        for producer in FRAMEWORKS:
            for consumer in FRAMEWORKS:
                for side in SIDES:
                    for way in WAYS:
                        yield _case(
                            producer, consumer, side, way, ("C", "F", "aligned")[number % 3]
                        )
        number += 1


def _case(producer: str, consumer: str, side: int, way: str, layout: str) -> dict[str, Any]:
    name, copies = way.removesuffix("_copy"), way in ("from_dlpack_copy", "array", "tensor")
    return {
        "producer": producer,
        "export": "dlpack",
        "consumer": consumer,
        "import": way,
        "protocol": "dlpack",
        "code": f"{consumer}.{name}(x{', copy=True' if way.endswith('_copy') else ''})",
        "shape": [side, side],
        "dtype": "float32",
        "layout": layout,
        "device": "cpu",
        "promise": "copy" if copies else None,
    }


def _result(case: dict[str, Any], place: int, numbers: random.Random) -> dict[str, Any]:
    if place % 23 == 0:
        reason = f"TypeError: {case['import']} takes no {case['producer']} array"
        return {"case": case, "status": "unsupported", "reason": reason}
    size_bytes = 4 * case["shape"][0] ** 2
    copies = case["promise"] == "copy"
    memcpy_ns = size_bytes / MEMCPY_GB_PER_S
    base_ns = numbers.lognormvariate(7, 0.6) + (memcpy_ns * numbers.uniform(1, 3) if copies else 0)
    host = _time(base_ns, numbers)
    return {
        "case": case,
        "status": "ok",
        "host_time": host,
        "ready_time": {**host, "processes": [], "same_as": "host_time"},
        "first_call_ns": base_ns * numbers.uniform(5, 50),
        "phases": {
            "export_ns": base_ns * 0.1,
            "import_ns": base_ns * 0.8,
            "release_ns": base_ns * 0.1,
            "resolution_ns": 40.0,
        },
        "ownership": {
            "verdict": "copy" if copies else "view",
            "evidence": {
                "source_alignment_bytes": 2 ** numbers.randrange(4, 12),
                "result_device": "cpu",
                "same_address": not copies,
                "source_write_shows": not copies,
                "result_write_shows": not copies,
            },
        },
        "values": {
            "verdict": "ok",
            "evidence": {"changed": {}, "writable": {"source": True, "result": True}},
        },
        "copy_cost": _cost(size_bytes, base_ns) if copies else None,
        "handshake": _handshake(case, numbers),
        "rounds": list(range(PROCESSES)),
    }


def _time(base_ns: float, numbers: random.Random) -> dict[str, Any]:
    processes = []
    for round_ in range(PROCESSES):
        middle = base_ns * numbers.lognormvariate(0, 0.02)
        samples = [middle * numbers.lognormvariate(0, 0.05) for _ in range(SAMPLES)]
        processes.append({"round": round_, "loops": 1024, "samples_ns": samples})
    least = min(min(process["samples_ns"]) for process in processes)
    interval = [base_ns * 0.95, base_ns * 1.05]
    return {"median_ns": base_ns, "ci95_ns": interval, "min_ns": least, "processes": processes}


def _cost(size_bytes: int, ns: float) -> dict[str, Any]:
    speed = size_bytes / ns
    return {
        "size_bytes": size_bytes,
        "gb_per_s": speed,
        "memcpy_gb_per_s": MEMCPY_GB_PER_S,
        "share_of_memcpy": speed / MEMCPY_GB_PER_S,
    }


def _handshake(case: dict[str, Any], numbers: random.Random) -> list[dict[str, Any]]:
    capsule = {
        "name": "dltensor_versioned",
        "version": "1.0",
        "flags": [],
        "device": "cpu:0",
        "dtype": "float32",
        "shape": case["shape"],
        "strides": [case["shape"][1], 1],
        "address": numbers.randrange(2**40, 2**46),
        "alignment_bytes": 64,
    }
    asked = {"call": "__dlpack__", "arguments": {"dl_device": None, "max_version": "(1, 0)"}}
    answered = {"ns": numbers.randrange(500, 5000), "outcome": "returned", "capsule": capsule}
    return [asked | answered, {"call": "import", "outcome": "returned"}]
