"""Rules on views and copies: DLP004, DLP005, DLP006, DLP017, DLP018."""

import pytest
from rule_builders import (
    US,
    disturbed,
    found,
    owned,
    path,
    tried,
    varying,
    verdict,
)

VIEW = path("view(x)", 5 * US)
COPY = path("copy(x)", 500 * US, "copy")
PROMISED = {"promise": "copy"}
NO_COPY = {"promise": "view"}


def test_a_copy_is_avoidable_if_a_view_exists():
    (finding,) = found("DLP004", COPY, VIEW)
    assert (finding.severity, finding.results, finding.against) == ("warning", [0], 1)
    assert "500 µs instead of 5.0 µs" in finding.headline
    assert "view(x) is a view" in finding.advice
    assert finding.evidence == {"cost_ns": 495 * US}


@pytest.mark.parametrize(
    ("copy", "view"),
    [
        (COPY, path("view(x)", owner=owned("view", device="cuda"))),
        (COPY, path("view(x)", owner=varying(("view", 64), ("copy", 16)))),
        (COPY, path("view(x)", values=None)),
        (COPY, path("view(x)", fresh_source=verdict("kept"))),
        (COPY, path("view(x)", 300 * US)),
        (COPY, path("view(x)", case=PROMISED)),
        (path("copy(x)", disturbed(40 * US), "copy"), VIEW),
        (path("copy(x)", 500 * US, "copy", case=PROMISED), VIEW),
        (path("copy(x)", 500 * US, owned("copy", device="cuda")), VIEW),
        (path("copy(x)", 500 * US, varying(("view", 16), ("copy", 64))), VIEW),
    ],
    ids=[
        "of another device", "not always a view", "values not known", "kept",
        "not clearly faster", "view documented to copy", "disturbed time", "promised",
        "to another device", "not always a copy",
    ],
)  # fmt: skip
def test_no_avoidable_copy(copy, view):
    assert found("DLP004", copy, view) == []


@pytest.mark.parametrize(("arrays", "expected"), [(1.74, 0), (1.76, 1)])
def test_a_peak_of_two_arrays_is_one_too_many(arrays, expected):
    peak = verdict("ok", arrays=arrays)
    greedy = path("f(x)", owner="copy", case=PROMISED, peak_memory=peak)
    assert len(found("DLP005", greedy)) == expected


def test_several_paths_need_up_to_as_much_as_the_greediest():
    peaks = (verdict("ok", arrays=count, size_bytes=40 << 20) for count in (2.0, 3.0))
    (finding,) = found("DLP005", *(path("f(x)", owner="copy", peak_memory=peak) for peak in peaks))
    assert "grows by up to 3 arrays" in finding.headline


CUDA = {"device": "cuda"}
BOUNCE = path("bounce(x)", 900 * US, "copy", case={**CUDA, "protocol": "numpy"})


def trace(**evidence):
    return verdict("traced", events=[], **evidence)


@pytest.mark.parametrize(
    ("other", "severity"),
    [
        ({"owner": "view"}, "warning"),
        ({"owner": "copy", "trace": verdict("no trace", reason="there is no CUPTI")}, "info"),
        ({"owner": "copy", "trace": trace()}, "warning"),
    ],
    ids=["a view", "no trace", "a trace"],
)
def test_a_bounce_is_a_warning_if_another_path_is_known_to_stay(other, severity):
    (finding,) = found("DLP006", BOUNCE, path("other(x)", case=CUDA, **other))
    assert finding.severity == severity
    assert ("other(x) stays on the device" in finding.advice) is (severity == "warning")


@pytest.mark.parametrize(("size", "expected"), [(64, 1), (63, 0)])
def test_a_bounce_inside_is_seen_by_the_trace(size, expected):
    ways = ("device to host", "host to device")
    seen = verdict("traced", events=[{"direction": way, "bytes": size} for way in ways])
    traced = path("f(x)", owner="copy", case=CUDA, trace=seen)  # 4x4 float32: 64 bytes
    assert len(found("DLP006", traced)) == expected


