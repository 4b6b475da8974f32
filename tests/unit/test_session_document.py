"""The report of a session: the path to write, the order of parts, and the limits."""

import pytest
from builders import make_measure, make_result, make_session
from reading import part, texts
from repro_builders import finding_of
from rule_builders import (
    LOOKED,
    MS,
    US,
    disturbed,
    lost,
    once,
    ordered,
    owned,
    path,
    tried,
    verdict,
)

from dlprof.measuring.judged import judged
from dlprof.protocol.messages import NO_ARRAY
from dlprof.report.paths import BY
from dlprof.report.session_document import session_document


def view(code="view(x)", ready=2 * US, **parts):
    return path(code, ready, **{**LOOKED, **parts})


def copy(code="copy(x)", ready=1 * MS, **parts):
    case = {"promise": "copy", **parts.pop("case", {})}  # as documented: no DLP004
    return path(code, ready, owner="copy", case=case, **{**LOOKED, **parts})


def torn(code="late(x)", ready=1 * MS):
    return copy(code, ready, early_write=verdict("unsafe", sizes_bytes={"1048576": "torn"}))


def refused(**changes):
    return lost("unsupported", "TypeError: no", "no(x)").model_copy(update=changes)


def document(*results, **changes):
    return session_document(judged(make_session(*results, **changes)))


def answers(found):
    return {answer.label: answer for answer in found.answers}


# What to write


def test_the_fastest_safe_view_and_copy_are_the_answer():
    found = answers(document(view("slow(x)", 9 * US), view(), copy()))
    assert found["fastest safe view"].code == "view(x)"
    assert found["fastest safe view"].value == "2.0 µs"
    assert found["fastest safe copy"].code == "copy(x)"


@pytest.mark.parametrize("worse", [{"lifetime": None}, {"ready": disturbed(1 * US)}])
def test_an_advice_names_the_path_that_the_first_lines_name(worse):
    unasked = copy(case={"promise": None})
    found = document(unasked, view(), view("worse(x)", **{"ready": 1 * US, **worse}))
    assert answers(found)["fastest safe view"].code == "view(x)"
    (advice,) = [problem.advice for problem in found.problems if problem.rule == "DLP004"]
    assert "view(x) is a view" in advice[0]


def test_a_retained_copy_has_the_time_of_a_new_array():
    kept = copy("kept(x)", 10 * US, fresh_source=verdict("kept", new_ns=900 * US))
    found = document(view(), copy(), kept)
    answer = answers(found)["fastest safe copy"]
    assert (answer.code, answer.value) == ("kept(x)", "~900 µs")
    assert [mark for mark in found.marks if mark.startswith("~")]
    assert "the same array again takes 10 µs" in answer.note


def test_a_faster_path_that_is_not_safe_is_never_the_answer():
    bad = view("bad(x)", 1 * US, lifetime=verdict("dangling", changed_after_drop=True))
    assert answers(document(bad, view()))["fastest safe view"].code == "view(x)"


def test_a_view_that_waits_is_safe_and_says_so():
    on_device = {"case": {"device": "cuda"}, "ordering": ordered("host-sync")}
    found = document(view(**on_device), copy("slow(x)", **on_device))
    answer = answers(found)["fastest safe view"]
    assert (answer.code, "waits for the work" in answer.note) == ("view(x)", True)


def test_if_every_copy_is_torn_none_is_named_and_one_after_a_wait_is():
    found = answers(document(view(), torn()))
    assert "fastest safe copy" not in found
    assert "DLP020" in found["copy and wait"].note
    assert found["copy and wait"].code == "late(x)"


def test_a_copy_on_another_device_names_it_and_a_suspected_late_read_has_its_mark():
    late = {"early_write": verdict("unsafe", sizes_bytes={"1048576": "torn"})}
    moved = {"owner": owned("copy", "cuda"), "case": {"consumer": "jax"}}
    found = document(path("near(x)", 1 * MS, **moved), path("far(x)", 2 * MS, **moved, **late))
    assert {row[1].text for row in found.tables[0].rows} == {"copy on cuda"}
    assert "(DLP020?)" in answers(found)["copy and wait"].note


