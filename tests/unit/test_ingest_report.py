"""Plain memory in the terminal report: owner, shares, peak, and the sentences that answer."""

from __future__ import annotations

from dataclasses import replace

import pytest
from builders import lost_row, make_header, make_measure, make_row

from dlprof.reports import ingest
from dlprof.reports.terminal import render

pytestmark = pytest.mark.unit

MS = 1e6


def loaded(code, owner="copy", ready=100 * MS, **changes):
    fields = {
        "pair": "bytes → torch",
        "owner": owner,
        "protocol": "buffer",
        "size_bytes": 1 << 30,
        "create_ns": 200 * MS,
        "peak_arrays": 0.001 if owner == "view" else 1.01,
    }
    fields |= changes
    return make_row(code, ready, **({"frameworks": fields["pair"]} | fields))


def text(*rows):
    return " ".join(render(make_header(), rows).split())


def test_a_view_leaves_the_memory_with_its_producer():
    row = loaded("frombuffer(x)", "view", 1000.0)
    assert (ingest.owner(row), ingest.peak_text(row)) == ("bytes", "0")
    assert "Views of the memory of bytes, which stays its owner: frombuffer(x)." in text(row)


def test_a_copy_is_the_consumers_and_is_compared_with_memcpy_and_the_making():
    row = loaded("tensor(x)", gb_per_s=3.4, share_of_memcpy=0.45)
    assert ingest.owner(row) == "torch"
    assert ingest.share_of_memcpy(row) == "45 %"
    assert ingest.share_of_making(row, 200 * MS) == "50 %"
    assert "200 ms" in text(row)
    assert "the fastest is tensor(x) at 3.4 GB/s, 45 % of memcpy." in text(row)


def test_a_copy_in_modes_is_compared_with_memcpy_in_each():
    modes = [{"median_ns": 1 * MS, "rounds": [0]}, {"median_ns": 4 * MS, "rounds": [1]}]
    ready = make_measure(2 * MS, None, modes=modes)
    row = loaded("tensor(x)", gb_per_s=3.0, share_of_memcpy=0.4)
    assert ingest.share_of_memcpy(replace(row, ready=ready)) == "80 % | 20 %"


def test_a_call_that_asks_for_no_copy_is_not_named_as_the_fastest_copy():
    asked_not_to = loaded("torch.asarray(x, copy=False)", ready=1e6)
    (sentence,) = [
        one
        for one in ingest.sentences([asked_not_to, loaded("tensor(x)", ready=2e6)])
        if "fastest" in one
    ]
    assert sentence == "Of 2 copies the fastest that does not forbid a copy is tensor(x)."
    assert "the fastest is torch.asarray(x, copy=False)" in text(asked_not_to)


def test_a_copy_whose_time_is_not_known_is_not_named_as_the_fastest():
    speed = {"gb_per_s": 29.0, "share_of_memcpy": 0.6}
    stalled = loaded("stalled(x)", ready=1e6, disturbed=True, **speed)
    told = text(stalled, loaded("tensor(x)", ready=2e6))
    assert "Of 2 copies the fastest whose time is known is tensor(x)." in told
    assert "Of 1 copy no time is known." in text(stalled)
    assert (ingest.share_of_memcpy(stalled), ingest.share_of_making(stalled, 1e6)) == ("-", "-")


def test_an_answer_tells_no_speed_of_a_time_that_is_not_known():
    stalled = loaded("stalled(x)", ready=1e6, scattered=True, gb_per_s=29.0, peak_arrays=1.0)
    assert "a copy in 1.0 ±1.0 ms (scattered), 1.00 arrays" in ingest.answer([stalled])


def test_the_hungriest_copy_is_named():
    rows = [loaded("once(x)"), loaded("twice(x)", peak_arrays=2.0)]
    assert "The most memory takes twice(x): 2.00 arrays at its peak." in text(*rows)


def test_a_peak_that_is_not_known_is_no_number():
    assert ingest.peak_text(loaded("f(x)", peak_arrays=None)) == "?"


@pytest.mark.parametrize("changes", [{"protocol": "dlpack"}, {"size_bytes": 1 << 10}])
def test_other_memory_and_a_few_bytes_have_no_table(changes):
    assert "memory of bytes" not in text(loaded("f(x)", **changes))


