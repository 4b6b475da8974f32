"""A session with something in every section of the HTML report."""

from builders import make_record, make_session
from rule_builders import MS, US, ordered, verdict

from dlprof.rules import find
from dlprof.session.model import Result, Session

SIZES = ((1,), (1024, 1024), (4096, 4096))
HANDSHAKE = [
    {
        "call": "__dlpack__",
        "arguments": {"stream": None},
        "ns": 1500,
        "outcome": "returned",
        "capsule": {"name": "dltensor", "version": None, "flags": ["read-only"], "shape": [4, 4]},
    },
]


def timed(median_ns, rounds=3, share=0.02):
    """A time with its samples: each process a little slower than the one before."""
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
    """A case with every measure; ``changes`` are parts of the result, ``case`` of the case."""
    record = make_record(
        code=code, shape=shape, **{"import": code.split("(")[0], **changes.pop("case", {})}
    )
    size_bytes = 4
    for length in shape:
        size_bytes *= length
    copied = {
        "size_bytes": size_bytes,
        "gb_per_s": size_bytes / median_ns,
        "memcpy_gb_per_s": 10.0,
        "share_of_memcpy": 0.5,
    }
    return Result.model_validate(
        {
            "case": record,
            "status": "ok",
            "host_time": timed(median_ns),
            "ready_time": {**timed(median_ns), "processes": [], "same_as": "host_time"},
            "first_call_ns": 50 * US,
            "phases": {
                "export_ns": median_ns / 4,
                "import_ns": median_ns / 2,
                "release_ns": median_ns / 4,
                "resolution_ns": 40.0,
            },
            "ownership": verdict(owner, result_device="cpu"),
            "lifetime": verdict("safe"),
            "values": verdict("ok", changed={}, writable={"source": True, "result": True}),
            "copy_cost": copied if owner == "copy" else None,
            "handshake": HANDSHAKE,
            "rounds": [0, 1, 2],
            **changes,
        }
    )


def lost(code="numpy.asarray(x)", status="unsupported", reason="TypeError: no", **changes):
    record = make_record(code=code, **changes.pop("case", {}))
    return Result.model_validate(
        {"case": record, "status": status, "reason": reason, "rounds": [0], **changes}
    )


def full_session(**changes) -> Session:
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
    session = make_session(
        *[result.model_dump(by_alias=True) for result in results],
        left_out=["no diagnosis of waiting"],
        foreign_cores=1.5,
        wall_s=12.3,
        request={"pairs": [["torch", "numpy"], ["numpy", "torch"]], "probe_files": []},
        **changes,
    )
    return session.model_copy(update={"findings": find(session.results)})


def alone(*results, **changes) -> Session:
    """A session of these results, with what the rules find."""
    session = make_session(*[result.model_dump(by_alias=True) for result in results], **changes)
    return session.model_copy(update={"findings": find(session.results)})


__all__ = ["MS", "US", "alone", "case", "full_session", "lost", "timed"]