def test_of_views_that_cannot_be_told_apart_the_fastest_is_the_answer():
    found = document(view("first(x, copy=None)", 2 * US), view("f(x)", 2.1 * US))
    assert answers(found)["fastest safe view"].code == "first(x, copy=None)"
    assert found.tables[0].rows[0][2].text == "first(x, copy=None)"


def test_a_safe_view_of_an_immutable_array_has_its_rule_as_a_condition():
    flags = {"source": True, "result": False, "immutable": True}
    found = document(view(values=verdict("ok", changed={}, writable=flags)))
    assert "the source while the result is in use (DLP029)" in found.answers[0].label


def test_a_rule_that_all_paths_break_is_said_once_above_the_table():
    late = [torn(f"late{index}(x)", (index + 1) * MS) for index in range(4)]
    (table,) = document(*late).tables
    assert table.above == ("All 4 paths return before they finish reading x: DLP020",)
    assert table.rows[0][3].text == ""
    (table,) = document(view(), *late).tables
    assert table.above == ()
    assert table.rows[1][3].text == "DLP020"


def test_a_problem_counts_the_other_paths_that_have_it_as_an_info():
    ends = "of writes although the result is a copy"
    warns = [
        verdict("warns", texts=[f"UserWarning: {text}"]) for text in ("not writable", "it goes")
    ]
    found = document(
        *(copy(f"{name}(x)", warnings=one) for name, one in zip("fg", warns, strict=True))
    )
    first, second = (one.sentence for one in found.problems if one.rule == "DLP031")
    assert (ends in first, first.endswith(" (1 other: info).")) == (True, True)
    assert "other" not in second


def test_a_call_that_leaves_no_array_says_so_as_its_result():
    launch = path("kernel(x)", owner=verdict("unknown", reason=NO_ARRAY))
    table = document(launch, view()).tables[0]
    assert {row[2].text: (row[1].text, row[3].text) for row in table.rows}["kernel(x)"] == (
        "no array",
        "",
    )


@pytest.mark.parametrize(("waits", "text"), [(True, "waits for the queue"), (False, "no wait")])
def test_an_upload_without_times_says_whether_it_waits_for_the_consumers_work(waits, text):
    order = verdict("synchronous", upload_waits=waits)
    found = document(copy("a(x)", None, untimed=True, ordering=order), refused(), simulated=1)
    assert found.tables[0].rows[0][0].text == text


def test_a_table_has_no_column_for_queued_work_that_is_not_known():
    (table,) = document(copy("a(x)", None, untimed=True), refused(), simulated=1).tables
    assert [column.title for column in table.columns] == ["result", "path", "problem"]
    assert texts(table)[0] == ["copy", "a(x)", ""]


def test_a_problem_counts_its_paths_as_the_table_does():
    unaligned = {"1048576": "torn"}, {"1048576": "whole"}
    some = copy(
        "some(x)", early_write=verdict("unsafe", unaligned_bytes=unaligned[0], aligned="whole")
    )
    (problem,) = [one for one in document(torn(), some).problems if one.rule == "DLP020"]
    assert (problem.sentence, problem.more) == ("2 paths return before they finish reading x.", 0)


def test_a_refused_path_has_no_time_and_the_answer_names_the_chosen_paths():
    timed = refused(ready_time=view().ready_time)
    request = {"globs": ["no(x)"]}
    found = document(timed, copy(), request=request)
    assert [row[0].text for row in found.tables[0].rows] == ["1.0 ms"]
    assert answers(found)["fastest safe view"].note == "none of the paths that --path names"


def test_a_time_of_one_process_is_said_to_give_no_finding():
    found = document(view(ready=once(2 * US)), view("slow(x)", once(9 * MS)))
    assert [one for one in found.notices if "no slow path" in one]
    assert not found.problems


