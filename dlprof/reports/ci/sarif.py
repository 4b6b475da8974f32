"""Remarks as SARIF 2.1.0, for GitHub code scanning and other viewers.

The standard: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from dlprof._version import __version__
from dlprof.reports.ci.remark import Remark
from dlprof.rules import RULES
from dlprof.rules.pages import index, page, section

VERSION = "2.1.0"
SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
LEVELS = {"error": "error", "warning": "warning"}
LEAST = "note"
FINGERPRINTS = ("dlprof/v1", "primaryLocationLineHash")
"""Our own, and the one that GitHub's upload makes of the line that a result stands at where it is
missing: all stand at the first. It keeps one that is not made so, and warns
(src/fingerprints.ts of github/codeql-action). Not tried on GitHub."""

GATE = {
    "slower": "HEAD takes longer than BASE, by more than the floor.",
    "worse": "A verdict of HEAD is worse than that of BASE.",
    "gone": "BASE has the case, and HEAD was asked for it and has it not.",
    "unsure": "It could not be told whether HEAD is slower.",
    "invalid": "The times cannot be trusted, or are not of the same thing.",
    "incomparable": "The times of the two sides cannot be compared.",
    "nothing": "There was nothing to compare.",
    "blind": "--fail-on names what nothing looked for.",
    "untold": "No slowdown could have been seen: too few rounds, or no time that could be judged.",
    "ambiguous": "A session holds the case more than once, and which is meant cannot be told.",
}
"""What the words of a comparison mean; docs/compare.md has more."""

MORE = "See docs/ci.md and docs/compare.md of dlprof."

RUN = {
    "nothing-measured": "Nothing could be measured.",
    "stopped": "The run was stopped before its end.",
    "expectation": "A scenario expects something that was not found, or could not be checked.",
}


def render(remarks: Sequence[Remark], file: str, successful: bool, docs: str | None = None) -> str:
    """One SARIF log with one run, and a line end.

    ``file`` as in :func:`dlprof.reports.ci.gitlab.render`. ``successful`` says whether the
    measurement came to its end. ``docs`` is the address of the documentation, where there is one:
    the rules then have a ``helpUri``; the text of their pages they have in any case.
    """
    rules = _rules(remarks, docs)
    places = {rule["id"]: at for at, rule in enumerate(rules)}
    driver = {"name": "dlprof", "version": __version__, "rules": rules}
    run = {
        "tool": {"driver": driver},
        "invocations": [{"executionSuccessful": successful}],
        "columnKind": "unicodeCodePoints",
        "results": [_result(remark, places[remark.rule], file) for remark in remarks],
    }
    return json.dumps({"$schema": SCHEMA, "version": VERSION, "runs": [run]}, indent=1) + "\n"


def _rules(remarks: Sequence[Remark], docs: str | None) -> list[dict[str, Any]]:
    """All rules of dlprof, and those words that were said and are none of them."""
    known = [_documented(rule.id, rule.name, docs) for rule in RULES]
    ids = {rule.id for rule in RULES}
    words = dict.fromkeys(remark.rule for remark in remarks if remark.rule not in ids)
    return known + [_word(word) for word in words]


def _documented(rule: str, name: str, docs: str | None) -> dict[str, Any]:
    text = page(rule)
    found = {
        "id": rule,
        "name": name,
        "shortDescription": {"text": _braced(index(rule))},
        "fullDescription": {"text": _braced(_full(rule))},
        "help": {"text": _braced(text), "markdown": _braced(text)},
    }
    return found | ({"helpUri": f"{docs.rstrip('/')}/rules/{rule}.html"} if docs else {})


def _word(word: str) -> dict[str, Any]:
    text = _braced({**GATE, **RUN}.get(word, word))
    return {
        "id": word,
        "name": word,
        "shortDescription": {"text": text},
        "fullDescription": {"text": text},
        "help": {"text": f"{text} {MORE}"},
    }


def _full(rule: str) -> str:
    """What a rule finds and why that matters: GitHub shows the first 1024 characters."""
    return " ".join(f"{index(rule)} {section(rule, 'Why it matters')}".split())


def _result(remark: Remark, place: int, file: str) -> dict[str, Any]:
    advice = f"\n{remark.advice}" if remark.advice else ""
    return {
        "ruleId": remark.rule,
        "ruleIndex": place,
        "level": LEVELS.get(remark.severity, LEAST),
        "message": {"text": _plain(f"{remark.sentence}{advice}")},
        "locations": [_location(remark, file)],
        "partialFingerprints": dict.fromkeys(FINGERPRINTS, remark.fingerprint),
    }


def _location(remark: Remark, file: str) -> dict[str, Any]:
    found: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": {"uri": quote(file, errors="replace")},
            "region": {"startLine": 1},
        }
    }
    if remark.subject:
        name = f"{remark.subject}  {remark.array}"
        found["logicalLocations"] = [{"name": remark.subject, "fullyQualifiedName": name}]
    return found


def _plain(text: str) -> str:
    """``text`` of which a viewer makes no link: ``[words](target)`` is one, section 3.11.6."""
    return _braced(text.replace("](", "] ("))


def _braced(text: str) -> str:
    """Braces stand for placeholders unless they are doubled, section 3.11.5."""
    return text.replace("{", "{{").replace("}", "}}")
