"""Rules on right and wrong, on lifetime, on crashes and on the handshake."""

from __future__ import annotations

import pytest
from rule_builders import US, found, owned, path, rules, spread, verdict

from dlprof.session.model import Result

pytestmark = pytest.mark.unit

NARROWED = verdict(
    "wrong",
    changed={
        "dtype": ["float64", "float32"],
        "values": {"different": 3, "of": 16, "first_index": 1},
    },
)
RIGHT = path("right(x)")
READ_ONLY = {"source": False, "result": True}


def wrong(code="f(x)", **changed):
    return path(code, values=verdict("wrong", changed=changed))


def test_a_changed_dtype_is_an_error_with_what_was_lost():
    (finding,) = found("DLP007", path("f(x)", values=NARROWED), RIGHT)
    assert finding.severity == "error"
    assert finding.summary == "f(x) makes float32 of float64: 3 of 16 values changed"
    assert "right(x) keeps the dtype" in finding.advice


def test_where_a_copy_was_asked_for_a_view_that_is_right_is_named_and_not_advised():
    copy = path("f(x)", owner="copy", case={"promise": "copy"}, values=NARROWED)
    (finding,) = found("DLP007", copy, RIGHT)
    advice = "No measured path of its kind keeps it; right(x) does, and is a view."
    assert finding.advice == advice
    assert finding.against is None
    (alone,) = found("DLP007", copy)
    assert alone.advice == "No measured path keeps it."


def test_values_that_a_dtype_cannot_hold_are_not_found_twice():
    assert rules(path("f(x)", values=NARROWED)) == ["DLP007"]


def test_the_same_change_from_every_producer_is_one_finding():
    results = [path("f(x)", case={"producer": name}, values=NARROWED) for name in ("a", "b")]
    assert len(found("DLP007", *results)) == 1


def test_each_producer_is_advised_what_helps_it():
    wrong = verdict("wrong", changed={"shape": [[4, 4], [16]]})
    results = [
        *(path("f(x)", values=wrong, case={"producer": name}) for name in "abc"),
        *(path(f"of_{name}(x)", 2 * US, case={"producer": name}) for name in "ab"),
        path("of_b(x)", 2 * US, case={"producer": "c"}),
    ]
    (finding,) = found("DLP008", *results)
    assert finding.advice == (
        "From a: of_a(x) gives the right one: 2.0 us instead of 5.0 us, 2.5 times as fast. From b,"
        " likewise c: of_b(x) gives the right one: 2.0 us instead of 5.0 us, 2.5 times as fast."
    )


def test_what_takes_as_long_is_not_told_as_if_it_took_less():
    wrong = path("f(x)", values=verdict("wrong", changed={"shape": [[4, 4], [16]]}))
    (finding,) = found("DLP008", wrong, path("g(x)", 5.1 * US))
    assert finding.advice == "g(x) gives the right one, and takes about as long: 5.1 us."


def test_a_wrong_shape_is_an_error():
    (finding,) = found("DLP008", wrong(shape=[[4, 4], [16]]), RIGHT)
    assert finding.severity == "error"
    assert "shape 16 instead of 4x4" in finding.summary
    assert "right(x) gives the right one" in finding.advice


def test_wrong_values_are_an_error():
    (finding,) = found("DLP008", wrong(values={"different": 3, "of": 16, "first_index": 1}))
    assert "3 of 16 values changed" in finding.summary


COUNTS = {"different": 1, "of": 16384, "first_index": 0}


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"source": COUNTS}, "f(x) changes its source: 1 of 16,384 values"),
        (
            {"source_writable": [True, False]},
            "f(x) changes whether its source can be written: it is read-only now",
        ),
        ({"earlier_result": COUNTS}, "f(x) overwrites its earlier result: 1 of 16,384 values"),
        (
            {"earlier_result": {"same_address": True}},
            "f(x) overwrites its earlier result: two held copies are at one address",
        ),
        (
            {"after_write": COUNTS},
            (
                "f(x) gives old values of a source that was written since an earlier call:"
                " 1 of 16,384 values"
            ),
        ),
        ({"source": "odd"}, "f(x) changes its source"),
        ({"source_writable": 7}, "f(x) changes whether its source can be written"),
        ({"earlier_result": {"different": "x"}}, "f(x) overwrites its earlier result"),
    ],
)
def test_what_a_call_changes_besides_its_result_is_an_error(changed, words):
    (finding,) = found("DLP008", wrong(**changed), RIGHT)
    assert (finding.severity, finding.summary) == ("error", words)
    assert finding.advice.startswith("right(x) does not")