def test_a_path_that_crashes_for_other_arrays_is_marked_at_its_name():
    lost = {"lost": {"how": "SIGSEGV", "signal": "SIGSEGV"}, "status": "crashed"}
    empty = view(**lost, case={"survey": True, "shape": [0, 3]})
    found = document(view(), copy(), empty)
    assert "DLP016" in answers(found)["fastest safe view"].note
    assert "DLP016" not in answers(found)["fastest safe copy"].note


@pytest.mark.parametrize(
    ("result", "sentence"),
    [
        (view("f(x)"), "f(x) is a view: 2.0 µs, nothing copied."),
        (copy("f(x)"), "f(x) is a copy: 1.0 ms, 64 B copied."),
        (
            copy("f(x)", values=verdict("ok", writable={"result": False, "immutable": False})),
            "f(x) is a read-only copy: 1.0 ms, 64 B copied.",
        ),
        (
            view("f(x)", fresh_source=verdict("kept", first_ns=5e6, second_ns=2e3)),
            "f(x) is a view: 2.0 µs, nothing copied by later calls, the first for x takes 5.0 ms.",
        ),
        (
            view("f(x)", values=verdict("unknown", reason="no dtype")),
            "f(x) is a view: 2.0 µs, nothing copied. Its values are not known: no dtype.",
        ),
        (
            view("f(x)", case={"device": "cuda"}, ordering=verdict("unknown", reason="no load")),
            "f(x) is a view: 2.0 µs, nothing copied. Its order is not known: no load.",
        ),
        (
            copy("f(x)", **dict.fromkeys(("values", "lifetime"), verdict("unknown", reason="no"))),
            "f(x) is a copy: 1.0 ms, 64 B copied. Its values, lifetime and leaks are not known: no.",
        ),
        (refused(), "no(x) is refused: TypeError: no."),
        (
            view("f(x)", ownership=verdict("unknown", reason="no write could be tried")),
            "f(x) may be a view or a copy: 2.0 µs, no write could be tried.",
        ),
        (
            view("f(x)", ownership=verdict("unknown", reason="no"), values=verdict("unknown")),
            "f(x) may be a view or a copy: 2.0 µs, no. Its values are not known to be right.",
        ),
    ],
    ids=[
        "view",
        "copy",
        "read-only",
        "kept",
        "not compared",
        "no order",
        "no lifetime",
        "refused",
        "unknown",
        "unknown and not compared",
    ],
)
def test_a_single_path_is_one_sentence(result, sentence):
    found = document(result)
    assert [answer.label for answer in found.answers] == [sentence]
    assert not found.tables


def test_if_nothing_was_measured_the_reasons_are_whole():
    reason = "ImportError: cannot load it: libx.so is missing"
    found = document(*(lost("unsupported", reason, code) for code in ("no(x)", "nor(x)")))
    assert {row[-1].text for row in found.tables[0].rows} == {reason}


def test_a_path_with_a_warning_is_offered_only_if_all_have_one():
    needless = copy("fast(x)", 0.5 * MS, case={"promise": None})
    found = document(view(), copy(), needless)
    assert answers(found)["fastest safe copy"].code == "copy(x)"
    assert answers(document(view(), needless))["fastest copy"].note == "see DLP004"


def test_the_answer_states_its_conditions():
    waiting = answers(document(view(ordering=ordered("host-sync")), copy()))
    assert waiting["fastest safe view"].note == "waits for the work queued on x"
    some = view(owner=owned("view", alignment=16), alignment=tried("view", "refused"))
    found = document(some, copy())
    assert answers(found)["fastest safe view"].note == "raises unless x is 16-byte aligned"
    assert texts(found.tables[0])[0][1] == "view*"
    assert any(mark.startswith("*") for mark in found.marks)


@pytest.mark.parametrize(("rounds", "is_said"), [([0], False), ([0, 1, 2], True)])
def test_what_one_of_several_processes_looked_at_is_not_said_of_all(rounds, is_said):
    looked = {"lifetime": verdict("safe"), "ordering": verdict("synchronous")}
    found = document(view(rounds=rounds, **looked))
    coverage = "3 processes checked values and lifetime, 1 checked waits, races and late reads."
    assert (coverage in found.marks) is is_said


