"""Rules on views and copies."""

from __future__ import annotations

import numpy
import pytest
from builders import make_answer, make_record
from rule_builders import MS, US, found, once, owned, path, rules, spread, varying, verdict

from dlprof.analysis import thresholds
from dlprof.analysis.alignment import strides_bytes
from dlprof.analysis.case_view import CaseView
from dlprof.probes.base import ArraySpec
from dlprof.probes.numpy import NumPy
from dlprof.runner.merge import merge
from dlprof.session.model import Result

pytestmark = pytest.mark.unit

VIEW = path("view(x)", 5 * US)
COPY = path("copy(x)", 500 * US, "copy")
PROMISED = {"promise": "copy"}
NO_COPY = {"promise": "view"}


def test_a_copy_beside_a_view_is_avoidable():
    (finding,) = found("DLP004", COPY, VIEW)
    assert (finding.severity, finding.results) == ("warning", (0,))
    assert "500 us against 5.0 us" in finding.summary
    assert finding.advice == "view(x) is a view: 5.0 us instead of 500 us, 100 times as fast."


def test_several_copies_of_a_pair_are_one_finding_that_names_three():
    copies = [path(f"copy{number}(x)", 500 * US, "copy") for number in range(5)]
    (finding,) = found("DLP004", *copies, VIEW)
    assert len(finding.results) == 5
    assert "copy0(x), copy1(x), copy2(x) and 2 more copy although" in finding.summary


def test_the_same_copy_of_several_arrays_is_one_finding_that_says_which():
    shapes = [{"shape": [8, 8]}, {"shape": [9, 9]}]
    copies = [
        path("copy(x)", time, "copy", case=case)
        for time, case in zip((MS, 2 * MS), shapes, strict=True)
    ]
    views = [path("view(x)", case=case) for case in shapes]
    (finding,) = found("DLP004", *copies, *views)
    assert finding.results == (1, 0)
    assert "; for 9x9 float32 C: 2.0 ms against 5.0 us" in finding.summary


@pytest.mark.parametrize(
    "other",
    [
        path("view(x)", case={"shape": [5, 5]}),
        path("view(x)", case={"consumer": "jax"}),
        path("view(x)", owner=owned("view", device="cuda")),
        path("view(x)", owner=varying(("view", 64), ("copy", 16))),
        path("view(x)", values=None),
        path("view(x)", fresh_source=verdict("kept")),
        path("view(x)", 300 * US),
        path("view(x)", status="crashed", reason="killed by SIGSEGV during lifetime"),
        path("view(x)", case=PROMISED),
    ],
    ids=[
        "another shape",
        "another pair",
        "another device",
        "not always a view",
        "values not known",
        "kept",
        "not clearly faster",
        "crashed",
        "documented to copy",
    ],
)
def test_a_copy_is_not_avoidable_by(other):
    assert found("DLP004", COPY, other) == []


@pytest.mark.parametrize(
    "copy",
    [
        path("copy(x)", 500 * US, "copy", case=PROMISED),
        path("copy(x)", 500 * US, owned("copy", device="cuda")),
        path("copy(x)", 500 * US, verdict("copy")),
        path("copy(x)", 500 * US, "unknown"),
        path("copy(x)", 500 * US, varying(("view", 16), ("copy", 64))),
    ],
    ids=["promised", "to another device", "to where", "not known", "not always"],
)
def test_not_every_copy_is_avoidable(copy):
    assert found("DLP004", copy, VIEW) == []


@pytest.mark.parametrize(("saved", "severity"), [(0.99, "info"), (1.03, "warning")])
def test_what_a_copy_costs_decides_on_its_severity(saved, severity):
    copy = path("copy(x)", 5 * US + saved * thresholds.COSTLY_GAP_NS, "copy")
    assert [finding.severity for finding in found("DLP004", copy, VIEW)] == [severity]


@pytest.mark.parametrize(("times", "expected"), [(0.9, 0), (1.1, 1)])
def test_without_an_interval_a_copy_must_be_much_slower(times, expected):
    slow = once(5 * US * thresholds.UNREPEATED_RATIO * times)
    copy = path("copy(x)", slow, "copy")
    assert len(found("DLP004", copy, path("view(x)", once(5 * US)))) == expected