def layout(name, time, owner, alignment=64, code="f(x)", **case):
    return path(code, time, owned(owner, alignment=alignment), case={"layout": name, **case})


@pytest.mark.parametrize(
    ("results", "limits"),
    [
        ([layout("F", 500 * US, "copy"), layout("C", 5 * US, "view")], None),
        ([layout("C", 500 * US, "copy", 16), layout("aligned", 5 * US, "view")], (16, 64)),
        ([path("f(x)", owner=varying(("view", 64), ("copy", 16), ("view", 128)))], (16, 64)),
        ([path("f(x)", owner=owned("copy", alignment=16), alignment=tried("view"))], (16, 64)),
    ],
    ids=["layout", "alignment", "processes differ", "tried apart"],
)  # fmt: skip
def test_a_copy_of_one_layout_or_alignment_only_is_named(results, limits):
    (finding,) = found("DLP017", *results)
    advice = "Give it an array of layout C"
    if limits:
        advice = f"a multiple of {limits[1]} bytes"
    assert advice in finding.advice
    # Two addresses are too few for a bound.
    assert ("aligned to 16 bytes, but not to 64" in finding.headline) is (limits is not None)
    assert "only" not in finding.headline


@pytest.mark.parametrize(
    "results",
    [
        [path("f(x)", owner=varying(("view", 16), ("copy", 64)))],
        [path("f(x)", owner=varying(("view", None), ("copy", 16)))],
        [path("f(x)", owner=varying(("view", 64), ("copy", 16)), case=PROMISED)],
        [layout("F", 500 * US, "copy"), layout("C", 5 * US, "view", code="g(x)")],
        [layout("F", 9 * US, "copy"), layout("C", 5 * US, "view")],
        [layout("sliced", 500 * US, "copy", 64), layout("C", 5 * US, "view", 64)],
        [layout("F", 500 * US, "view"), layout("C", 5 * US, "view")],
        [path("f(x)", owner=owned("copy", alignment=16), alignment=tried("copy"))],
        [path("f(x)", owner=owned("copy", alignment=64), alignment=tried("view"))],
    ],
    ids=[
        "the wider copied", "not known", "promised", "another path", "as cheap", "nothing differs",
        "views both", "copied anyway", "aligned already",
    ],
)  # fmt: skip
def test_no_layout_copy(results):
    assert found("DLP017", *results) == []


READ_ONLY = verdict("ok", changed={}, writable={"source": False, "result": False})
UNLOCKED = verdict("ok", changed={}, writable={"source": False, "result": True})


@pytest.mark.parametrize(
    ("parts", "severity"),
    [
        ({"case": PROMISED}, "error"),
        ({"case": PROMISED, "values": READ_ONLY}, "info"),
        ({"case": NO_COPY, "owner": "copy"}, "warning"),
    ],
    ids=["a view", "a view that nobody can write", "a copy"],
)
def test_a_broken_promise(parts, severity):
    (finding,) = found("DLP018", path("f(x)", rounds=[0, 1, 2], **parts))
    assert finding.severity == severity
    assert f"{parts['case']['promise']} is documented" in finding.headline


@pytest.mark.parametrize(
    ("values", "effect"),
    [
        (verdict("ok"), "Writing to x changes the result"),
        (UNLOCKED, "Writing to the result changes x"),
    ],
)
def test_a_broken_promise_names_the_array_that_can_be_written(values, effect):
    (finding,) = found("DLP018", path("f(x)", case=PROMISED, values=values))
    assert effect in finding.headline


@pytest.mark.parametrize(
    ("promise", "owner"), [(PROMISED, "unknown"), (NO_COPY, owned("copy", device="cuda"))]
)
def test_no_broken_promise(promise, owner):
    assert found("DLP018", path("f(x)", owner=owner, case=promise)) == []


@pytest.mark.parametrize(("name", "words"), [("statement", "keyword"), ("asarray", "documented")])
def test_a_users_call_is_recognized_by_its_keyword_alone(name, words):
    (finding,) = found("DLP018", path("f(x)", case={**PROMISED, "import": name}))
    assert words in finding.headline
    assert ("documented" in finding.headline) == (words == "documented")
