"""Findings of several cases: every word is true of each, or says which case it is of."""

from __future__ import annotations

import pytest
from rule_builders import MS, US, found, owned, path, varying, verdict

pytestmark = pytest.mark.unit

PROMISED = {"promise": "copy"}


def of(producer, **changes):
    return {"producer": producer, **changes}


def tried(aligned="view", sliced="copy", alignment=64):
    places = {
        "aligned": {"verdict": aligned, "alignment_bytes": alignment},
        "sliced": {"verdict": sliced, "alignment_bytes": 4},
    }
    return verdict("dependent", **places)


def promised(producer, *processes):
    return path("f(x)", owner=varying(*processes), case=of(producer, **PROMISED))


def test_a_promise_broken_more_often_from_one_framework_is_told_with_the_range():
    (finding,) = found(
        "DLP018",
        promised("numba", ("view", 64), ("view", 128), ("copy", 32)),
        promised("numpy", ("view", 64), ("copy", 16), ("copy", 32)),
    )
    assert "is a view in 1 to 2 of 3 processes, where the source begins" in finding.summary


def test_a_promise_that_all_break_as_often_is_told_with_one_number():
    looks = ("view", 64), ("view", 128), ("copy", 32)
    (finding,) = found("DLP018", promised("numba", *looks), promised("numpy", *looks))
    assert "is a view in 2 of 3 processes" in finding.summary


def test_a_promise_that_only_trying_broke_is_told_as_that():
    result = path(
        "f(x)", owner=owned("copy", alignment=16), alignment=tried(), case=of("numpy", **PROMISED)
    )
    (finding,) = found("DLP018", result)
    assert (
        "is a view when tried apart, where the source begins at a multiple of 64 bytes (a copy"
        " at 16)"
    ) in finding.summary
    assert finding.evidence["broken"] == 0


def test_advice_to_several_pairs_names_the_one_that_was_measured():
    (finding,) = found(
        "DLP018",
        path("f(x)", case=of("numba", **PROMISED)),
        path("f(x)", case=of("numpy", **PROMISED)),
        path("g(x)", 50 * US, "copy", case=of("numba", **PROMISED)),
    )
    assert finding.advice.startswith("From numba: g(x) is a copy")
    assert "From numpy: No measured path" in finding.advice


def test_times_of_one_path_of_several_are_said_to_be_of_that_one():
    copies = [path(code, time, "copy") for code, time in (("a(x)", 2 * MS), ("b(x)", MS))]
    (finding,) = found("DLP004", *copies, path("v(x)"))
    assert finding.summary == (
        "a(x), b(x) copy although another path from torch to numpy is a view; for instance the"
        " first: 2.0 ms against 5.0 us"
    )


def test_what_was_tried_at_one_shape_is_known_of_the_path_at_every_shape():
    small = path("f(x)", owner=owned("view"), alignment=tried(), case={"shape": [4, 4]})
    large = path("f(x)", owner=owned("copy", alignment=16), case={"shape": [9, 9]})
    (finding,) = found("DLP017", small, large)
    assert finding.results == (1,)
    assert finding.evidence["view_alignment_bytes"] == 64


def test_the_alignment_that_is_advised_is_the_least_that_was_seen_to_be_enough():
    looks = varying(("copy", 32), ("view", 2048))
    (guessed,) = found("DLP017", path("f(x)", owner=looks))
    (tested,) = found("DLP017", path("f(x)", owner=looks, alignment=tried()))
    assert "begins at a multiple of 2048 bytes" in guessed.advice
    assert guessed.advice.endswith(
        "2048 is known to be enough and 32 is known not to be; nothing between was seen."
    )
    assert "begins at a multiple of 64 bytes" in tested.advice
    assert "nothing between" not in tested.advice


def test_copies_at_different_alignments_are_advised_what_is_enough_for_each():
    (finding,) = found(
        "DLP017",
        path("f(x)", owner=varying(("copy", 16), ("view", 128))),
        path("g(x)", owner=varying(("copy", 32), ("view", 64))),
    )
    assert "; for instance the first: a source at a multiple of 16 bytes" in finding.summary
    assert "begins at a multiple of 128 bytes" in finding.advice


def test_different_errors_of_several_paths_are_said_to_be_of_the_first():
    def wrong(changed):
        return verdict("wrong", changed={"values": {"different": changed, "of": 16}})

    (finding,) = found(
        "DLP008",
        *(path("f(x)", values=wrong(n), case=of(name)) for n, name in ((3, "a"), (5, "b"))),
    )
    assert finding.summary == (
        "f(x) gives a wrong result; for instance from a to numpy: 3 of 16 values changed"
    )


def test_the_alignment_is_that_which_was_asked_of_the_array_that_was_tried():
    result = path(
        "f(x)",
        owner=owned("view", alignment=4096),
        alignment=tried(alignment=128),
        case=of("torch", **PROMISED),
    )
    (finding,) = found("DLP018", result)
    assert "where the source begins at a multiple of 64 bytes (a copy at 4)" in finding.summary
    assert finding.evidence["view_alignment_bytes"] == 64


def test_a_path_that_copied_at_the_alignment_that_was_asked_is_not_told_by_it():
    result = path(
        "f(x)",
        owner=owned("view", alignment=4096),
        alignment=tried("copy", "refused", alignment=128),
        case=of("torch", **PROMISED),
    )
    (finding,) = found("DLP018", result)
    assert "a multiple of 4096 bytes (a copy at 64)" in finding.summary