def test_several_paths_that_change_their_source_are_one_finding():
    values = verdict("wrong", changed={"source": COUNTS})
    way = {"import": "one"}
    both = [path(f"f_{name}(x)", values=values, case=way) for name in "ab"]
    (finding,) = found("DLP008", *both)
    assert finding.summary == "f_a(x), f_b(x) change their source: 1 of 16,384 values"
    assert finding.advice == "No measured path does otherwise."


def test_who_needs_a_copy_is_told_that_only_a_view_does_otherwise():
    values = verdict("wrong", changed={"source": COUNTS})
    asked = {"promise": "copy"}
    copy = path("f(x)", owner="copy", values=values, case=asked)
    (finding,) = found("DLP008", copy, path("view(x)"))
    assert finding.advice == (
        "No measured path of its kind does otherwise; view(x) does, and is a view."
    )


def test_what_changes_its_source_is_not_advised():
    slow = path("slow(x)", 500 * US, owned("copy"))
    cheap = path("f(x)", US, owned("copy"), values=verdict("wrong", changed={"source": COUNTS}))
    assert "DLP012" not in rules(slow, cheap)


@pytest.mark.parametrize("values", [None, verdict("unknown", reason="no array"), verdict("ok")])
def test_values_that_were_not_seen_wrong_are_not_wrong(values):
    assert rules(path("f(x)", values=values)) == []


def test_wrong_values_of_one_process_are_enough():
    values = verdict(
        "varies", processes=[verdict("ok"), verdict("wrong", changed={"shape": [[1], [2]]})]
    )
    assert rules(path("f(x)", values=values)) == ["DLP008"]


KEPT = {"source": False, "result": False}


def test_a_writable_view_of_a_read_only_array_is_an_error_where_another_view_keeps_the_flag():
    writable = path("f(x)", values=verdict("ok", writable=READ_ONLY))
    (finding,) = found("DLP009", writable, path("g(x)", values=verdict("ok", writable=KEPT)))
    assert finding.severity == "error"
    assert finding.advice.startswith("g(x) keeps the flag")


def test_writable_views_without_a_choice_are_one_warning():
    views = [path(code, values=verdict("ok", writable=READ_ONLY)) for code in ("f(x)", "g(x)")]
    copy = path("h(x)", owner="copy", values=verdict("ok", writable=KEPT))
    (finding,) = found("DLP009", *views, copy)
    assert finding.severity == "warning"
    assert finding.summary.startswith("no measured view from")
    assert len(finding.results) == 2


@pytest.mark.parametrize(
    ("writable", "owner"),
    [
        ({"source": None, "result": True}, "view"),
        ({"source": False, "result": None}, "view"),
        ({"source": False, "result": False}, "view"),
        ({"source": True, "result": True}, "view"),
        (READ_ONLY, "copy"),
        (READ_ONLY, "unknown"),
    ],
)
def test_a_read_only_flag_that_is_not_seen_lost(writable, owner):
    assert found("DLP009", path("f(x)", owner=owner, values=verdict("ok", writable=writable))) == []


DIED = verdict("unknown", reason="killed by SIGSEGV", worker="crashed")


def kept(**per_conversion):
    names = ("bytes", "references", "objects")
    found = {f"{name}_per_conversion": per_conversion.get(name, 0.0) for name in names}
    return path("f(x)", lifetime=verdict("retained", **found, conversions=200))