def test_the_table_fits_eighty_columns():
    rows = [loaded("torch.tensor(numpy.frombuffer(x, dtype='float64').reshape((9, 9)))" * 2)]
    assert max(len(line) for line in render(make_header(), rows).splitlines()) <= 80


def test_environments_are_not_mixed():
    rows = [
        loaded(
            "tensor(x)",
            environment=name,
            pair=f"bytes → torch in {name}",
            frameworks="bytes → torch",
        )
        for name in ("old", "new")
    ]
    assert "in old, made in" in text(*rows)
    assert "in new, made in" in text(*rows)
    assert ingest.owner(rows[0]) == "torch"


def test_the_answer_says_what_is_a_view_and_what_each_copy_costs():
    rows = [
        loaded("look(x)", owner="view"),
        loaded("once(x)"),
        loaded("twice(x)", peak_arrays=2.0, changed=("float64 to float32",)),
    ]
    first, view, *copies = ingest.answer(rows).splitlines()
    assert first == "Of 3 ways in, 1 is a view and 2 copy."
    assert "A view adds no memory; the slowest takes" in view
    assert "1.01 arrays of memory at its peak." in copies[0]
    assert "it is not right: float64 to float32" in copies[1]


def test_the_answer_says_what_was_not_tried_and_why():
    skipped = lost_row("huge(x)", status="skipped", reason="needs about 30.0 GiB of memory")
    last = ingest.answer([loaded("once(x)"), skipped]).splitlines()[-1]
    assert last == "huge(x) was not tried: it needs about 30.0 GiB of memory."


def test_of_many_copies_the_fastest_the_slowest_and_the_hungriest_are_named():
    rows = [
        loaded(f"f{n}(x)", ready=1e6 * (n + 1), peak_arrays=2.0 if n == 3 else 1.0)
        for n in range(9)
    ]
    named = ingest.answer(rows)
    assert [f"f{n}(x)" in named for n in range(9)] == [n in (0, 3, 8) for n in range(9)]


def test_nothing_large_has_no_answer():
    assert (
        ingest.answer([loaded("f(x)", size_bytes=8)])
        == "No array of a mebibyte or more was taken in."
    )


def test_every_path_is_compared_with_the_one_time_that_the_header_tells():
    rows = [loaded("f(x)", create_ns=200 * MS), loaded("g(x)", create_ns=900 * MS)]
    shown = text(*rows)
    assert "made in 200 ms" in shown
    assert shown.count(" 50 % ") == 2


def test_views_whose_memory_was_not_measured_are_not_said_to_add_none():
    unseen = loaded("look(x)", "view", peak_arrays=None)
    assert "What views add to memory was not measured" in ingest.answer([unseen])
    both = ingest.answer([unseen, loaded("see(x)", "view")])
    assert "A view of the 1 that were looked at adds no memory" in both


def test_the_slowest_view_has_the_time_of_its_table():
    interval = make_measure(5_700.0, (900.0, 30_000.0))
    row = loaded("look(x)", "view", ready=5_700.0)
    row = replace(row, ready=interval, process_medians_ns=(1_700.0, 9_600.0))
    assert "the slowest takes 1.7-9.6 us" in ingest.answer([row])


def test_ways_that_are_neither_view_nor_copy_are_counted():
    rows = [loaded("f(x)"), loaded("g(x)", "varies"), loaded("h(x)", "?")]
    first = ingest.answer(rows).splitlines()[0]
    assert first == "Of 3 ways in, 0 are views and 1 copies; of 2 it varies or is not known."


def test_a_share_of_memcpy_of_another_dtype_is_marked():
    row = loaded("jnp.asarray(x)", share_of_memcpy=0.9, dtype="float64")
    narrowed = replace(row, changed=("float64 to float32",))
    assert ingest.share_of_memcpy(narrowed) == "90 %*"
    assert "* of a result of another dtype (float64 to float32)" in text(narrowed)
    assert "90 %*" in ingest.answer([narrowed])
    assert "*" not in ingest.answer([row])


def test_each_line_of_the_answer_says_of_which_environment_it_is():
    rows = [loaded("f(x)", environment=name) for name in ("old", "new")]
    lines = ingest.answer(rows).splitlines()
    assert [line.partition(":")[0] for line in lines] == ["old", "old", "new", "new"]