@pytest.mark.parametrize(("arrays", "expected"), [(1.74, 0), (1.76, 1)])
def test_a_peak_of_two_arrays_is_one_too_many(arrays, expected):
    greedy = path("f(x)", owner="copy", case=PROMISED, peak_memory=verdict("ok", arrays=arrays))
    assert len(found("DLP005", greedy)) == expected


def test_a_path_that_needs_less_is_advised():
    greedy = path("f(x)", 9 * US, "copy", peak_memory=verdict("ok", arrays=2.0))
    lean = path("g(x)", 6 * US, "copy", peak_memory=verdict("ok", arrays=1.01))
    (finding,) = found("DLP005", greedy, lean)
    assert "the memory of 2 arrays at its peak" in finding.summary
    assert finding.advice == "g(x) needs 1.0: 6.0 us instead of 9.0 us, 1.5 times as fast."


@pytest.mark.parametrize(("after", "expected"), [("float64", 0), ("float32", 1)])
def test_a_wider_result_is_counted_as_one_array(after, expected):
    changed = {"dtype": ["float16", after]} if after == "float64" else {}
    values = verdict("wrong" if changed else "ok", changed=changed)
    greedy = path("f(x)", owner="copy", values=values, peak_memory=verdict("ok", arrays=4.0))
    assert len(found("DLP005", greedy)) == expected


@pytest.mark.parametrize("word", ["unknown", "varies"])
def test_a_peak_that_is_not_known_is_none(word):
    assert rules(path("f(x)", peak_memory=verdict(word, arrays=9.0))) == []


CUDA = {"device": "cuda"}
BOUNCE = path("bounce(x)", 900 * US, "copy", case={**CUDA, "protocol": "numpy"})


def test_a_host_array_between_two_device_arrays_is_a_bounce():
    (finding,) = found("DLP006", BOUNCE)
    advice = "No measured path is known to stay on the device."
    assert (finding.severity, finding.advice) == ("info", advice)


def test_a_bounce_that_another_path_avoids_is_a_warning():
    (finding,) = found("DLP006", BOUNCE, path("view(x)", case=CUDA))
    assert finding.severity == "warning"
    assert "view(x) stays on the device: 5.0 us instead of 900 us" in finding.advice


def trace(**evidence):
    return verdict("traced", events=[], **evidence)


@pytest.mark.parametrize(
    ("seen", "severity"),
    [
        (None, "info"),
        (verdict("no trace", reason="there is no CUPTI"), "info"),
        (trace(events_left_out=3), "info"),
        (trace(events_left_out=0), "warning"),
    ],
    ids=["nobody looked", "no trace", "not all of it", "all of it"],
)
def test_a_copy_is_called_no_bounce_only_if_the_trace_saw_all_of_it(seen, severity):
    (finding,) = found("DLP006", BOUNCE, path("copy(x)", owner="copy", case=CUDA, trace=seen))
    assert finding.severity == severity
    assert ("copy(x)" in finding.advice) is (severity == "warning")


@pytest.mark.parametrize(
    "result",
    [
        path("f(x)", owner="copy", case={"protocol": "numpy"}),
        path("f(x)", owner=owned("copy", "cpu"), case={**CUDA, "protocol": "numpy"}),
        path("f(x)", owner="copy", case={**CUDA, "protocol": "dlpack"}),
    ],
    ids=["all on the host", "to the host", "no host array"],
)
def test_no_bounce(result):
    assert found("DLP006", result) == []


@pytest.mark.parametrize(("size", "expected"), [(64, 1), (63, 0)])
def test_a_bounce_inside_is_seen_by_the_trace(size, expected):
    ways = ("device to host", "host to device")
    trace = verdict("traced", events=[{"direction": way, "bytes": size} for way in ways])
    traced = path("f(x)", owner="copy", case=CUDA, trace=trace)  # 4x4 float32: 64 bytes
    assert len(found("DLP006", traced)) == expected


