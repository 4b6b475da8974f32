"""The sentences that answer the user."""

from __future__ import annotations

from dataclasses import replace

import pytest
from builders import lost_row, make_measure, make_result, make_row, timed

from dlprof.reports.answer import answers, slower
from dlprof.reports.result_row import row_of
from dlprof.session.model import ProcessSamples

pytestmark = pytest.mark.unit

MICROSECOND = 1000.0


VIEW = timed("view(x)", MICROSECOND)
COPY = timed("copy(x)", 50 * MICROSECOND, owner="copy", promise="copy")
WRONG = timed("wrong(x)", 0.1 * MICROSECOND, changed=("float64 to float32",))


def test_the_cheapest_safe_path_is_named_with_what_it_is_and_costs():
    assert answers([VIEW]) == ["cheapest that is safe: view(x), a view, 1.00 ±0.04 us."]


@pytest.mark.parametrize(
    ("owner", "words"),
    [
        ("view", "a view"),
        ("copy", "a copy"),
        ("varies", "a view in some processes and a copy in others"),
        ("?", "view or copy unknown"),
        ("-", "view or copy unknown"),
    ],
)
def test_the_answer_says_whether_it_is_a_view_or_a_copy(owner, words):
    (answer,) = answers([timed("f(x)", 5.0, owner=owner)])
    assert f"f(x), {words}, " in answer


def test_the_slowest_is_named_with_its_time_and_ratio():
    (answer,) = answers([timed("slow(x)", 27_000 * MICROSECOND), VIEW])
    assert answer.endswith("The slowest, slow(x), takes 27 ms: 27,000 times as long.")


def test_a_slower_path_that_changes_values_is_not_compared():
    wrong = timed("wrong(x)", 9 * MICROSECOND, changed=("shape",))
    assert answers([wrong, VIEW]) == ["cheapest that is safe: view(x), a view, 1.00 ±0.04 us."]


def test_a_cheaper_path_that_changes_values_is_not_the_answer():
    (answer,) = answers([WRONG, VIEW])
    assert answer.startswith("cheapest that is safe: view(x)")


def test_a_cheaper_path_that_broke_in_a_later_round_is_not_the_answer():
    crashed = timed("crash(x)", 1.0, status="crashed", reason="killed by SIGSEGV")
    (answer,) = answers([crashed, VIEW])
    assert answer.startswith("cheapest that is safe: view(x)")


def test_paths_that_cannot_be_told_apart_are_named():
    (answer,) = answers([VIEW, timed("same(x)", 1.04 * MICROSECOND), COPY])
    assert "Not told apart from it: same(x)." in answer
    assert "copy(x)." not in answer.partition("Not told apart")[2].partition(". ")[0]


def test_a_user_who_needs_a_copy_is_told_the_cheapest():
    (answer,) = answers([timed("dear(x)", 90 * MICROSECOND, owner="copy"), COPY, VIEW])
    assert answer.endswith("If you need a copy: copy(x), 50 ±2 us.")


@pytest.mark.parametrize(
    "other",
    [
        {"code": "g(x.numpy(), copy=False)", "promise": "copy"},
        {"code": "g(x)", "promise": "view"},
    ],
)
def test_a_path_that_asks_for_no_copy_is_not_offered_as_one(other):
    cheap = timed(median_ns=2 * MICROSECOND, owner="copy", **other)
    assert answers([cheap, COPY, VIEW])[0].endswith("If you need a copy: copy(x), 50 ±2 us.")
    assert answers([cheap, VIEW])[0].endswith(
        "If you need a copy: no measured path is known to be a safe one."
    )


def test_a_copy_that_no_documentation_speaks_of_is_offered_as_such():
    (answer,) = answers([VIEW, timed("g(x)", 50 * MICROSECOND, owner="copy")])
    assert answer.endswith("If you need a copy: g(x), 50 ±2 us, which is not documented to copy.")


