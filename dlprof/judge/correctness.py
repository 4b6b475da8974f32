"""Is it right? Rules on shape, dtype and its byte order, values and the read-only flag."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from dlprof.errors import NoReproducer
from dlprof.judge.case_view import CaseView, seen
from dlprof.judge.cases import Cases, groups
from dlprof.judge.rule import NONE_INSTEAD, Rule, expect, finding, or_a_copy, replacements
from dlprof.judge.safety import Fault
from dlprof.judge.script import LOOK, Effect, Subject, shows
from dlprof.judge.standards import LIKE_OTHERS, READ_ONLY, SAME_DATA
from dlprof.runner.axes import shape_text
from dlprof.runner.evidence import Changed, Count, Evidence, Values
from dlprof.runner.session import FindingRecord, Result

WRONG = ("values", "wrong")


def dtype_changed(cases: Cases) -> Iterator[FindingRecord]:
    """The result has another dtype than the source.

    What a survey finds is a finding only if the documentation does not say it.
    """
    wrong = [case for case in cases.cases if case.changed.dtype and not _is_narrowed(case)]
    for found in groups(
        wrong, lambda case: (case.pair[1], (case.changed.dtype or ("", ""))[1]), look=WRONG
    ):
        before, after = found[0].changed.dtype or ("", "")
        first, lost = found[0].result.case, _lost(found[0].changed.values)
        why = first.narrows_why if first.narrows_to == after else ""
        dtypes = dict.fromkeys(case.changed.dtype[0] for case in found if case.changed.dtype)
        of = before if len(dtypes) == 1 else f"{len(dtypes)} other dtypes"
        advice = replacements(cases, found, "keeps the dtype", none=NONE_INSTEAD)
        yield finding(
            found,
            ("converts", "convert"),
            f"{of} to {after}",
            lost,
            brief=why,
            evidence={"before": before, "after": after},
            advice=advice,
            look=WRONG,
        )


def _is_narrowed(case: CaseView) -> bool:
    record, (_, after) = case.result.case, case.changed.dtype or ("", "")
    return case.surveyed and record.narrows_to == after


def _lost(count: Count | None) -> str:
    """``3 of 16 values changed``; empty if that is not known."""
    if count is None or count.different is None or count.of is None:
        return ""
    return f"{count.different:,} of {count.of:,} values changed"


DTYPE = """
<create>
<convert of y>
dtypes = <dtype of x>, <dtype of y>
print("x is %s, y is %s" % dtypes)
return dtypes[0] != dtypes[1]
"""


def show_dtype_changed(subject: Subject, _: Subject | None, found: FindingRecord) -> Effect:
    before, after = (found.evidence.get(name, "?") for name in ("before", "after"))
    return subject.shown(f"makes {after} of {before}", DTYPE)


def wrong_values(cases: Cases) -> Iterator[FindingRecord]:
    """The result has another shape or, with the same dtype, other values than the source; or the
    call changes more than it makes.
    """
    wrong = [case for case in cases.cases if _wrong_text(case)]
    for found in groups(
        wrong, lambda case: (case.way_in, min(case.changed.kinds), _cause(case)), look=WRONG
    ):
        yield finding(
            found,
            ("gives", "give"),
            _wrong_part(found[0].changed),
            _wrong_text(found[0]),
            brief=_cause(found[0]),
            evidence={"changed": ", ".join(sorted(found[0].changed.kinds))},
            advice=replacements(cases, found, "gives the right result", none=NONE_INSTEAD),
            look=WRONG,
        )
    besides = [case for case in cases.cases if _side_effect(case.changed)]
    for found in groups(
        besides, lambda case: (case.way_in, _side_effect(case.changed)), look=WRONG
    ):
        kind = _side_effect(found[0].changed)
        verb = SIDE_EFFECTS[kind].verb
        yield finding(
            found,
            verb,
            numbers=_lost(getattr(found[0].changed, kind)),
            evidence={"changed": ", ".join(sorted(found[0].changed.kinds))},
            advice=replacements(cases, found, "does not", none=NONE_INSTEAD),
            look=WRONG,
        )


def _cause(case: CaseView) -> str:
    """Why the values are wrong, where an experiment shows it."""
    values = case.changed.values
    return "The byte order was lost." if values is not None and values.byte_order_lost else ""


def _is_wrong(case: CaseView) -> bool:
    """Values that a narrower dtype cannot hold are the dtype's fault."""
    if not case.is_wrong:
        return False
    kinds = set(case.changed.kinds)
    return "dtype" not in kinds or bool(kinds - {"dtype", "values"})


def _wrong_part(changed: Changed) -> str:
    if changed.shape:
        return "a result of the wrong shape"
    return "wrong values" if changed.values and "dtype" not in changed.kinds else "a wrong result"