def test_a_look_that_found_no_answer_is_not_called_a_check():
    looked = {"lifetime": verdict("unknown"), "values": verdict("unknown")}
    found = document(view(rounds=[0, 1, 2], ordering=verdict("synchronous"), **looked))
    assert "1 checked waits, races and late reads." in found.marks


def test_a_statement_without_a_result_is_told_to_end_with_an_array():
    nothing = verdict("unknown", reason=NO_ARRAY)
    found = document(path("f(x)", case={"import": "statement"}, owner=nothing))
    hint = "f(x) leaves no array behind: 5.0 µs. End the statement with the array that it fills"
    assert found.answers[0].label.startswith(hint)


def test_without_a_diagnosis_nothing_is_called_safe():
    found = document(path("view(x)"), path("other(x)", 9 * US))
    assert "fastest correct view" in answers(found)
    assert any("Not diagnosed" in notice for notice in found.notices)


# The first table


@pytest.mark.parametrize(
    "measure", [once(2 * US), disturbed(2 * US)], ids=["one process", "disturbed"]
)
def test_an_uncertain_time_is_marked_and_the_mark_is_explained(measure):
    found = document(view(ready=measure), copy())
    assert texts(found.tables[0])[0][0] == "~2.0 µs"
    assert any(mark.startswith("~") for mark in found.marks)


def test_the_ratio_of_an_uncertain_time_is_marked():
    own = {"import": "statement"}
    for measure, ratio in ((disturbed(2 * MS), f"~20{BY}"), (2 * MS, f"20{BY}")):
        found = document(path("f(x)", 100 * US, case=own), path("g(x)", measure, case=own))
        assert texts(found.tables[0])[1][1] == ratio


def test_a_copy_has_a_bandwidth_if_one_number_stands_for_its_time():
    cost = {"size_bytes": 1 << 24, "gb_per_s": 4.0}
    large = {"shape": (1 << 22,)}
    found = document(
        copy("one(x)", 1 * MS, copy_cost=cost, case=large),
        copy("two(x)", make_measure(1 * MS, (0.1 * MS, 2 * MS)), copy_cost=cost, case=large),
        copy("fast(x)", 1 * MS, copy_cost={**cost, "least_ns": 9 * MS}, case=large),
    )
    table = part(found, "All paths").blocks[0]
    at = [column.title for column in table.columns].index("GB/s")
    speeds = {row[0].text: row[at].text for row in table.rows}
    assert speeds == {"one(x)": "4.0", "two(x)": "-", "fast(x)": "-"}


def test_paths_with_the_same_verdict_and_about_the_same_time_share_a_line():
    found = document(view("a(x)", 2 * US), view("b(x)", 2.1 * US), view("c(x)", 9 * US))
    codes = [row[2] for row in found.tables[0].rows]
    assert [cell.text for cell in codes] == ["a(x)", "c(x)"]
    assert codes[0].note == "and 1 equivalent"


# Problems


def test_problems_stand_worst_first_and_each_rule_once():
    found = document(view(), torn(), torn("other(x)"), view("slow(x)", 9 * MS))
    rules = [problem.rule for problem in found.problems]
    assert rules[0] == "DLP020"
    assert len(rules) == len(set(rules))
    assert found.problems[0].codes == ("late(x)", "other(x)")


def problems_of(rule, *findings):
    """Return the text about a rule with these findings, each with two paths of its own."""
    results = [view(f"f{at}(x)") for at in range(2 * len(findings))]
    records = [
        finding_of(rule, results=[2 * at, 2 * at + 1], against=None, **changes)
        for at, changes in enumerate(findings)
    ]
    return session_document(make_session(*results, findings=records)).problems


SHARES = {"headline": "2 paths share x.", "said": "share x."}
ODD = {"headline": "2 paths are odd.", "said": "are odd."}