def test_bytes_that_stay_behind_are_an_error_and_objects_a_warning():
    (finding,) = found("DLP010", kept(bytes=65536.0))
    assert finding.severity == "error"
    assert "64 KiB" in finding.summary
    (finding,) = found("DLP010", kept(objects=2.0, references=1.0))
    assert finding.severity == "warning"
    assert "1 references to the source, 2 blocks of Python's memory" in finding.summary
    assert "at every conversion" in finding.summary


def test_what_stays_behind_at_some_conversions_is_told_on_average():
    (finding,) = found("DLP010", kept(bytes=21657.0, objects=0.36))
    assert "leaves something behind at some conversions" in finding.summary
    assert finding.summary.endswith("21.15 KiB, 0.36 blocks of Python's memory for each on average")


def test_a_few_bytes_beside_a_reference_are_no_error():
    (finding,) = found("DLP010", kept(bytes=20.0, references=0.33))
    assert finding.severity == "warning"
    assert finding.summary.endswith(": 0.33 references to the source for each on average")


def test_a_few_references_are_told_where_they_are_what_stays():
    (finding,) = found("DLP010", kept(references=0.07))
    assert finding.summary.endswith(": 0.07 references to the source for each on average")


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ({"lifetime": verdict("safe")}, True),
        ({}, False),
        ({"lifetime": verdict("safe"), "early_write": DIED}, False),
        ({"lifetime": verdict("safe"), "peak_memory": DIED}, False),
    ],
    ids=["looked at", "not looked at", "died in early writes", "died in peak memory"],
)
def test_only_what_was_seen_to_leave_nothing_is_advised_to_who_leaves_something(parts, told):
    (finding,) = found("DLP010", kept(bytes=65536.0), path("g(x)", **parts))
    assert ("g(x) leaves nothing" in finding.advice) is told


def test_a_result_that_changed_with_its_source_dangles():
    (finding,) = found(
        "DLP011", path("f(x)", lifetime=verdict("dangling", changed_after_drop=True))
    )
    assert finding.severity == "error"
    assert "its values changed" in finding.summary


LOST = verdict("dangling", changed_after_drop=True)


def test_views_by_several_ways_in_that_are_all_lost_are_one_finding_of_the_producer():
    views = [path(code, lifetime=LOST) for code in ("f(x)", "g(x)", "h(x)")]
    (finding,) = found("DLP011", *views, path("c(x)", owner="copy", lifetime=verdict("safe")))
    assert len(finding.results) == 3
    assert finding.summary.endswith("so it is with every measured view from torch to numpy")


def test_all_views_that_are_lost_are_those_of_such_an_array_where_there_were_others():
    views = [path(code, lifetime=LOST) for code in ("f(x)", "g(x)")]
    larger = path("f(x)", lifetime=verdict("safe"), case={"shape": [64, 64]})
    (finding,) = found("DLP011", *views, larger)
    assert "every measured view of such an array from torch to numpy" in finding.summary


def test_one_view_that_keeps_the_source_leaves_the_fault_with_the_ways_in():
    views = [path(code, lifetime=LOST) for code in ("f(x)", "g(x)")]
    assert len(found("DLP011", *views, path("h(x)", lifetime=verdict("safe")))) == 2


@pytest.mark.parametrize("stage", ["lifetime after drop", "lifetime"])  # the latter until 0.1
def test_a_process_that_died_of_reading_proves_it_too(stage):
    lifetime = verdict("dangling", reason=f"killed by SIGSEGV (Segmentation fault) during {stage}")
    assert rules(path("f(x)", lifetime=lifetime)) == ["DLP011"]


def test_a_process_that_died_of_converting_again_and_again_is_a_crash():
    reason = "killed by SIGABRT (Aborted) during lifetime repetition"
    lifetime = verdict("unknown", reason=reason, changed_after_drop=False)
    (finding,) = found("DLP016", path("f(x)", lifetime=lifetime))
    assert finding.severity == "error"
    assert rules(path("f(x)", lifetime=lifetime)) == ["DLP016"]
    assert "during lifetime repetition" in finding.summary