def layout(name, time, owner, alignment=64, code="f(x)", **case):
    return path(code, time, owned(owner, alignment=alignment), case={"layout": name, **case})


def test_a_copy_of_one_layout_only_is_told_with_the_layout():
    (finding,) = found("DLP017", layout("F", 500 * US, "copy"), layout("C", 5 * US, "view"))
    assert finding.severity == "warning"
    assert (
        "f(x) copies an array of layout F, and is a view of an array of layout C" in finding.summary
    )
    assert "500 us against 5.0 us" in finding.summary
    assert finding.evidence["cause"] == "layout"


def with_fault(result, fault):
    return Result.model_validate({**result.model_dump(by_alias=True), **fault})


@pytest.mark.parametrize(
    "fault",
    [
        {"lifetime": verdict("dangling")},
        {"values": verdict("wrong", changed={"values": {}})},
        {"ordering": verdict("unordered")},
    ],
    ids=["dangling", "wrong", "unordered"],
)
def test_nobody_is_sent_to_a_view_that_is_no_good(fault):
    view = with_fault(layout("C", 5 * US, "view"), fault)
    (finding,) = found("DLP017", layout("F", 500 * US, "copy"), view)
    assert finding.advice.startswith("The view is not advised: ")
    both = with_fault(path("f(x)", 500 * US, varying(("copy", 16), ("view", 64))), fault)
    (finding,) = found("DLP017", both)
    assert finding.advice.startswith("The view is not advised: ")


def aligned(word, *sizes):
    """Ownership on which all processes agree, of sources at these alignments."""
    each = [{"ownership": owned(word, alignment=size)} for size in sizes]
    answers = [(round_, make_answer(parts=one)) for round_, one in enumerate(each)]
    return merge(make_record(), answers, len(sizes)).ownership.model_dump()


def test_every_process_counts_for_what_an_alignment_decides():
    copied = path("f(x)", 500 * US, aligned("copy", 16, 4096, 16), case={"layout": "C"})
    viewed = path("f(x)", 5 * US, aligned("view", 4096, 64, 64), case={"layout": "aligned"})
    assert found("DLP017", copied, viewed) == []
    copied = path("f(x)", 500 * US, aligned("copy", 16, 32, 16), case={"layout": "C"})
    (finding,) = found("DLP017", copied, viewed)
    assert (finding.evidence["copy_alignment_bytes"], finding.evidence["view_alignment_bytes"]) == (
        32,
        64,
    )
    assert "nothing between" not in finding.advice


def test_a_view_of_better_aligned_sources_in_one_process_stands_for_what_it_was_in_all():
    copied = path("g(x)", 500 * US, aligned("copy", 16, 16, 32))
    assert found("DLP004", copied, path("f(x)", 5 * US, aligned("view", 4096, 64, 64))) == []
    assert found("DLP004", copied, path("f(x)", 5 * US, aligned("view", 4096, 16, 64)))


@pytest.mark.parametrize(
    ("copied", "viewed", "had", "wanted"),
    [
        ("F", "C", "4, 16", "32, 4"),
        ("C", "F", "32, 4", "4, 16"),
        ("strided", "C", "64, 8", "32, 4"),
        ("reversed", "C", "-32, 4", "32, 4"),
        ("broadcast", "C", "0, 4", "32, 4"),
    ],
)
def test_the_advice_names_the_strides_in_bytes(copied, viewed, had, wanted):
    copy = layout(copied, 500 * US, "copy", shape=[4, 8])
    (finding,) = found("DLP017", copy, layout(viewed, 5 * US, "view", shape=[4, 8]))
    assert f"Make the source with strides of ({wanted}) bytes, as an array of" in finding.advice
    assert f"instead of ({had})." in finding.advice


@pytest.mark.parametrize("name", ["C", "F", "strided", "reversed", "broadcast", "readonly"])
@pytest.mark.parametrize("shape", [(4, 8), (3, 5, 7), (6,)])
def test_the_strides_are_those_of_the_arrays_that_are_made(name, shape):
    names = {"numpy": numpy}
    exec(NumPy().create(ArraySpec(shape, "float32", name)), names)
    case = CaseView(0, layout(name, 5 * US, "view", shape=list(shape)))
    assert strides_bytes(case) == names["x"].strides


