"""Remarks as a GitLab code quality report.

Its form: https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format. GitLab shows
what a merge request adds: the remarks whose fingerprints the target branch does not have.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from dlprof.reports.ci.remark import Remark

SEVERITIES = {"error": "critical", "warning": "major"}
LEAST = "info"


def render(remarks: Iterable[Remark], file: str) -> str:
    """A JSON array, with a line end.

    ``file`` is the path in the repository that all of them point to, at its first line: GitLab
    takes no remark without a place, and a conversion has none in the source.
    """
    return json.dumps([_issue(remark, file) for remark in remarks], indent=1) + "\n"


def _issue(remark: Remark, file: str) -> dict[str, Any]:
    where = f" ({remark.array})" if remark.array else ""
    advice = f" {remark.advice}" if remark.advice else ""
    return {
        "description": f"{remark.sentence}{where}{advice}",
        "check_name": remark.rule,
        "fingerprint": remark.fingerprint,
        "severity": SEVERITIES.get(remark.severity, LEAST),
        "location": {"path": file, "lines": {"begin": 1}},
    }