def test_values_that_had_changed_before_it_died_dangle():
    reason = "killed by SIGABRT (Aborted) during lifetime repetition"
    lifetime = verdict("dangling", reason=reason, changed_after_drop=True)
    (finding,) = found("DLP011", path("f(x)", lifetime=lifetime))
    assert "its values changed" in finding.summary


def test_a_process_that_was_killed_from_outside_proves_nothing_of_its_memory():
    lifetime = verdict("dangling", reason="killed by SIGKILL (Killed) during lifetime")
    assert rules(path("f(x)", lifetime=lifetime)) == ["DLP016"]


@pytest.mark.parametrize("word", ["safe", "unknown"])
def test_an_innocent_lifetime(word):
    assert rules(path("f(x)", lifetime=verdict(word, reason="no values can be read"))) == []


TORN = verdict("unsafe", sizes_bytes={"4096": "whole", "65536": "torn"})
WHOLE = verdict("safe", sizes_bytes={"4096": "whole"})


ENDS_WHOLE = spread(9 * US, same_as="host_time")
"""The time of a call whose consumer has nothing to wait for."""


def test_a_torn_copy_is_an_error_that_names_a_whole_one():
    safe = path("g(x)", ENDS_WHOLE, "copy", early_write=WHOLE)
    (finding,) = found("DLP020", path("f(x)", owner="copy", early_write=TORN), safe)
    assert finding.severity == "error"
    assert "changed the copy of 64 KiB" in finding.summary
    assert "g(x) is not torn" in finding.advice


def test_a_copy_that_returns_early_and_was_whole_is_no_advice_beside_one_that_was_torn():
    whole = path("g(x)", 1 * US, "copy", early_write=WHOLE)
    torn = path("f(x)", owner="copy", early_write=TORN)
    (finding,) = found("DLP020", torn, whole)
    assert finding.advice == "Wait for the result before you write the source."


@pytest.mark.parametrize(
    ("ready", "producer", "advised"),
    [
        (1 * US, "torch", False),
        (1 * US, "numpy", False),
        (ENDS_WHOLE, "torch", True),
        (ENDS_WHOLE, "numpy", True),
    ],
    ids=["of the pair", "of another producer", "ends whole", "ends whole, another producer"],
)
def test_no_rule_advises_a_copy_that_may_be_torn(ready, producer, advised):
    asked = {"producer": producer, "promise": "copy"}
    other = path("g(x)", ready, "copy", early_write=WHOLE, case=asked)
    alias = path("alias(x)", case=asked)
    torn = path("f(x)", owner="copy", early_write=TORN, case={"promise": "copy"})
    (finding,) = found("DLP018", alias, other, torn)
    assert ("g(x) is a copy" in finding.advice) is advised
    assert advised or "g(x) copies, but wait for the result before" in finding.advice


def test_a_copy_to_wait_for_is_told_before_one_that_is_none_elsewhere():
    asked = {"promise": "copy"}
    narrow = path("g(x)", 1 * US, owned("copy", alignment=16), early_write=WHOLE, case=asked)
    torn = path("f(x)", 9 * US, owner="copy", early_write=TORN, case=asked)
    alias = path("alias(x)", case=asked)
    (finding,) = found("DLP018", alias, narrow, torn)
    assert "f(x) copies, but wait for the result before" in finding.advice
    leaks = Result.model_validate(
        {**torn.model_dump(by_alias=True), "lifetime": verdict("retained")}
    )
    (finding,) = found("DLP018", alias, leaks)
    assert "f(x)" not in finding.advice


def test_where_a_call_with_nothing_to_wait_for_was_torn_no_copy_of_the_pair_is_advised():
    torn = path("f(x)", ENDS_WHOLE, "copy", early_write=TORN)
    (finding,) = found("DLP020", torn, path("g(x)", ENDS_WHOLE, "copy", early_write=WHOLE))
    assert "g(x)" not in finding.advice


def test_a_view_is_no_advice_against_a_torn_copy():
    (finding,) = found("DLP020", path("f(x)", owner="copy", early_write=TORN), RIGHT)
    assert "right(x)" not in finding.advice