def test_strides_of_what_differs_in_no_stride_are_not_named():
    copy = layout("readonly", 500 * US, "copy", shape=[4, 8])
    (finding,) = found("DLP017", copy, layout("C", 5 * US, "view", shape=[4, 8]))
    assert finding.advice.startswith("Give it an array of layout C where you can.")


def test_contiguous_arrays_that_differ_in_alignment_prove_the_alignment():
    copy, view = layout("C", 500 * US, "copy", 16), layout("aligned", 5 * US, "view", 64)
    (finding,) = found("DLP017", copy, view)
    assert finding.evidence["cause"] == "alignment"
    assert "a source at a multiple of 16 bytes and no more" in finding.summary
    assert finding.advice.startswith(
        "Allocate the source so that it begins at a multiple of 64 bytes: 64 bytes more than it"
        " needs, and of them the part from the first such address on."
    )


def test_what_differs_in_both_is_called_either():
    copy, view = layout("strided", 500 * US, "copy", 16), layout("C", 5 * US, "view", 64)
    (finding,) = found("DLP017", copy, view)
    assert finding.evidence["cause"] == "layout or alignment"
    assert "bytes, at a multiple of 64 bytes, as an array of layout C has them" in finding.advice


def test_processes_that_copy_by_alignment_are_told():
    result = path("f(x)", owner=varying(("view", 64), ("copy", 16), ("view", 128)))
    (finding,) = found("DLP017", result)
    assert (
        "a source at a multiple of 16 bytes and no more, and is a view of one at 64"
        in finding.summary
    )


def tried(aligned, sliced="copy", alignment=64):
    """What the instrument says of both places."""
    places = {
        "aligned": {"verdict": aligned, "alignment_bytes": alignment},
        "sliced": {"verdict": sliced, "alignment_bytes": 4},
    }
    return verdict("dependent" if aligned != sliced else "independent", **places)


def test_a_copy_in_every_process_that_aligned_memory_would_have_spared_is_told():
    result = path("f(x)", owner=owned("copy", alignment=16), alignment=tried("view"))
    (finding,) = found("DLP017", result)
    assert (
        "f(x) copies a source at a multiple of 16 bytes and no more, and is a view of one at 64"
        in finding.summary
    )
    assert "begins at a multiple of 64 bytes" in finding.advice


@pytest.mark.parametrize(
    "result",
    [
        path("f(x)", owner=owned("copy", alignment=16), alignment=tried("copy")),
        path("f(x)", owner=owned("copy", alignment=64), alignment=tried("view")),
        path("f(x)", owner=owned("copy", alignment=16), alignment=tried("refused")),
        path("f(x)", owner=owned("copy", alignment=16), alignment=verdict("dependent")),
        path("f(x)", owner=owned("copy", alignment=16), alignment=tried("view"), case=PROMISED),
        path("f(x)", owner=owned("view", alignment=64), alignment=tried("view")),
    ],
    ids=["copied anyway", "aligned already", "refused", "nothing tried", "promised", "a view"],
)
def test_what_was_tried_elsewhere_proves_no_layout_copy(result):
    assert found("DLP017", result) == []


@pytest.mark.parametrize(
    "results",
    [
        [path("f(x)", owner=varying(("view", 16), ("copy", 64)))],
        [path("f(x)", owner=varying(("view", 64), ("copy", 64)))],
        [path("f(x)", owner=varying(("view", None), ("copy", 16)))],
        [path("f(x)", owner=varying(("view", 64), ("copy", 16)), case=PROMISED)],
        [layout("F", 500 * US, "copy"), layout("C", 5 * US, "view", code="g(x)")],
        [layout("F", 500 * US, "copy"), layout("C", 5 * US, "view", shape=[9])],
        [
            layout("F", 500 * US, "copy", promise="copy"),
            layout("C", 5 * US, "view", promise="copy"),
        ],
        [layout("F", 9 * US, "copy"), layout("C", 5 * US, "view")],
        [layout("sliced", 500 * US, "copy", 64), layout("C", 5 * US, "view", 64)],
        [layout("F", 500 * US, "view"), layout("C", 5 * US, "view")],
    ],
    ids=[
        "the wider alignment copied",
        "the same alignment both",
        "alignment not known",
        "promised",
        "another path",
        "another shape",
        "promised in a layout",
        "as cheap",
        "nothing differs",
        "views both",
    ],
)
def test_no_layout_copy(results):
    assert found("DLP017", *results) == []


