"""A row: what a report shows of one result."""

from __future__ import annotations

import math

import pytest
from builders import make_measure, make_result, make_row

from dlprof.reports.faults import suspected
from dlprof.reports.result_row import row_of, rows_of
from dlprof.session.model import FindingRecord

pytestmark = pytest.mark.unit

SAMPLES = [{"round": 0, "loops": 1, "samples_ns": [1.0, 3.0, 2.0]}]
TIME = {"median_ns": 2.0, "ci95_ns": None, "min_ns": 1.0, "processes": SAMPLES}


def wrong(changed):
    return make_result(values={"verdict": "wrong", "evidence": {"changed": changed}})


def test_a_row_names_the_array_and_its_size():
    row = row_of(make_result(case={"shape": [2, 3], "dtype": "float64"}))
    assert (row.pair, row.shape, row.dtype, row.size_bytes) == (
        "torch → numpy",
        "2x3",
        "float64",
        48,
    )


def test_a_dtype_of_a_newer_version_has_no_size():
    assert row_of(make_result(case={"dtype": "float4"})).size_bytes == 0


def test_what_was_not_measured_costs_infinitely_much():
    assert row_of(make_result(median_ns=None)).cost_ns == math.inf


def test_samples_are_not_kept():
    assert row_of(make_result(ready_time=TIME)).ready.processes == []


def test_the_medians_of_the_processes_are_kept():
    assert row_of(make_result(ready_time=TIME)).process_medians_ns == (2.0,)


def test_a_ready_time_that_is_the_host_time_has_its_processes():
    ready = {**TIME, "processes": [], "same_as": "host_time"}
    assert row_of(make_result(host_time=TIME, ready_time=ready)).process_medians_ns == (2.0,)


@pytest.mark.parametrize(
    ("verdict", "owner"),
    [("view", "view"), ("copy", "copy"), ("unknown", "?"), ("varies", "varies")],
)
def test_the_owner_is_the_verdict(verdict, owner):
    assert row_of(make_result(ownership={"verdict": verdict})).owner == owner


def test_ownership_of_a_case_that_was_not_measured_is_a_dash():
    lost = make_result(ownership=None, status="unsupported")
    assert row_of(lost).owner == "-"


def test_ownership_that_could_not_be_looked_at_is_a_question():
    assert row_of(make_result(ownership=None)).owner == "?"


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"dtype": ["float64", "float32"]}, ("float64 to float32",)),
        ({"shape": [[4], []]}, ("4 to scalar",)),
        ({"values": {"different": 3, "of": 16, "first_index": 0}}, ("3 of 16 values",)),
        ({}, ("values",)),
        ({"source": {"different": 1, "of": 16384}}, ("1 of 16,384 values of its source",)),
        ({"source": 3}, ("values of its source",)),
        ({"source_writable": [True, False]}, ("whether its source can be written",)),
        ({"earlier_result": {"same_address": True}}, ("values of an earlier result",)),
        (
            {"after_write": {"different": 9, "of": 9}},
            ("9 of 9 values written to its source after an earlier call",),
        ),
    ],
)
def test_what_changed_is_told_in_words(changed, words):
    assert row_of(wrong(changed)).changed == words


def test_right_values_have_not_changed():
    assert row_of(make_result()).changed == ()


@pytest.mark.parametrize("status", ["crashed", "timeout", "invalid"])
def test_only_what_was_measured_to_the_end_is_safe(status):
    assert make_row().safe
    assert not make_row(status=status).safe


def test_what_changed_or_broke_its_promise_is_not_safe():
    assert not make_row(changed=("values",)).safe
    assert not make_row(promise="copy", owner="view").safe
    assert not make_row(promise="view", owner="copy").safe


def test_what_keeps_its_promise_is_safe():
    assert make_row(promise="view", owner="view").safe
    assert make_row(promise="copy", owner="?").safe


def test_what_a_framework_keeps_is_told_by_both_times():
    kept = {"verdict": "kept", "evidence": {"first_ns": 90.0, "second_ns": 4.0}}
    assert row_of(make_result(fresh_source=kept)).kept_ns == (90.0, 4.0)
    assert row_of(make_result(fresh_source={**kept, "verdict": "not kept"})).kept_ns is None


@pytest.mark.parametrize(
    ("size", "told"), [(1 << 18, 1 << 18), (64, None), (None, None), ("x", None)]
)
def test_the_size_of_new_arrays_is_told_where_it_is_another(size, told):
    evidence = {"first_ns": 90.0, "second_ns": 4.0, "size_bytes": size}
    kept = {"verdict": "kept", "evidence": evidence}
    assert row_of(make_result(fresh_source=kept)).kept_bytes == told