def _wrong_text(case: CaseView) -> str:
    if case.changed.shape:
        before, after = map(shape_text, case.changed.shape)
        return f"shape {after} instead of {before}"
    # Values that a narrower dtype cannot hold are the dtype's fault.
    return _lost(case.changed.values) if "dtype" not in case.changed.kinds else ""


def _side_effect(changed: Changed) -> str:
    """The worst of what was changed besides the result; empty if nothing was."""
    return next((kind for kind in SIDE_EFFECTS if kind in changed.kinds), "")


def expected_values(found: FindingRecord, result: Result) -> str:
    if _side_effect(CaseView(0, result).changed):
        text = "A conversion changes neither `x` nor earlier results. Its result has the values of"
        return expect(f"{text} `x`.", LIKE_OTHERS)(found, result)
    text = "The result has the shape and the values of its source."
    return expect(text, SAME_DATA)(found, result)


class SideEffect(NamedTuple):
    """A change that a call makes besides its result: words for it, and a script's body."""

    verb: tuple[str, str]
    script: str


SIDE_EFFECTS = {
    "source": SideEffect(
        ("changes its source", "change their source"),
        """
<create>
before = <values of x>
<convert of y>
after = <values of x>
wrong = <differing>
print(wrong, "of", before.size, "values of x were changed by the call")
return wrong > 0
""",
    ),
    "earlier_result": SideEffect(
        ("overwrites its earlier result", "overwrite their earlier results"),
        """
<create>
<convert of y>
before = <values of y>
held, later = x, []
# another array, of other values
<other>
for _ in range(4):
    <convert of z>
    later.append(z)
after = <values of y>
wrong = <differing>
print(wrong, "of", before.size, "values of y changed when others were made")
return held is not x and wrong > 0
""",
    ),
    "after_write": SideEffect(
        (
            "gives old values of a source that was written since an earlier call",
            "give old values of a source that was written since an earlier call",
        ),
        """
<create>
<convert of y>
<write of x>
<convert of z>
before, after = <values of x>, <flat_values of z>
wrong = <differing>
print(wrong, "values of z are not those that were written to x")
return wrong > 0
""",
    ),
    "unfinished": SideEffect(
        ("returns before its values are there", "return before their values are there"),
        """
seen = []
for _ in range(5):
    <create>
    <convert of y>
    after, before = <flat_values of y>, <values of x>
    early = <differing>
    sleep(1)
    after = <flat_values of y>
    seen.append((early, <differing>))
print("values of y that differ from x at once, and after a second:", seen)
return any(early and not later for early, later in seen)
""",
    ),
}
"""Worst first."""
VALUES = """
<create>
<convert of y>
before, after = <values of x>, <flat_values of y>
wrong = <differing>
print(wrong, "values of y differ from those of x")
return wrong > 0
"""
SHAPE = """
<create>
<convert of y>
shapes = <shape of x>, <shape of y>
print("x has the shape %s, y has %s" % shapes)
return shapes[0] != shapes[1]
"""


def show_wrong_values(subject: Subject, _: Subject | None, __: FindingRecord) -> Effect:
    wrong = CaseView(0, subject.result).changed
    looks: list[Evidence] = [
        evidence for word, evidence in seen(subject.result.values) if word == "wrong"
    ]
    evidence = looks[0] if looks else Values()
    subject = subject.as_made(evidence)
    symptom, template = "gives wrong values", VALUES
    kind = _side_effect(wrong)
    if kind:
        symptom, template = SIDE_EFFECTS[kind].verb[0], SIDE_EFFECTS[kind].script
        if subject.is_own and kind == "earlier_result":
            raise NoReproducer("it takes two arrays, and the setup of your own makes one")
    elif "shape" in wrong.kinds:
        symptom, template = "loses the shape", SHAPE
    create = subject.create_by(evidence)
    other = f"{create}\n{subject.said('write', 'x')}" if "<other>" in template else ""
    return subject.shown(symptom, template, create=create, other=other)


READ_ONLY_LOST = "DLP009"


def read_only_lost(cases: Cases) -> Iterator[FindingRecord]:
    """A view lets memory be written that its owner calls read-only.

    An error where another view of the array keeps the flag. A consumer whose arrays can all be
    written has no view that keeps it, and no choice.
    """
    lost = [case for case in cases.cases if case.loses_read_only]
    for found in groups(
        lost, lambda case: case.way_in if cases.breaks(case, READ_ONLY_LOST) else (*case.pair, "")
    ):
        is_dropped = cases.breaks(found[0], READ_ONLY_LOST)
        advice = or_a_copy(cases, found[0], "Do not write to the result.")
        if is_dropped:
            advice = replacements(
                cases, found, "keeps the flag", lambda other: other.keeps_read_only, advice
            )
        yield finding(
            found,
            ("makes a writable view", "make writable views"),
            "of a read-only array",
            brief="A write changes x or ends the process.",
            more="" if is_dropped else "No measured view of the pair stays read-only.",
            evidence={"source_writable": False, "result_writable": True},
            advice=advice,
            severity="error" if is_dropped else "warning",
        )


