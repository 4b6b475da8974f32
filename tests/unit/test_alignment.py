"""Alignment: whether view or copy depends on where the source begins, on real memory."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from builders import make_result, make_subject

from dlprof.analysis.alignment import Look, Steady, depends, looks_of, owners_of
from dlprof.probes.base import ArraySpec, Import, Protocol, Unsupported
from dlprof.reports.result_row import row_of, rows_of
from dlprof.rules import findings
from dlprof.worker.instruments import alignment

pytestmark = pytest.mark.unit

NEEDS_64 = "({x} if {x}.ctypes.data % 64 == 0 else {x}.copy())"
REFUSES = "({x} if {x}.ctypes.data % 64 == 0 else refuse())"


def every(period):
    """An import that copies at every so manieth call, wherever its source begins."""
    calls = itertools.count(1)
    return lambda x: x.copy() if next(calls) % period == 0 else x[:]


def refuse():
    raise ValueError("not aligned")


def measured(code, spec=None, by_turns=None, **changes):
    import_ = Import("any", (Protocol.DLPACK,), code, **changes)

    def make(spec):
        return make_subject(import_=import_, spec=spec, refuse=refuse, by_turns=by_turns)

    return alignment.measure(make(spec or ArraySpec((4, 8), "float32")), make)


def test_an_import_that_copies_unaligned_memory_depends_on_alignment():
    found = measured(NEEDS_64)
    assert found["verdict"] == "dependent"
    assert found["evidence"]["aligned"]["verdict"] == "view"
    assert found["evidence"]["sliced"]["verdict"] == "copy"


@pytest.mark.parametrize("period", [2, 3, 4, 5])
def test_a_path_that_copies_by_turns_is_inconstant_and_not_dependent(period):
    found = measured("by_turns({x})", by_turns=every(period))
    assert found["verdict"] == "inconstant"
    assert found["evidence"]["reason"].startswith("copy and view from the same place")
    looks = found["evidence"]["looks"]
    assert {len(words) for words in looks.values()} == {4}


INCONSTANT = {
    "verdict": "inconstant",
    "evidence": {
        "aligned": {"verdict": "view", "alignment_bytes": 64},
        "sliced": {"verdict": "copy", "alignment_bytes": 4},
        "looks": {"aligned": ["view", "copy"], "sliced": ["copy", "view"]},
    },
}


def test_a_row_that_is_inconstant_has_no_star():
    assert not row_of(make_result(alignment=INCONSTANT)).depends


def test_an_inconstant_path_is_told_by_processes_and_not_by_alignment():
    result = make_result(alignment=INCONSTANT)
    steady = Steady([Look("way", "source", looks_of(result), owners_of(result), depends(result))])
    assert not steady.holds("view", "way", "source")
    assert steady.where("view", "way", "source") == " in some processes"


def test_no_finding_blames_the_alignment_of_an_inconstant_path():
    found = {"verdict": "copy", "evidence": {"source_alignment_bytes": 16, "result_device": "cpu"}}
    results = [make_result("f(x)", ownership=found, alignment=INCONSTANT)]
    assert [one for one in findings(results) if one.rule == "DLP017"] == []


def test_an_import_that_refuses_unaligned_memory_depends_on_alignment():
    found = measured(REFUSES)
    assert found["verdict"] == "dependent"
    assert found["evidence"]["sliced"] == {
        "verdict": "refused",
        "reason": "ValueError: not aligned",
    }


@pytest.mark.parametrize("code", ["{x}[:]", "{x}.copy()"])
def test_an_import_that_does_the_same_with_both_does_not(code):
    assert measured(code)["verdict"] == "independent"


def test_an_import_that_refuses_both_tells_nothing_of_alignment():
    found = measured("refuse()")
    assert found["verdict"] == "unknown"
    assert "not aligned" in found["evidence"]["reason"]


@pytest.mark.parametrize("layout", ["F", "strided", "reversed", "broadcast", "readonly"])
def test_other_layouts_are_not_asked(layout):
    assert measured("{x}[:]", ArraySpec((4, 8), "float32", layout)) is None


def test_a_call_that_leaves_no_array_behind_is_not_asked():
    assert measured("{x}[:]", returns_array=False) is None


def test_a_large_array_is_looked_at_in_part():
    asked = []
    subject = make_subject(import_=Import("any", (Protocol.DLPACK,), "{x}[:]"))
    large = replace(subject, spec=ArraySpec((1024, 1024, 1024), "float32"))

    def make(spec):
        asked.append(spec.size_bytes)
        raise Unsupported("enough")

    alignment.measure(large, make)
    assert asked == [alignment.LARGEST_BYTES]


def dependent(**places):
    evidence = {place: {"verdict": verdict} for place, verdict in places.items()}
    return row_of(make_result(alignment={"verdict": "dependent", "evidence": evidence}))


def test_a_row_says_how_it_depends():
    row = dependent(aligned="view", sliced="copy")
    assert row.depends == (
        "a view of a source at a multiple of 64 bytes, a copy one element further"
    )


def test_what_was_seen_at_the_first_shape_is_told_of_every_shape_of_the_path():
    evidence = {"aligned": {"verdict": "view"}, "sliced": {"verdict": "copy"}}
    first = make_result(alignment={"verdict": "dependent", "evidence": evidence})
    other = make_result()
    other = other.model_copy(update={"case": other.case.model_copy(update={"shape": (8, 8)})})
    one, two = rows_of([first, other])
    assert one.depends == two.depends != ""