def test_an_import_that_tears_its_copies_from_everywhere_is_one_finding():
    results = [
        path(f"f{name}(x)", owner="copy", early_write=TORN, case={"producer": name})
        for name in "abcde"
    ]
    (finding,) = found("DLP020", *results)
    assert "and 2 more still read their source" in finding.summary


def torn_at(size_bytes):
    return verdict("unsafe", sizes_bytes={str(size_bytes): "torn"})


def test_a_finding_of_torn_copies_leads_with_the_one_that_was_torn_at_its_first_try():
    sizes = (4 << 10, 1 << 20, 256 << 20, 16 << 20)
    results = [
        path(f"f{place}(x)", owner="copy", early_write=torn_at(size))
        for place, size in enumerate(sizes)
    ]
    (finding,) = found("DLP020", *results)
    assert finding.results == (3, 2, 1, 0)
    assert finding.evidence == {"size_bytes": 16 << 20}
    assert finding.summary.endswith(
        "changed the copy of 16 MiB; that of f0(x) already at 4 KiB, in one of a few tries"
    )


def test_a_torn_copy_of_unknown_size_leads_no_finding_of_others():
    unknown = path("f(x)", owner="copy", early_write=verdict("unsafe"))
    (finding,) = found("DLP020", unknown, path("g(x)", owner="copy", early_write=torn_at(4096)))
    assert finding.results == (1, 0)


def lost(status, reason, code="f(x)"):
    return path(code, None, None, status=status, reason=reason, values=None)


@pytest.mark.parametrize(
    ("status", "reason", "words"),
    [
        (
            "crashed",
            "killed by SIGABRT (Aborted) during first call (round 2 of 3; 1 before it worked)",
            "f(x): killed by SIGABRT (Aborted) during first call",
        ),
        (
            "timeout",
            "no answer within 60 s during values",
            "f(x): no answer within 60 s during values",
        ),
        ("crashed", "raised SystemExit: 3", "f(x): raised SystemExit: 3"),
        ("crashed", None, "f(x): crashed"),
    ],
)
def test_a_crash_is_told_with_its_end(status, reason, words):
    (finding,) = found("DLP016", lost(status, reason))
    assert (finding.severity, finding.summary) == ("error", words)


def test_the_same_end_of_several_paths_is_one_finding_that_names_a_path_that_works():
    reason = "killed by SIGABRT (Aborted) during first call"
    results = [lost("crashed", reason, f"f{number}(x)") for number in range(5)]
    (finding,) = found("DLP016", *results, RIGHT)
    assert finding.results == (0, 1, 2, 3, 4)
    assert "f0(x), f1(x), f2(x) and 2 more: killed" in finding.summary
    assert finding.advice == "right(x) works."


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        ("unsupported", "TypeError: no"),
        ("skipped", "the run was stopped before it"),
        ("invalid", "throttled"),
        ("timeout", "no answer within 180 s during import"),
        ("crashed", "killed by SIGSEGV (Segmentation fault) during create"),
        ("crashed", "the probe is faulty: it has no create"),
        ("crashed", "broken answer from the worker: KeyError: 'x'"),
    ],
)
def test_not_every_end_is_a_crash_of_the_conversion(status, reason):
    assert rules(lost(status, reason)) == []


@pytest.mark.parametrize("name", ["ordering", "early_write", "peak_memory"])
def test_a_process_lost_in_the_diagnosis_is_found(name):
    parts = {
        name: verdict("unknown", reason=f"killed by SIGSEGV (Segmentation fault) during {name}")
    }
    (finding,) = found("DLP016", path("f(x)", **parts))
    assert finding.severity == "error"


def test_a_diagnosis_that_took_too_long_is_no_hang():
    late = verdict("unknown", reason="no answer within 60 s during lifetime")
    (finding,) = found("DLP016", path("f(x)", lifetime=late))
    assert finding.severity == "info"


REFUSED = {"call": "__dlpack__", "outcome": "TypeError: no max_version", "ns": 900}
ANSWERED = {"call": "__dlpack__", "outcome": "returned", "ns": 500}
WORKED = {"call": "import", "outcome": "returned"}