@pytest.mark.parametrize(
    ("findings", "sentence", "more", "example"),
    [
        ([SHARES], "2 paths share x.", 0, "f0(x)"),
        ([SHARES, SHARES], "4 paths share x.", 0, "f0(x)"),
        ([{**SHARES, "headline": "2 paths share 9 B."}, SHARES], "4 paths share x.", 0, "f0(x)"),
        ([ODD, SHARES, SHARES], "4 paths share x.", 2, "f2(x)"),
    ],
    ids=["one", "two", "other numbers", "most first"],
)
def test_a_problem_counts_the_paths_of_all_its_findings(findings, sentence, more, example):
    (problem,) = problems_of("DLP018", *findings)
    assert (problem.sentence, problem.more) == (sentence, more)
    assert problem.codes[0] == example


# Several arrays and pairs


def test_several_shapes_are_counted_and_have_a_line_each():
    found = document(*(view(case={"shape": (size,)}) for size in (4, 400)))
    assert answers(found)["share memory"].note == "2 of 2 arrays"
    assert [row[0] for row in texts(found.tables[0])] == ["4", "400"]


def test_an_unsafe_view_is_named_with_its_rule_if_a_shape_has_no_other():
    racing = view(ordering=verdict("unordered"), case={"device": "cuda"})
    other = racing.model_copy(update={"case": racing.case.model_copy(update={"shape": (9,)})})
    (table,) = document(racing, other).tables
    assert texts(table)[0][1:] == ["unsafe", "view(x) DLP003 unordered", "-", "none"]


def test_several_pairs_are_a_table_of_producers_and_consumers():
    ways = [("a", "b"), ("b", "a")]
    results = [view(case={"producer": one, "consumer": other}) for one, other in ways]
    found = document(*results, copy(case={"producer": "a", "consumer": "a"}))
    (table,) = found.tables
    assert [column.title for column in table.columns][1:] == ["b", "a"]
    assert texts(table) == [["a", "2.0 µs view", "1.0 ms copy"], ["b", "-", "2.0 µs view"]]
    assert answers(found)["share memory"].note == "2 of 3 pairs"


def test_a_cell_marks_a_path_that_is_safe_under_a_condition():
    lost = verdict("ok", writable={"source": False, "result": True})
    found = document(view(values=lost), view(case={"producer": "b"}))
    (table,) = found.tables
    assert [row[1].note for row in table.rows] == ["view!", "view"]
    assert any("DLP009" in mark for mark in found.marks)


def test_a_pair_without_a_safe_path_is_called_unsafe_or_by_its_status():
    bad = view("bad(x)", 1 * US, lifetime=verdict("dangling", changed_after_drop=True))
    lost = make_result("no(x)", None, status="crashed", case={"producer": "b"})
    (table,) = document(bad, lost).tables
    assert [row[1].split()[-1] for row in texts(table)] == ["unsafe", "crash"]


# Other parts


@pytest.mark.parametrize(
    ("consumer", "note"), [("jax", "the result is on the host"), ("numpy", "")]
)
def test_a_copy_that_leaves_the_device_says_so(consumer, note):
    case = {"device": "cuda", "consumer": consumer}
    result = path("f(x)", case=case, owner=owned("copy", device="cpu"))
    found = {answer.code: answer for answer in document(result, path("g(x)", case=case)).answers}
    assert found["f(x)"].note == note


def test_a_copy_that_stays_on_the_device_is_named_before_one_that_is_on_the_host():
    case = {"device": "cuda", "consumer": "jax"}
    away = copy("away(x)", 1 * US, case=case, ownership=owned("copy", device="cpu"))
    stays = copy("stays(x)", 9 * US, case=case, ownership=owned("copy", device="cuda"))
    found = document(view(case=case, ownership=owned("view", device="cuda")), away, stays)
    assert "stays(x)" in {answer.code for answer in found.answers}
    assert "away(x)" not in {answer.code for answer in found.answers}
