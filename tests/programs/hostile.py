"""A program for ``dlprof time --program``: one path converts, each other one has a fault."""

import array
import json
import os
import sys
import time

FAULTS = {
    "dies(v)": os.abort,
    "hangs(v)": lambda: time.sleep(3600),
    "says_hello(v)": lambda: print("Warming up, please wait"),
    "floods(v)": lambda: print("x" * (2 << 20)),
    "ends_stdout(v)": lambda: os.close(1),
}
LIES = ("slower_than_the_clock(v)", "is_not_called(v)", "names_the_source(v)", "names_no_memory(v)")
CODES = ["v[:]", *FAULTS, *LIES, "reuses(v)"]
HELLO = {"protocol": 1, "language": "Python", "name": "arrays"}
sources, results, reused = {}, [], array.array("d", bytes(2 << 20))


def convert(code):
    FAULTS.get(code, int)()
    if code == "reuses(v)":
        reused[: len(sources["v"])] = sources["v"]
        return reused
    return sources["v"][:]


def answer(do, path=0, calls=0, shape=(), **_):
    code = CODES[path]
    if do == "hello":
        return HELLO | {"paths": [{"code": code} for code in CODES]}
    if do == "make":
        sources["v"] = array.array("d", bytes(8 * shape[0]))
        return {"address": sources["v"].buffer_info()[0]}
    if do == "time":
        begin = time.perf_counter_ns()
        for _ in range(calls):
            convert(code)
        ns = time.perf_counter_ns() - begin
        return {"ns": {"slower_than_the_clock(v)": 1000 * ns, "is_not_called(v)": 9}.get(code, ns)}
    if do == "look":
        results[:] = [convert(code)]
        before, sources["v"][0] = results[0][0], 1e9
        address = {"names_the_source(v)": sources["v"].buffer_info()[0], "names_no_memory(v)": 64}
        return {
            "address": address.get(code, results[0].buffer_info()[0]),
            "shape": [len(sources["v"])],
            "dtype": "float64",
            "sees_write": results[0][0] != before,
        }
    sources.clear()
    return {"ok": True}


for line in sys.stdin:
    print(json.dumps(answer(**json.loads(line))), flush=True)