@pytest.mark.parametrize(
    ("promise", "owner", "severity"), [(PROMISED, "view", "error"), (NO_COPY, "copy", "warning")]
)
def test_a_broken_promise(promise, owner, severity):
    (finding,) = found("DLP018", path("f(x)", owner=owner, case=promise))
    assert finding.severity == severity
    assert (
        f"documented {'to copy' if owner == 'view' else 'not to copy'}, and is a {owner}"
        in finding.summary
    )


def test_one_process_that_breaks_the_promise_is_enough():
    result = path("f(x)", owner=varying(("view", 64), ("copy", 16), ("view", 64)), case=PROMISED)
    (finding,) = found("DLP018", result)
    assert (
        "is a view in 2 of 3 processes, where the source begins at a multiple of 64 bytes (a copy at 16): a write"
        in finding.summary
    )
    assert finding.evidence["view_alignment_bytes"] == 64
    assert finding.evidence["copy_alignment_bytes"] == 16


def test_a_sibling_at_a_narrower_address_tells_when_the_promise_is_broken():
    aligned = layout("aligned", 5 * US, "view", 64, promise="copy")
    sliced = layout("sliced", 500 * US, "copy", 4, promise="copy")
    (finding,) = found("DLP018", aligned, sliced)
    assert "is a view, where the source begins at a multiple of 64 bytes" in finding.summary


def test_an_array_that_was_not_looked_at_breaks_no_promise():
    places = {
        "aligned": {"verdict": "view", "alignment_bytes": 64},
        "sliced": {"verdict": "copy", "alignment_bytes": 4},
    }
    unseen = path("f(x)", owner=None, case=PROMISED, alignment=verdict("dependent", **places))
    assert found("DLP018", unseen) == []


def test_a_documented_view_that_copies_names_the_narrow_alignment():
    result = path("f(x)", owner=varying(("view", 64), ("copy", 32)), case=NO_COPY)
    (finding,) = found("DLP018", result)
    assert "where the source begins at a multiple of 32 bytes and no more" in finding.summary


@pytest.mark.parametrize(
    "results",
    [
        [path("f(x)", owner=varying(("view", 16), ("copy", 64)), case=PROMISED)],
        [path("f(x)", owner=varying(("view", None), ("copy", 16)), case=PROMISED)],
        [path("f(x)", case=PROMISED)],
        [
            layout("aligned", 5 * US, "view", 64, promise="copy"),
            layout("F", 500 * US, "copy", 4, promise="copy"),
        ],
    ],
    ids=["the wider copied", "not known", "nothing to tell it from", "another layout"],
)
def test_no_alignment_is_named_that_does_not_tell(results):
    (finding,) = found("DLP018", *results)
    assert "where the source begins" not in finding.summary
    assert "view_alignment_bytes" not in finding.evidence


def test_an_alias_that_nobody_can_write_is_worth_knowing_only():
    values = verdict("ok", changed={}, writable={"source": False, "result": False})
    (finding,) = found("DLP018", path("f(x)", case=PROMISED, values=values))
    assert finding.severity == "info"


def test_a_path_that_keeps_the_promise_is_advised():
    keeps = path("g(x)", 50 * US, "copy", case=PROMISED, early_write=verdict("safe"))
    (finding,) = found("DLP018", path("f(x)", case=PROMISED), keeps)
    assert finding.advice == "g(x) is a copy: 50 us instead of 5.0 us, 10 times as long."