ODD = {
    "changed is a text": {"values": {"verdict": "wrong", "evidence": {"changed": "x"}}},
    "a change without sides": {
        "values": {"verdict": "wrong", "evidence": {"changed": {"dtype": []}}}
    },
    "a change that is a number": {
        "values": {"verdict": "wrong", "evidence": {"changed": {"shape": 3}}}
    },
    "values without numbers": {
        "values": {"verdict": "wrong", "evidence": {"changed": {"values": {}}}}
    },
    "kept without times": {"fresh_source": {"verdict": "kept", "evidence": {}}},
    "device time without a median": {"device_time": {"warm": {}}},
    "device time that is a text": {
        "case": {"device": "cuda"},
        "device_time": {"warm": {"median_ns": "x"}},
    },
    "a process without samples": {
        "ready_time": {**TIME, "processes": [{**SAMPLES[0], "samples_ns": []}]}
    },
    "a shape beyond memory": {"case": {"shape": [2**60] * 40}},
}


def test_where_one_copy_of_a_pair_was_torn_only_its_views_are_safe():
    words = {"torn(x)": "copy", "whole(x)": "copy", "either(x)": "varies", "view(x)": "view"}
    rows = [
        row_of(make_result(code, ownership={"verdict": word, "evidence": {}}))
        for code, word in words.items()
    ]
    race = FindingRecord(
        rule="DLP020", name="unsafe-copy", severity="error", results=[0], summary="it is torn"
    )
    assert [row.code for row in suspected(rows, [race]) if row.safe] == ["view(x)"]


def torn(producer, code, same_as=None, rows=()):
    """Rows of copies to one framework, of which the first was seen torn."""
    cases = [(producer, code, same_as), *rows]
    found = []
    for of, name, as_what in cases:
        ready = make_measure(9.0, None, same_as=as_what)
        owner = {"verdict": "copy", "evidence": {}}
        found.append(
            row_of(make_result(name, case={"producer": of}, ownership=owner, ready_time=ready))
        )
    race = FindingRecord(
        rule="DLP020", name="unsafe-copy", severity="error", results=[0], summary="it is torn"
    )
    return {row.code: row.faults for row in suspected(found, [race])}


def test_where_a_copy_was_torn_those_of_other_producers_that_return_early_may_be():
    others = [("jax", "early(x)", None), ("jax", "whole(x)", "host_time")]
    marks = torn("torch", "torn(x)", rows=others)
    assert marks == {"torn(x)": ("DLP020",), "early(x)": ("DLP020?",), "whole(x)": ()}


def test_where_a_call_was_torn_that_waits_for_nothing_all_copies_of_the_pair_may_be():
    others = [("torch", "whole(x)", "host_time"), ("jax", "other(x)", "host_time")]
    marks = torn("torch", "torn(x)", "host_time", others)
    assert marks == {"torn(x)": ("DLP020",), "whole(x)": ("DLP020?",), "other(x)": ()}


def test_a_result_that_is_a_view_in_some_processes_has_no_speed_of_copying():
    cost = {"size_bytes": 8, "gb_per_s": 231.0}
    speeds = [
        row_of(make_result(copy_cost=cost, ownership={"verdict": word, "evidence": {}})).gb_per_s
        for word in ("copy", "varies", "unknown")
    ]
    assert speeds == [231.0, None, None]


@pytest.mark.parametrize(("owner", "share"), [("copy", 0.5), ("varies", None), ("view", None)])
def test_what_was_no_copy_in_every_process_has_no_share_of_memcpy(owner, share):
    cost = {"size_bytes": 64, "gb_per_s": 5.0, "memcpy_gb_per_s": 10.0, "share_of_memcpy": 0.5}
    row = row_of(make_result(copy_cost=cost, ownership={"verdict": owner}))
    assert row.share_of_memcpy == share


UNKNOWN = {"verdict": "unknown", "evidence": {}}


@pytest.mark.parametrize(
    ("changes", "unseen"),
    [
        ({"ownership": UNKNOWN, "values": UNKNOWN}, True),
        ({"notes": ["values: AttributeError: no", "ownership: AttributeError: no"]}, True),
        ({"ownership": UNKNOWN, "values": {"verdict": "ok", "evidence": {}}}, False),
        ({"ownership": {"verdict": "view", "evidence": {}}, "values": UNKNOWN}, False),
        ({}, False),
    ],
)
def test_a_result_of_which_nothing_could_be_seen_is_not_called_safe(changes, unseen):
    row = row_of(make_result(**{"ownership": None, "values": None, **changes}))
    assert row.unseen is unseen
    assert not (row.unseen and row.safe)


def test_what_was_looked_at_for_one_shape_holds_for_the_others_of_the_path():
    whole = make_result("f(x)")
    other = make_result("f(x)", case={"shape": (7,)}, lifetime=None, ordering=None)
    another = make_result("g(x)", case={"shape": (7,)}, lifetime=None, ordering=None)
    assert row_of(other).unlooked
    assert [bool(row.unlooked) for row in rows_of([whole, other, another])] == [False, False, True]


def test_early_writes_that_were_looked_at_for_one_shape_were_for_the_others_of_the_path():
    other = make_result("f(x)", case={"shape": (7,)}, early_write=None)
    another = make_result("g(x)", case={"shape": (7,)}, early_write=None)
    rows = rows_of([make_result("f(x)"), other, another])
    assert [row.unwritten for row in rows] == [False, False, True]
