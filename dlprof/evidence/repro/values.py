"""Shape, dtype and values: source and result, side by side."""

from __future__ import annotations

from dlprof.analysis.changed import first
from dlprof.analysis.known import Known
from dlprof.evidence.repro import aftermath
from dlprof.evidence.repro.effect import Effect
from dlprof.evidence.repro.lines import block
from dlprof.evidence.repro.subject import Subject
from dlprof.session.model import FindingRecord


def dtype_changed(subject: Subject, _: Subject | None, finding: FindingRecord) -> Effect:
    """The result has another dtype than the source."""
    body = block(
        subject.create(),
        subject.convert(),
        f"dtypes = {subject.source('dtype')}, {subject.converted('dtype')}",
        'print("x is %s, y is %s" % dtypes)',
        "return dtypes[0] != dtypes[1]",
    )
    before, after = (finding.evidence.get(name, "?") for name in ("before", "after"))
    return Effect(f"{subject.code} makes {after} of {before}", body)


def wrong_values(subject: Subject, _: Subject | None, __: FindingRecord) -> Effect:
    """The result has another shape, or other values; or more than the result changed."""
    changed = Known(0, subject.result).changed
    if first(changed):
        return aftermath.effect(subject)
    if "shape" in changed:
        return _shape_changed(subject)
    body = block(
        subject.create(),
        subject.convert(),
        f"values = {subject.source('values')}, {subject.values_like_source()}",
        f"wrong = {subject.differing('values[0]', 'values[1]')}",
        'print(wrong, "values of y differ from those of x")',
        "return wrong > 0",
    )
    return Effect(f"{subject.code} gives wrong values", body)


def _shape_changed(subject: Subject) -> Effect:
    body = block(
        subject.create(),
        subject.convert(),
        f"shapes = {subject.source('shape')}, {subject.converted('shape')}",
        'print("x has the shape %s, y has %s" % shapes)',
        "return shapes[0] != shapes[1]",
    )
    return Effect(f"{subject.code} loses the shape", body)