def test_a_copy_that_is_kept_is_advised_without_its_time():
    keeps = path("g(x)", 0.1 * US, "copy", case=PROMISED, early_write=verdict("safe"),
                 fresh_source=verdict("kept"))  # fmt: skip
    (finding,) = found("DLP018", path("f(x)", case=PROMISED), keeps)
    assert finding.advice == "g(x) is a copy; a new array takes longer than the same again."


def at(code, owner, begins, time=5 * US, **parts):
    """A path that was seen at one alignment."""
    return path(code, time, owned(owner, alignment=begins), **parts)


@pytest.mark.parametrize(
    ("seen", "known"),
    [
        (at("g(x)", "copy", 16, case=PROMISED), "16 bytes and no more (not known elsewhere)"),
        (
            at("g(x)", "copy", 64, case=PROMISED, alignment=verdict("dependent")),
            "64 bytes and no more",
        ),
        (path("g(x)", owner=varying(("copy", 16), ("view", 64)), case=PROMISED), ""),
    ],
    ids=["seen at a narrower alignment only", "by the instrument", "both seen"],
)
def test_a_copy_that_may_be_a_view_elsewhere_is_not_advised_as_a_copy(seen, known):
    (finding, *_) = found("DLP018", at("f(x)", "view", 64, case=PROMISED), seen)
    assert finding.advice.startswith("No measured path from torch to numpy")
    assert ("g(x) copied where x begins at a multiple of" in finding.advice) is bool(known)
    assert known in finding.advice


def test_a_path_that_was_a_view_of_another_shape_is_not_advised_as_a_copy():
    bare = at("f(x)", "view", 64, case=PROMISED)
    other = at("g(x)", "copy", 64, case=PROMISED)
    elsewhere = at("g(x)", "view", 64, case={**PROMISED, "shape": [9]})
    assert "g(x) is a copy" in found("DLP018", bare, other)[0].advice
    assert all("g(x) is a copy" not in f.advice for f in found("DLP018", bare, other, elsewhere))


def test_a_copy_at_a_wide_alignment_is_one_at_a_narrow_one():
    results = at("f(x)", "view", 16, case=PROMISED), at("g(x)", "copy", 64, case=PROMISED)
    assert "g(x) is a copy" in found("DLP018", *results)[0].advice


def test_a_view_of_aligned_memory_is_no_view_wherever_the_source_begins():
    copies = at("f(x)", "copy", 128, 500 * US, case=NO_COPY)
    view, narrow = at("g(x)", "view", 128), at("h(x)", "copy", 16)
    (finding,) = found("DLP018", copies, view, narrow)
    assert finding.advice.startswith(
        "No measured path from torch to numpy is known to be a view wherever x begins: g(x) is one"
        " where x begins at a multiple of 64 bytes (not known elsewhere): 5.0 us instead of"
    )


def test_a_view_at_every_measured_alignment_is_advised_before_a_cheaper_one():
    copies = at("f(x)", "copy", 128, 500 * US, case=NO_COPY)
    cheap, view = at("g(x)", "view", 64, 1 * US), at("h(x)", "view", 16)
    assert found("DLP018", copies, cheap, view)[0].advice.startswith("h(x) is a view: 5.0 us")


def test_code_that_asks_for_no_copy_is_never_offered_as_one():
    alias = path("f(x)", case=PROMISED)
    none = path("g(x.numpy(), copy=False)", 1 * US, "copy", case=PROMISED)
    some = path("h(x.numpy())", 9 * US, "copy", case=PROMISED)
    assert "h(x.numpy()) is a copy" in found("DLP018", alias, none, some)[0].advice


def test_where_no_measured_path_copies_the_advice_says_that_it_was_not_measured():
    (finding,) = found("DLP018", path("f(x)", case=PROMISED))
    assert finding.advice.startswith("No measured path from torch to numpy")
    assert "Not measured: copy the source first, by its own framework's means" in (finding.advice)


def test_where_no_measured_path_is_a_view_the_advice_is_to_count_on_a_copy():
    (finding,) = found("DLP018", path("f(x)", owner="copy", case=NO_COPY))
    assert finding.advice == (
        "No measured path from torch to numpy is a safe view of it: count on a copy."
    )