def seen_at(code, median_ns, owner, alignment, **case):
    evidence = {"verdict": owner, "evidence": {"source_alignment_bytes": alignment}}
    interval = (median_ns * 0.96, median_ns * 1.04)
    case = {"import": code, "promise": "copy" if owner == "copy" else None, **case}
    return row_of(make_result(code, median_ns, interval, case=case, ownership=evidence))


def test_a_copy_that_was_seen_of_narrow_memory_only_is_not_offered():
    view = seen_at("f(x)", 1e3, "view", 64)
    narrow, wide = (seen_at("g(x)", 2e3, "copy", 16), seen_at("h(x)", 3e3, "copy", 128))
    assert "If you need a copy: h(x)" in answers([view, narrow, wide])[0]
    assert "If you need a copy: no measured path" in answers([view, narrow])[0]


def test_a_view_that_copied_elsewhere_in_the_session_is_told_with_the_condition():
    rows = seen_at("f(x)", 1e3, "view", 64), seen_at("f(x)", 1e3, "copy", 16, shape=[9])
    assert "f(x), a view where x begins at a multiple of 64 bytes, 1.00" in answers(rows)[0]


def test_what_could_not_be_checked_is_not_called_safe():
    values = {"verdict": "unknown", "evidence": {"reason": "all values are equal"}}
    unchecked = row_of(make_result("f(x)", 1e3, (960.0, 1040.0), values=values))
    (answer,) = answers([unchecked])
    assert answer.startswith("cheapest, but its values could not be checked (all values are equal)")
    assert answer.endswith("): f(x), a view, 1.00 ±0.04 us.")
    assert answers([unchecked, timed("g(x)", 9e3)])[0].startswith("cheapest that is safe: g(x)")


def test_values_that_could_not_be_read_are_not_called_checked():
    notes = ["ownership: no", "values: TypeError: no array"]
    lost = row_of(make_result("f(x)", 1e3, (960.0, 1040.0), values=None, notes=notes))
    assert lost.unchecked == "TypeError: no array"
    silent = row_of(make_result("f(x)", 1e3, (960.0, 1040.0), values=None))
    assert "values could not be checked (nothing looked at them)" in answers([silent])[0]


def test_a_user_whose_cheapest_path_is_a_copy_is_told_of_no_other():
    (answer,) = answers([COPY, timed("dear(x)", 51 * MICROSECOND, owner="copy")])
    assert "If you need a copy" not in answer


def test_a_cheaper_path_that_breaks_its_documentation_is_not_the_answer():
    (answer,) = answers([timed("alias(x)", 1.0, promise="copy"), COPY])
    assert answer.startswith("cheapest that is safe: copy(x)")


def test_of_many_paths_that_cannot_be_told_apart_three_are_named():
    same = [timed(f"same{index}(x)", (1.001 + index / 1000) * MICROSECOND) for index in range(6)]
    (answer,) = answers([VIEW, *same])
    assert "Not told apart from it: same0(x), same1(x), same2(x) and 3 more." in answer


def test_no_path_measured_is_said():
    assert answers([lost_row()]) == ["no path could be measured."]


def test_only_wrong_paths_are_said():
    assert answers([WRONG, lost_row()]) == ["no path kept shape, dtype and values."]


def test_paths_that_broke_later_are_not_called_wrong():
    (answer,) = answers([timed("crash(x)", 1.0, status="crashed", reason="killed by SIGSEGV")])
    assert "no path kept" not in answer
    assert answer == "no path was measured to the end, kept every value and does as documented."


def test_nothing_has_no_answer():
    assert answers([]) == []


def test_every_array_has_an_answer_of_its_own():
    rows = [
        timed("f(x)", 1.0, shape="4x4"),
        timed("f(x)", 1.0, shape="8x8"),
        timed("g(x)", 0.5, shape="4x4"),
    ]
    small, large = answers(rows)
    assert small.startswith("4x4: cheapest that is safe: g(x)")
    assert large.startswith("8x8: cheapest that is safe: f(x)")


