"""A remark: something to be said of one way and one cause, the same from run to run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass

from dlprof.reports.document import Problem, Severity


@dataclass(frozen=True)
class Remark:
    """``rule`` is an id, ``name`` its word; ``severity`` is ``error``, ``warning`` or ``info``.

    ``subject`` is the code that it is about and ``array`` the pair and the array, both empty where
    it is about the whole. ``text`` is the same for all ways that a finding is about. Text is
    fit to be shown. ``fingerprint`` depends on rule and way only, never on a time or a version.
    """

    rule: str
    name: str
    severity: str
    text: str
    fingerprint: str
    subject: str = ""
    array: str = ""
    advice: str = ""


def problem_of(remark: Remark) -> Problem:
    severity: dict[str, Severity] = {"error": "error", "warning": "warning"}
    about = f"{remark.subject}: " if remark.subject and remark.subject not in remark.text else ""
    codes = (remark.array,) if remark.array else ()
    level = severity.get(remark.severity, "info")
    return Problem(remark.rule, level, f"{about}{remark.text}", codes, remark.advice)


def fingerprint(*parts: object) -> str:
    """64 hexadecimal digits that stand for ``parts`` on any machine."""
    text = json.dumps([str(part) for part in parts])
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def distinct(remarks: Iterable[Remark]) -> tuple[Remark, ...]:
    """The first remark of each fingerprint: readers of them take two for one."""
    found: dict[str, Remark] = {}
    for remark in remarks:
        found.setdefault(remark.fingerprint, remark)
    return tuple(found.values())