def test_an_alias_that_nobody_can_write_needs_no_copy():
    values = verdict("ok", changed={}, writable={"source": False, "result": False})
    (finding,) = found("DLP018", path("f(x)", case=PROMISED, values=values))
    assert finding.advice == ""


@pytest.mark.parametrize(
    ("promise", "owner"),
    [
        (PROMISED, "copy"),
        (NO_COPY, "view"),
        (PROMISED, "unknown"),
        (NO_COPY, owned("copy", device="cuda")),
        ({"promise": None}, "copy"),
    ],
)
def test_a_promise_that_is_not_seen_broken(promise, owner):
    assert found("DLP018", path("f(x)", owner=owner, case=promise)) == []


def test_an_import_that_breaks_its_promise_from_everywhere_is_one_finding():
    results = [
        path("f(x)", case={**PROMISED, "producer": name}) for name in ("torch", "jax", "numpy")
    ]
    assert len(found("DLP018", *results)) == 1


def test_a_copy_of_an_uncertain_time_is_not_called_slow():
    wide = spread(500 * US, 0.99)
    assert found("DLP004", path("copy(x)", wide, "copy"), VIEW) == []


def test_processes_that_agree_on_a_broken_promise_are_all_counted():
    (finding,) = found("DLP018", path("f(x)", case={"promise": "copy"}, rounds=[0, 1, 2]))
    assert (finding.evidence["processes"], finding.evidence["broken"]) == (3, 3)


@pytest.mark.parametrize(
    ("copied", "viewed", "expected"),
    [(16, 128, 0), (16, 16, 1), (64, 64, 1), (64, 4096, 1), (128, 64, 1), (None, 64, 1)],
)
def test_a_view_of_a_better_aligned_source_is_no_view_instead(copied, viewed, expected):
    copy = path("copy(x)", 500 * US, owned("copy", alignment=copied))
    view = path("view(x)", 5 * US, owned("view", alignment=viewed))
    assert len(found("DLP004", copy, view)) == expected


def test_times_of_one_process_are_told_as_such_in_claim_and_advice():
    copy, view = path("copy(x)", once(1 * MS), "copy"), path("view(x)", once(5 * US))
    (finding,) = found("DLP004", copy, view)
    assert "~1.0 ms against ~5.0 us" in finding.summary
    assert "~5.0 us instead of ~1.0 ms, about 200 times as fast" in finding.advice


def test_a_view_whose_copy_elsewhere_needed_memory_is_no_advice_against_amplification():
    def needs(arrays):
        return {"peak_memory": verdict("ok", arrays=arrays)}

    greedy = path("f(x)", 900 * US, "copy", **needs(2.0))
    view = path("g(x)", 1 * US, **needs(1.0), alignment=tried("view"))
    copy = path("h(x)", 500 * US, "copy", **needs(1.0))
    (finding,) = found("DLP005", greedy, view, copy)
    assert finding.advice.startswith("h(x) needs 1.0")


def test_a_documented_copy_that_is_a_view_now_and_then_breaks_its_promise():
    looks = {"aligned": ["copy", "view", "copy", "copy"], "sliced": ["copy"] * 4}
    place = {"verdict": "copy", "alignment_bytes": 64}
    by_turns = verdict("inconstant", aligned=place, sliced=place, looks=looks)
    (finding,) = found("DLP018", path("f(x)", 1e4, "copy", case=PROMISED, alignment=by_turns))
    assert "is a view when tried apart" in finding.summary


@pytest.mark.parametrize(
    ("aligned", "told"), [((1.04, 1.0), True), ((1.04, 2.0), False), ((1.04, None), False)]
)
def test_copies_of_copies_say_where_alignment_decides(aligned, told):
    known = [{} if arrays is None else {"aligned_arrays": arrays} for arrays in aligned]
    greedy = [
        path(f"f{place}(x)", owner="copy", peak_memory=verdict("ok", arrays=2.03, **one))
        for place, one in enumerate(known)
    ]
    (finding,) = found("DLP005", *greedy)
    assert (
        "beside the source; where the source is aligned, 1.0 at most" in finding.summary
    ) is told
    assert finding.evidence["aligned_arrays"] == 1.04