@pytest.mark.parametrize(
    ("axes", "name"),
    [
        ({"pair": "numpy → torch"}, "numpy → torch"),
        ({"dtype": "int8"}, "int8"),
        ({"layout": "F"}, "F"),
        ({"device": "cuda"}, "cuda"),
        ({"shape": "8x8", "layout": "F"}, "8x8 F"),
    ],
)
def test_an_array_is_named_by_what_tells_it_from_the_others(axes, name):
    _, other = answers([timed("f(x)", 1.0), timed("f(x)", 1.0, **axes)])
    assert other.startswith(f"{name}: cheapest")


@pytest.mark.parametrize(
    ("best", "other", "ratio", "expected"),
    [
        ((95.0, 105.0), (106.0, 120.0), 1.10, True),
        ((95.0, 107.0), (106.0, 120.0), 1.10, False),
        ((99.9, 100.1), (103.9, 104.1), 1.04, False),
        (None, (106.0, 120.0), 1.10, False),
        ((95.0, 105.0), None, 1.99, False),
        ((95.0, 105.0), None, 2.01, True),
        (None, None, 2.01, True),
    ],
)
def test_slower_is_five_percent_and_apart_or_twice_without_an_interval(
    best, other, ratio, expected
):
    rows = make_row("a", 100.0, best), make_row("b", 100.0 * ratio, other)
    assert slower(*rows) is expected


def test_nothing_is_slower_than_a_time_of_zero():
    assert not slower(make_row("a", 0.0, None), make_row("b", 100.0, None))
    (answer,) = answers([make_row("a", 0.0, None), make_row("b", 100.0, None)])
    assert "times as long" not in answer


def test_what_was_not_measured_is_not_slower():
    assert not slower(VIEW, lost_row())


def test_modes_are_shown_in_the_answer():
    modes = [{"median_ns": 100.0, "rounds": [0]}, {"median_ns": 400.0, "rounds": [1]}]
    row = make_row("f(x)", ready=make_measure(250.0, None, modes=modes))
    assert "100 | 400 ns" in answers([row])[0]


def test_the_slowest_in_modes_is_told_by_its_modes():
    modes = [{"median_ns": ns, "rounds": [at]} for at, ns in enumerate((400.0, 900.0, 5000.0))]
    slow = make_row("slow(x)", ready=make_measure(900.0, None, modes=modes))
    (answer,) = answers([make_row("fast(x)", 100.0, (90.0, 110.0)), slow])
    assert "The slowest, slow(x), takes 400 | 900 | 5,000 ns: at least 4.0 times as long." in answer


def test_modes_that_come_near_are_not_told_apart():
    modes = [{"median_ns": ns, "rounds": [at]} for at, ns in enumerate((150.0, 900.0, 5000.0))]
    slow = make_row("slow(x)", ready=make_measure(900.0, None, modes=modes))
    (answer,) = answers([make_row("fast(x)", 100.0, (90.0, 110.0)), slow])
    assert "Not told apart from it: slow(x)." in answer


def test_without_a_diagnosis_nothing_is_called_safe():
    (answer,) = answers([row_of(make_result("f(x)", lifetime=None, early_write=None))])
    assert answer.startswith("cheapest that is right (nothing looked for races or lost memory)")


def test_a_path_whose_lifetime_could_not_be_seen_is_not_called_safe():
    waits = {"verdict": "synchronous", "evidence": {}}
    (answer,) = answers([row_of(make_result("f(x)", lifetime=None, ordering=waits))])
    assert answer.startswith("cheapest that is right (whether it outlives its source could not be")