READ_ONLY_VIEW = f"""
<create>
<convert of y>
<unless_writable>
{LOOK.strip()}
return addresses[0] == addresses[1]
"""


def show_read_only_lost(subject: Subject, _: Subject | None, __: FindingRecord) -> Effect:
    """A framework whose arrays can all be written has no flag to ask for."""
    unless = ""
    if subject.has("writable", "y"):
        unless = f"if not {subject.said('writable', 'y')}:\n    return False"
    return subject.shown(
        "makes a writable view of a read-only array",
        READ_ONLY_VIEW,
        create=subject.create("view"),
        unless_writable=unless,
    )


def read_only_gained(cases: Cases) -> Iterator[FindingRecord]:
    """A result cannot be written, although its source can.

    A consumer whose arrays can never be written has no choice.
    """
    verbs = {
        "view": ("makes a read-only view", "make read-only views"),
        "copy": ("makes a read-only copy", "make read-only copies"),
    }
    losing = [case for case in cases.cases if case.kind in verbs and _is_locked(case)]
    for found in groups(losing, lambda case: (case.way_in, case.kind)):
        kind = found[0].kind or ""
        yield finding(
            found,
            verbs[kind],
            "of a writable array",
            evidence={"source_writable": True, "result_writable": False},
            advice=replacements(cases, found, "can be written", partial(_is_writable, kind)),
        )


def _is_locked(case: CaseView) -> bool:
    found = case.writable
    return (found.source, found.result, found.immutable) == (True, False, False)


def _is_writable(kind: str, case: CaseView) -> bool:
    return (case.writable.source, case.writable.result, case.kind) == (True, True, kind)


READ_ONLY_GAINED = """
<create>
<write of x>
<convert of y>
print("x was written, y can be written:", <writable of y>)
return not <writable of y>
"""


def property_lost(cases: Cases) -> Iterator[FindingRecord]:
    """The result lacks what the source was besides its values, such as a mask."""
    losing = [case for case in cases.cases if _lost_properties(case)]
    for found in groups(losing, lambda case: (case.pair, _lost_properties(case))):
        lost = _lost_properties(found[0])
        yield finding(
            found,
            ("loses", "lose"),
            f"the {' and '.join(lost)} of the source",
            evidence={"lost": ", ".join(lost)},
            advice=replacements(
                cases, found, "keeps it", lambda other: not _lost_properties(other)
            ),
        )


def _lost_properties(case: CaseView) -> tuple[str, ...]:
    known = [evidence.dropped for _, evidence in seen(case.result.values) if evidence.dropped]
    return known[0] if known else ()


MASK_LOST = """
<create>
<convert of y>
before, after = <before>, <after>
print("x has a mask:", before, "- y has a mask:", after)
return before and not after
"""


def show_property_lost(subject: Subject, _: Subject | None, found: FindingRecord) -> Effect:
    before, after = (
        subject.said("masked", name) if subject.has("masked", name) else f'hasattr({name}, "mask")'
        for name in "xy"
    )
    lost = found.evidence.get("lost", "mask")
    return subject.shown(f"loses the {lost} of x", MASK_LOST, before=before, after=after)


RULES = (
    Rule(
        "DLP007",
        "dtype-changed",
        "error",
        dtype_changed,
        expect("The result has the dtype of its source.", SAME_DATA),
        show_dtype_changed,
        "values",
        Fault(lambda case: "dtype" in case.changed.kinds),
        changes=("wrong",),
    ),
    Rule(
        "DLP008",
        "wrong-values",
        "error",
        wrong_values,
        expected_values,
        show_wrong_values,
        "values",
        Fault(_is_wrong),
        changes=("wrong",),
    ),
    Rule(
        READ_ONLY_LOST,
        "read-only-lost",
        {"error": "where another measured view keeps the flag", "warning": ""},
        read_only_lost,
        expect("The result of a read-only array is read-only or a copy.", READ_ONLY),
        show_read_only_lost,
        "ownership",
        Fault(
            lambda case: case.loses_read_only,
            is_avoided=lambda case: case.keeps_read_only,
            condition="do not write to the result",
        ),
        changes=("read-only flag",),
    ),
    Rule(
        "DLP021",
        "property-lost",
        "info",
        property_lost,
        expect("The result is masked as its source is, or the call refuses it."),
        show_property_lost,
        "values",
    ),
    Rule(
        "DLP022",
        "read-only-gained",
        "info",
        read_only_gained,
        expect("The result of a writable array can be written.", READ_ONLY),
        shows("makes a read-only array of a writable one", READ_ONLY_GAINED),
        "values",
    ),
)
