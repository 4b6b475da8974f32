"""A session with something in every section of the HTML report."""

import math

from builders import make_session
from rule_builders import US, ordered, path, verdict

from dlprof.measuring.judged import judged
from dlprof.runner.session import Session

SIZES = ((1,), (1024, 1024), (4096, 4096))


def timed(median_ns, rounds=3, share=0.02):
    """A time with its samples: each process is a little slower than the previous."""
    processes = [
        {
            "round": place,
            "loops": 100,
            "samples_ns": [
                median_ns * (1 + share * (place - 1) + share * step / 10) for step in range(-3, 4)
            ],
        }
        for place in range(rounds)
    ]
    return {
        "median_ns": median_ns,
        "ci95_ns": (median_ns * (1 - share), median_ns * (1 + share)) if rounds > 1 else None,
        "min_ns": median_ns * 0.9,
        "processes": processes,
    }


def case(code="numpy.from_dlpack(x)", median_ns=2 * US, owner="view", shape=(4, 4), **changes):
    """A case with every measure; ``changes`` go to the result, ``case`` to the case."""
    import_ = code.split("(", maxsplit=1)[0]
    record = {"shape": shape, "import": import_, **changes.pop("case", {})}
    size_bytes = 4 * math.prod(shape)
    copied = {
        "size_bytes": size_bytes,
        "gb_per_s": size_bytes / median_ns,
        "memcpy_gb_per_s": 10.0,
        "share_of_memcpy": 0.5,
    }
    parts = {
        "ready_time": {**timed(median_ns), "same_as": "host_time"},
        "first_call_ns": 50 * US,
        "lifetime": verdict("safe"),
        "copy_cost": copied if owner == "copy" else None,
        "rounds": [0, 1, 2],
    }
    owned = verdict(owner, result_device="cpu")
    return path(code, None, owned, timed(median_ns), record, **{**parts, **changes})


def lost(code="numpy.asarray(x)", status="unsupported", reason="TypeError: no", **changes):
    ended = {"status": status, "reason": reason, "values": None, "rounds": [0]}
    return path(code, None, None, **ended, **changes)


def full_session() -> Session:
    """Two pairs, three sizes, views and copies, waits, a crash, a refusal, findings."""
    there = {"producer": "torch", "consumer": "numpy"}
    back = {"producer": "numpy", "consumer": "torch"}
    results = []
    for shape in SIZES:
        copy_ns = 1 * US + 0.2 * shape[0] * shape[-1]
        results += [
            case(shape=shape, ordering=ordered("host-sync"), case=there),
            case("numpy.array(x)", copy_ns, "copy", shape, case=there),
            case("numpy.slow(x)", 20 * copy_ns, "copy", shape, case=there),
            case(
                "torch.from_dlpack(x)",
                3 * US,
                shape=shape,
                ready_time=timed(5 * US),
                case=back,
                early_write=verdict("unknown", reason="no size was copied"),
            ),
        ]
    results += [
        lost(reason="ValueError: no view\nof this array", case=there),
        lost("numpy.boom(x)", "crashed", "SIGSEGV during timing", output="a\nb", case=there),
    ]
    return alone(
        *results,
        left_out=["no diagnosis of waiting"],
        foreign_cores=1.5,
        wall_s=12.3,
        request={"pairs": [["torch", "numpy"], ["numpy", "torch"]], "probe_files": []},
    )


def alone(*results, **changes) -> Session:
    """A session with these results and the findings of the rules."""
    return judged(make_session(*results, **changes))
