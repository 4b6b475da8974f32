"""What continuous integration reads of a gate that measured nothing: one error, in every form."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from dlprof.compare.outcome import NOT_KNOWN, REGRESSION
from dlprof.reports.checks import ERROR
from dlprof.reports.ci.of_comparison import INCOMPARABLE, NOTHING, WHOLE
from dlprof.reports.ci.remark import Remark, fingerprint
from dlprof.reports.comparison_json import SCHEMA
from dlprof.reports.document import Check
from dlprof.reports.markdown import prose
from dlprof.text.clean import clean


@dataclass(frozen=True)
class Refusal:
    """``said`` is the sentence with which the gate ended, ``code`` its exit code."""

    said: str
    code: int

    @property
    def kind(self) -> str:
        return INCOMPARABLE if self.code in (NOT_KNOWN, REGRESSION) else NOTHING


def check(refusal: Refusal) -> Check:
    said = clean(refusal.said)
    return Check(WHOLE, "can be compared", ERROR, refusal.kind, said, said)


def remark(refusal: Refusal) -> Remark:
    """The same fingerprint as that of a comparison that came to this."""
    rule = refusal.kind.lower()
    return Remark(rule, rule, "error", clean(refusal.said), fingerprint(refusal.kind))


def markdown(refusal: Refusal) -> str:
    return f"## dlprof: BASE and HEAD\n\n**{prose(clean(refusal.said))}**\n"


def as_json(refusal: Refusal) -> str:
    """The comparison of :mod:`dlprof.reports.comparison_json` that was not made."""
    content: dict[str, Any] = {
        "schema": SCHEMA,
        "base": None,
        "head": None,
        "differences": [],
        "times_comparable": False,
        "reason": clean(refusal.said),
        "counts": {},
        "regression": False,
        "exit_code": refusal.code,
        "answers": [clean(refusal.said)],
        "cases": [],
        "ambiguous": [],
    }
    return json.dumps(content, indent=1) + "\n"