def test_a_refused_call_that_is_followed_by_another_is_a_retry():
    (finding,) = found("DLP015", path("f(x)", handshake=[REFUSED, ANSWERED, WORKED]))
    assert finding.severity == "info"
    assert "torch refuses the first __dlpack__ (TypeError: no max_version)" in finding.summary


@pytest.mark.parametrize(
    ("handshake", "protocol"),
    [
        ([], "dlpack"),
        ([ANSWERED, WORKED], "dlpack"),
        ([REFUSED, WORKED], "dlpack"),
        ([REFUSED, ANSWERED, {"call": "import", "outcome": "ValueError: no"}], "dlpack"),
        ([REFUSED, ANSWERED, WORKED], "array-interface"),
        ([{"call": "export", "outcome": "PyCapsule"}], "dlpack-capsule"),
        ([REFUSED, {}, WORKED], "dlpack"),
    ],
    ids=["none", "answered", "given up", "failed", "buffer protocol", "capsule", "broken"],
)
def test_no_retry(handshake, protocol):
    assert rules(path("f(x)", handshake=handshake, case={"protocol": protocol})) == []


def test_a_result_of_another_device_is_no_advice():
    elsewhere = path("right(x)", owner=owned("view", device="cuda"))
    (finding,) = found("DLP008", wrong(shape=[[4, 4], [16]]), elsewhere)
    assert "right(x)" not in finding.advice


ELSEWHERE = verdict(
    "unsafe",
    sizes_bytes={"4096": "view", "65536": "view"},
    unaligned_bytes={"4096": "whole", "65536": "torn"},
    torn_layout="sliced",
)


def by_alignment(sliced="copy"):
    places = {
        "aligned": {"verdict": "view", "alignment_bytes": 64},
        "sliced": {"verdict": sliced, "alignment_bytes": 4},
    }
    return verdict("dependent", **places)


def test_a_view_whose_copies_of_other_memory_are_torn_is_an_error_that_says_where():
    (finding,) = found("DLP020", path("f(x)", early_write=ELSEWHERE, alignment=by_alignment()))
    assert finding.severity == "error"
    assert "where it copies: it is a view of aligned memory" in finding.summary
    assert "changed the copy of 64 KiB, of a source that is not aligned" in finding.summary


def test_copies_and_views_that_are_torn_elsewhere_are_told_apart():
    torn = path("g(x)", owner="copy", early_write=TORN)
    view = path("f(x)", early_write=ELSEWHERE, alignment=by_alignment())
    assert len(found("DLP020", view, torn)) == 2


@pytest.mark.parametrize(("sliced", "advised"), [("copy", False), ("refused", True)])
def test_a_view_that_copies_other_memory_is_no_advice_where_such_copies_are_torn(sliced, advised):
    view = path("g(x)", 1 * US, alignment=by_alignment(sliced))
    torn = path("h(x)", 90 * US, owner="copy", early_write=TORN, case={"producer": "cupy"})
    dear = path("f(x)", spread(900 * US, same_as="host_time"), "copy")
    (finding,) = found("DLP004", view, torn, dear) or [None]
    assert (finding is not None and "g(x)" in finding.advice) is advised


def test_a_copy_that_may_be_torn_is_replaced_by_a_view_that_is_no_worse():
    view = path("g(x)", 1 * US, early_write=ELSEWHERE, alignment=by_alignment())
    torn = path("f(x)", 900 * US, "copy", early_write=TORN)
    (finding,) = found("DLP004", view, torn)
    assert "g(x) is a view" in finding.advice


@pytest.mark.parametrize("name", ["ordering", "lifetime"])
def test_a_path_of_which_the_diagnosis_could_not_tell_is_no_advice(name):
    hung = verdict("unknown", reason="no answer within 5 s")
    fast = path("g(x)", 1 * US, **{name: hung})
    slow = path("f(x)", 900 * US)
    assert found("DLP012", fast, slow) == []
    assert len(found("DLP012", path("g(x)", 1 * US), slow)) == 1
