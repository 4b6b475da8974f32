"""A session in which every rule finds something."""

from rule_builders import MS, US, lost, ordered, path, spread, varying, verdict, wrong

from dlprof.judge import find

REFUSED = {"call": "__dlpack__", "outcome": "TypeError: no max_version"}
REFUSED_UNVERSIONED = {"call": "__dlpack__", "arguments": {}, "outcome": "BufferError: read-only"}
DELIVERED = {
    "call": "other export",
    "arguments": {"max_version": "(1, 3)"},
    "outcome": "returned",
}
ANSWERED = {"call": "__dlpack__", "outcome": "returned"}
CUDA = {"device": "cuda", "protocol": "numpy"}
LOOP = {
    "use": "numpy.add(x, 1)",
    "share": {"median": 0.7, "ci95": (0.69, 0.71)},
    "in_loop": spread(350 * US),
    "hoisted": spread(110 * US),
}
SETTING = {
    "name": "locale of the process",
    "code": "locale.setlocale(locale.LC_ALL)",
    "before": "'C'",
    "after": "'de_DE.UTF-8'",
}
BROKEN = {
    "error": ["BufferError"],
    "after": "BufferError: no",
    "plain_create": "x = [0.5]",
    "plain_code": "list(x)",
}
MOVED = verdict("copy", result_device="cpu", declared_device="cuda")
FROZEN = verdict("ok", writable={"source": True, "result": False, "immutable": True})
LOCKED = verdict("ok", writable={"source": True, "result": False, "immutable": False})
NO_VIEW = "ValueError: unable to avoid a copy"
GUILTY = [
    path("free(x)", 5 * US, ordering=ordered("stream-ordered", 9 * US)),
    path("wait(x)", 9 * US, ordering=ordered("host-sync")),
    path("all(x)", 9 * US, ordering=ordered("device-sync")),
    path("put(x, non_blocking=True)", 9 * US, ordering=verdict("synchronous", upload_waits=True)),
    path("race(x)", 9 * US, ordering=ordered("unordered", values_right=False)),
    path("copy(x)", 500 * US, "copy", peak_memory=verdict("ok", arrays=2.0, size_bytes=16 << 20)),
    path("bounce(x)", 900 * US, "copy", case=CUDA),
    path("slow(x)", 900 * US),
    path("alias(x)", case={"promise": "copy"}),
    path("vary(x)", owner=varying(("copy", 16), ("view", 64))),
    path("torn(x)", 2 * MS, "copy", early_write=verdict("unsafe", sizes_bytes={"4096": "torn"})),
    path("leak(x)", lifetime=verdict("retained", bytes_per_conversion=9e4, conversions=200)),
    path("again(x)", lifetime=verdict("safe", reused=True)),
    path("gone(x)", lifetime=verdict("dangling", changed_after_drop=True)),
    path("shape(x)", values=wrong(shape=[[4, 4], [16]])),
    path("dtype(x)", values=wrong(dtype=["float64", "float32"])),
    path("write(x)", values=verdict("ok", writable={"source": False, "result": True})),
    path("old(x)", status="unsupported", handshake=[REFUSED_UNVERSIONED, DELIVERED]),
    path("lock(x)", values=LOCKED),
    path("open(x)", values=verdict("ok", writable={"source": True, "result": True})),
    path("mask(x)", values=verdict("ok", dropped=["mask"])),
    path("avoids(x)", None, None, status="unsupported", reason=NO_VIEW, case={"promise": "view"}),
    path("warns(x)", owner="copy", warnings=verdict("warns", texts=["UserWarning: not writable"])),
    path("sets(x)", settings=verdict("changed", changed=[SETTING])),
    path("loop(x)", placement=LOOP),
    path("late(x)", 2 * MS, host=spread(100 * US), case={"promise": "view"}),
    path("asks(x)", handshake=[REFUSED, ANSWERED, {"call": "import", "outcome": "returned"}]),
    path("there(x)", 900 * US, "copy", case={"producer": "a", "consumer": "b"}),
    path("back(x)", case={"producer": "b", "consumer": "a"}),
    path("cuda(x)", refusal=verdict("unknown", error=["ValueError"], other_device=[2, 0])),
    path("jam(x)", status="unsupported", refusal=verdict("broken", **BROKEN)),
    path("host(x)", owner=MOVED, case={"device": "cuda"}),
    path("rows(x)", kind="copy", values=verdict("ok", orders=["F", "C"])),
    path("columns(x)", values=verdict("ok", orders=["F", "F"])),
    path("fixed(x)", values=FROZEN, case={"consumer": "immutable"}),
    path("fork(x)", fork=verdict("hangs")),
    lost("crashed", "killed by SIGSEGV during values", "dead(x)"),
]

FOUND = {finding.rule: finding for finding in find(GUILTY)}