def wide(code, *medians_ns):
    """A path whose processes differ so much that its interval says nothing."""
    middle = sorted(medians_ns)[len(medians_ns) // 2]
    processes = [
        {"round": number, "loops": 1, "samples_ns": [median]}
        for number, median in enumerate(medians_ns)
    ]
    result = make_result(code, middle, (middle / 1000, middle * 1000))
    ready = result.ready_time.model_copy(
        update={"processes": [ProcessSamples(**one) for one in processes]}
    )
    return row_of(result.model_copy(update={"ready_time": ready}))


def test_processes_that_are_all_far_apart_are_told_apart_whatever_the_intervals():
    (answer,) = answers([wide("fast(x)", 2000, 2100), wide("slow(x)", 58_000, 16_000_000)])
    assert "Not told apart" not in answer


def test_processes_that_come_near_each_other_are_not():
    (answer,) = answers([wide("fast(x)", 2000, 40_000), wide("slow(x)", 58_000, 16_000_000)])
    assert "Not told apart from it: slow(x)" in answer


def test_a_view_that_depends_on_alignment_is_told_with_the_condition():
    row = make_row("f(x)", 1000.0, (950.0, 1050.0), depends="a view at 64, else a copy")
    assert "f(x), a view since the source is aligned, " in answers([row])[0]


def test_a_view_that_is_refused_of_other_memory_is_told_so():
    depends = "a view of a source at a multiple of 64 bytes, refused one element further"
    row = make_row("f(x)", 1000.0, (950.0, 1050.0), depends=depends)
    assert "f(x), a view since the source is aligned, and refused elsewhere, " in answers([row])[0]


def test_a_call_that_leaves_nothing_to_look_at_is_not_called_safe():
    quick = make_row("bind(x)", 1000.0, (950.0, 1050.0), owner="?", unseen=True)
    seen = make_row("f(x)", 2000.0, (1950.0, 2050.0))
    assert answers([quick, seen])[0].startswith("cheapest that is safe: f(x)")


def test_where_nothing_can_be_looked_at_that_is_the_answer():
    quick = make_row("bind(x)", 1000.0, (950.0, 1050.0), owner="?", unseen=True)
    assert answers([quick]) == [
        "no path leaves anything behind that could be looked at: none is called safe."
    ]


def test_times_of_one_process_are_told_as_such():
    (answer,) = answers([make_row("f(x)", 1000.0, None), make_row("g(x)", 220_000.0, None)])
    assert answer.endswith(
        "f(x), a view, ~1.0 us. The slowest, g(x), takes ~220 us: about 220 times as long."
    )


def test_a_copy_that_is_one_wherever_it_is_not_refused_is_not_blamed_on_alignment():
    depends = "a copy of a source at a multiple of 64 bytes, refused one element further"
    row = make_row("f(x)", 1000.0, (950.0, 1050.0), owner="copy", depends=depends)
    assert "f(x), a copy, " in answers([row])[0]


def test_paths_that_only_findings_speak_against_are_not_said_to_lose_values():
    row = make_row("f(x)", 1000.0, (950.0, 1050.0), owner="copy", suspect=True)
    (answer,) = answers([row])
    assert answer.startswith(
        "no path is called safe: see the findings. The cheapest that is right:"
    )
    assert answer.endswith("; not safe: see the findings.")


def test_the_slowest_whose_processes_differ_widely_is_told_by_its_range():
    (answer,) = answers([timed("view(x)", 500), wide("copy(x)", 5_000, 8_000_000, 14_000_000)])
    assert "The slowest, copy(x), takes 5.0 us-14 ms: at least 10 times as long." in answer


@pytest.mark.parametrize("name", ["lifetime", "ordering"])
def test_a_path_of_which_the_diagnosis_could_not_tell_is_not_called_safe(name):
    hung = {"verdict": "unknown", "evidence": {"reason": "no answer within 5 s"}}
    (answer,) = answers([row_of(make_result("f(x)", **{name: hung}))])
    assert answer.startswith("cheapest that is right (whether it ")
    assert "is not known: no answer within 5 s): f(x)" in answer


@pytest.mark.parametrize(("moot", "safe"), [(True, True), (False, False)])
def test_a_copy_that_nobody_could_tear_is_safe_whatever_was_tried(moot, safe):
    early = {"verdict": "unknown", "evidence": {"reason": "it could not be told", "moot": moot}}
    owner = {"verdict": "copy", "evidence": {}}
    (answer,) = answers([row_of(make_result("f(x)", early_write=early, ownership=owner))])
    assert answer.startswith("cheapest that is safe") is safe


def test_of_copies_that_are_not_told_apart_the_plainest_is_offered():
    rows = [
        timed("view(x)", 1_000),
        timed("copy(by(a, detour(x)))", 50_000, owner="copy", promise="copy"),
        timed("copy(x)", 50_100, owner="copy", promise="copy"),
        timed("c(x)", 90_000, owner="copy", promise="copy"),
    ]
    assert "If you need a copy: copy(x), 50" in answers(rows)[0]


def test_a_plainer_copy_that_takes_longer_is_not_offered_for_its_wide_interval():
    rows = [
        timed("view(x)", 1_000),
        timed("plain(x, copy=True)", 50_000, width=0.4, owner="copy", promise="copy"),
        timed("f(x)", 80_000, width=0.9, owner="copy", promise="copy"),
    ]
    assert "If you need a copy: plain(x, copy=True)," in answers(rows)[0]


@pytest.mark.parametrize(
    ("host_ms", "queued_ms", "text"),
    [
        (44, 45, "waits all 45 ms"),
        (46, 45, "waits all 45 ms"),
        (20, 45, "waits 20 of 45 ms"),
        (0.5, 45, "waits 500 us of 45 ms"),
        (44, None, "waits 44 ms"),
    ],
)
def test_a_wait_is_told_with_the_queue_that_the_call_was_behind(host_ms, queued_ms, text):
    loaded = {"host_ns": host_ms * 1e6, "queued_ns": queued_ms and queued_ms * 1e6}
    order = {"verdict": "host-sync", "evidence": {"loaded": loaded}}
    assert row_of(make_result("f(x)", ordering=order)).loaded == text


@pytest.mark.parametrize(
    ("waits", "text"),
    [("host-sync", "unordered, waits all 45 ms"), ("device-sync", "unordered, waits all 45 ms"),
     (None, "unordered"), ("sleeps", "unordered"), ([], "unordered")],
)  # fmt: skip
def test_a_race_that_waits_is_told_with_both(waits, text):
    evidence = {"loaded": {"host_ns": 45e6, "queued_ns": 45e6}, "waits": waits}
    order = {"verdict": "unordered", "evidence": evidence}
    assert row_of(make_result("f(x)", ordering=order)).loaded == text


def test_a_copy_that_nobody_looked_at_for_late_reads_is_offered_with_that_said():
    unlooked = timed("copy(x)", 50_000, owner="copy", promise="copy", unwritten=True)
    assert (
        "copy(x), 50 ±2 us (not looked at: whether it still reads its source)."
        in (answers([VIEW, unlooked])[0])
    )
    ready = make_measure(50_000, None, same_as="host_time")
    assert "not looked at" not in answers([VIEW, replace(unlooked, ready=ready)])[0]


def test_where_every_copy_may_be_torn_one_is_named_for_who_waits_for_it():
    torn = {"owner": "copy", "suspect": True, "faults": ("DLP020",)}
    where = {"torn_where": "the source is not aligned"}
    late = timed("copy(x)", 50_000, **torn, **where)
    assert answers([VIEW, late])[0].endswith(
        "If you need a copy: no measured path is known to be a safe one; copy(x), 50 ±2 us, copies,"
        " but wait for the result before you write x (DLP020, seen only where the source is not"
        " aligned)."
    )
    broken = replace(late, faults=("DLP020", "DLP011"))
    assert answers([VIEW, broken])[0].endswith("no measured path is known to be a safe one.")
