"""Sessions and a trace with randomly changed values."""

import copy
import json
from dataclasses import replace

from builders import make_measure
from html_builders import case, full_session
from hypothesis import strategies as st
from repro_builders import session_of
from rule_builders import varying, verdict

from dlprof.runner.request import ScenarioRecord
from dlprof.runner.session_file import document

TRACE = {
    "schema": "dlprof.trace/1",
    "program": ["a.py"],
    "exit_code": 0,
    "wall_ns": 1000,
    "rows": [
        {
            **dict.fromkeys(("file", "function", "conversion", "expression"), "a"),
            **dict.fromkeys(("line", "calls", "copies", "bytes", "waits", "raised"), 1),
            "total_ns": 9,
            "first_ns": 5,
            "waited_ns": 2,
            "result": "copy",
            "device": "cpu",
            "producer": "numpy",
            "consumer": "torch",
            "via": "a.b",
            "span": [1, 1, 0, 4],
            "arrays": [["float32", [4], 1, 16]],
            "crossings": [["cpu", "cuda:0", 1]],
            "retyped": ["int8"],
            "allowed": ["copy"],
            "processes": [7],
            "trouble": "a",
        }
    ],
    "processes": [{"pid": 7, "argv": ["a.py"], "wall_ns": 900, "ended": False}],
    "timeline": [[0, 10, 0, 5, 0]],
    "events": [[0, 5, 0, 0, 1]],
    "sources": {"a": [[1, "a"]]},
    "troubles": ["a"],
}
SCENARIO = ScenarioRecord("s.toml", "a", "b", expect=("x",))


def everything():
    """Return a result with the measures of special machines and options."""
    time = make_measure(900.0, None).model_dump()
    return case(
        device_time={"warm": time, "resolution_ns": 9.0},
        trace=verdict("traced", events=[{"direction": "device to host", "bytes": 64}]),
        placement={"use": "y", "in_loop": time, "hoisted": time, "share": {"median": 0.5},
                   "break_even_iterations": 3, "refused": {"implicit": "no"}},
        ownership=varying(("view", 64), ("copy", 16)),
        fresh_source=verdict("kept", first_ns=9.0, second_ns=1.0),
        peak_memory=verdict("ok", arrays=2.0, size_bytes=64),
        lifetime=verdict("retained", bytes_per_conversion=9.0, references_per_conversion=1.0),
        early_write=verdict("unsafe", sizes_bytes={"4096": "torn"}, create="x = 1"),
        ready_time=time,
    )  # fmt: skip


def texts():
    """Return sessions as parsed JSON: with a reproducer, with all sections, as a matrix."""
    whole = full_session()
    found = [session_of(rule) for rule in ("DLP018", "DLP020", "DLP017", "DLP011")]
    found += [
        whole.model_copy(update={"results": [*whole.results[:6], everything()], **changes})
        for changes in (
            {},
            {"command": ["matrix"]},
            {"request": replace(whole.request, scenario=SCENARIO)},
        )
    ]
    return [*(json.loads(document(one)) for one in found), TRACE]


SESSIONS = texts()

nested: object = "deep"
for _ in range(200):
    nested = [nested]

ODD = {
    float: (0.0, -1.0, 1e308, -1e308, 5e-324, 1e400, float("nan"), None),
    int: (0, -1, 1, 99, 10**19, -(10**30), 10**400, None),
    str: ("", "\x1b[31m", "\ud800", "\u202e\n", "x" * 70_000, "varies", "unknown", "cuda", "=1+1"),
    list: ([], [[]], [None], [0], [-1], [10**9], nested, ["a", 1.5, None], {}),
    dict: ({}, {"": None}, {"verdict": 5}, {"evidence": []}, {"a": nested}, None),
}
ANY = (None, True, -1, 1e400, "", [], {}, "view", {"verdict": "varies", "evidence": {}})


def places(content, path=()):
    """Yield the place of every value, as steps from the top, and its type."""
    yield path, type(content)
    parts = content if isinstance(content, dict) else dict(enumerate(_list(content)))
    for step, part in parts.items():
        yield from places(part, (*path, step))


def _list(content):
    return content if isinstance(content, list) else []


PLACES = [list(places(content))[1:] for content in SESSIONS]


@st.composite
def spoiled(draw):
    """A session with up to four values replaced (mostly by the same type), removed or doubled."""
    which = draw(st.integers(0, len(SESSIONS) - 1))
    content = copy.deepcopy(SESSIONS[which])
    for path, kind in draw(st.lists(st.sampled_from(PLACES[which]), min_size=1, max_size=4)):
        how = draw(st.sampled_from(["like", "like", "like", "any", "drop", "double"]))
        value = draw(st.sampled_from(ODD.get(kind, ANY) if how == "like" else ANY))
        spoil(content, path, how, value)
    return json.dumps(content)


def spoil(content, path, how, value):
    try:
        for step in path[:-1]:
            content = content[step]
        if how == "drop":
            del content[path[-1]]
        elif how == "double" and isinstance(content, list):
            content.append(copy.deepcopy(content[path[-1]]))
        else:
            content[path[-1]] = copy.deepcopy(value)
    except (LookupError, TypeError):
        pass  # an earlier change removed it
