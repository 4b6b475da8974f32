"""DLP020: of which sources a copy is torn, and what to do there and elsewhere."""

from __future__ import annotations

import pytest
from rule_builders import US, found, owned, path, spread, varying, verdict

pytestmark = pytest.mark.unit

COPIED = verdict(
    "unsafe",
    sizes_bytes={"4096": "view", "65536": "view"},
    unaligned_bytes={"4096": "whole", "65536": "torn"},
    torn_layout="sliced",
)
UNALIGNED = verdict(
    "unsafe",
    sizes_bytes={"4096": "whole", "65536": "whole"},
    unaligned_bytes={"4096": "whole", "65536": "torn"},
    torn_layout="sliced",
)
TORN = verdict("unsafe", sizes_bytes={"65536": "torn"}, torn_layout="C")
WHOLE = verdict("safe", sizes_bytes={"65536": "whole"})
WAIT = "Wait for the result before you write the source."
DO_NOT_WRITE = "do not write the source while the result is used."


def by_alignment(sliced="copy"):
    places = {
        "aligned": {"verdict": "view", "alignment_bytes": 64},
        "sliced": {"verdict": sliced, "alignment_bytes": 4},
    }
    return verdict("dependent", **places)


def sometimes_a_view(code="f(x)", **changes):
    return path(code, early_write=COPIED, alignment=by_alignment(), **changes)


def torn_copy(code="f(x)", early_write=TORN, **changes):
    return path(code, owner="copy", early_write=early_write, **changes)


def test_of_a_view_elsewhere_a_wait_is_said_to_help_only_where_it_copied():
    (finding,) = found("DLP020", sometimes_a_view())
    assert finding.advice.startswith("A wait for the result helps only where it was copied.")
    assert finding.advice.endswith(DO_NOT_WRITE)
    assert finding.evidence["only_where"] == "it copies"


@pytest.mark.parametrize(
    "parts",
    [
        {"owner": varying(("view", 64), ("copy", 16))},
        {"owner": "copy", "alignment": by_alignment()},
    ],
    ids=["in some processes", "when tried apart"],
)
def test_what_is_a_view_of_some_memory_only_is_not_told_to_wait(parts):
    (finding,) = found("DLP020", path("f(x)", early_write=TORN, **parts))
    assert "where it copies" in finding.summary
    assert WAIT not in finding.advice
    assert DO_NOT_WRITE in finding.advice


def test_views_and_copies_torn_elsewhere_and_anywhere_are_three_findings():
    copies = [torn_copy("g(x)", UNALIGNED), torn_copy("h(x)", TORN)]
    findings = found("DLP020", sometimes_a_view(), *copies)
    told = {finding.summary.partition(" still")[0]: finding for finding in findings}
    assert set(told) == {"f(x)", "g(x)", "h(x)"}
    assert {code: one.evidence.get("only_where") for code, one in told.items()} == {
        "f(x)": "it copies",
        "g(x)": "the source is not aligned",
        "h(x)": None,
    }


def test_copies_torn_only_of_other_memory_say_so_before_anything_else():
    (finding,) = found("DLP020", torn_copy(early_write=UNALIGNED))
    begin = "f(x) still reads its source after the call has returned where the source is not"
    assert finding.summary.startswith(f"{begin} aligned: a write right after it")
    assert finding.severity == "error"
    assert finding.advice == WAIT


def test_a_producer_whose_own_arrays_are_not_aligned_is_told_that_they_are_such_sources():
    narrow = path("f(x)", owner=owned("copy", alignment=16), early_write=UNALIGNED)
    (finding,) = found("DLP020", narrow)
    own = "Arrays of torch are such sources too: some begin at a multiple of 16 bytes and no more."
    assert finding.advice == f"{WAIT} {own}"


def test_a_source_that_was_asked_to_begin_elsewhere_says_nothing_of_others():
    sliced = {"case": {"layout": "sliced"}, "owner": owned("copy", alignment=4)}
    (finding,) = found(
        "DLP020",
        path("f(x)", owner=owned("copy"), early_write=UNALIGNED),
        path("f(x)", early_write=UNALIGNED, **sliced),
    )
    assert "such sources too" not in finding.advice


def test_a_path_that_never_copies_is_named_to_those_that_need_no_copy():
    refusing = path("view_only(x)", 1 * US, alignment=by_alignment("refused"))
    (finding,) = found("DLP020", sometimes_a_view(), refusing)
    assert f"{DO_NOT_WRITE} Or: view_only(x) never copies, but is a view or refuses" in (
        finding.advice
    )
    documented = sometimes_a_view("g(x)", case={"promise": "copy"})
    (finding,) = found("DLP020", documented, refusing)
    assert finding.advice.endswith(DO_NOT_WRITE)


def test_a_copy_that_is_safe_everywhere_is_named_to_what_is_documented_to_copy():
    asked, ends_whole = {"promise": "copy"}, spread(9 * US, same_as="host_time")
    whole = path("g(x)", ends_whole, "copy", early_write=WHOLE, case=asked)
    (finding,) = found("DLP020", sometimes_a_view(case=asked), whole)
    assert f"{DO_NOT_WRITE} Or: g(x) is not torn" in finding.advice


UNLOOKED = " (not looked at: whether it still reads its source)"


@pytest.mark.parametrize(
    ("ready", "early_write", "told"),
    [
        (9 * US, None, True),
        (9 * US, WHOLE, False),
        (spread(9 * US, same_as="host_time"), None, False),
    ],
    ids=["not looked at", "looked at", "nothing to wait for"],
)
def test_a_copy_that_is_advised_says_that_nobody_looked_whether_it_is_torn(
    ready, early_write, told
):
    asked = {"promise": "copy"}
    copy = path("g(x)", ready, "copy", early_write=early_write, case=asked)
    (finding,) = found("DLP018", path("alias(x)", case=asked), copy)
    assert "g(x) is a copy" in finding.advice
    assert (UNLOOKED in finding.advice) is told


@pytest.mark.parametrize(
    ("begins", "said"),
    [
        (16, "copy of 64 KiB, of a source at a multiple of 16 bytes and no more"),
        (64, "copy of 64 KiB"),
        (None, "copy of 64 KiB"),
    ],
)
def test_a_torn_copy_is_told_with_where_its_source_began(begins, said):
    known = {} if begins is None else {"torn_alignment_bytes": begins}
    torn = verdict("unsafe", sizes_bytes={"65536": "torn"}, torn_layout="C", **known)
    (finding,) = found("DLP020", torn_copy(early_write=torn))
    assert finding.summary.endswith(f"changed the {said}")
    assert finding.evidence.get("torn_alignment_bytes") == begins
    own = "Arrays of torch are such sources too: some begin at a multiple of 16 bytes and no more."
    assert ("where the source is not aligned" in finding.summary) is (begins == 16)
    assert (own in finding.advice) is (begins == 16)
