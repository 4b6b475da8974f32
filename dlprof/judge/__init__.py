"""Rules: pure functions from what was measured to findings.

Nothing here measures, reads or writes. No rule decides by a framework's name; only quotations of
documentation in :mod:`dlprof.judge.standards` have names. The numbers on which rules decide stand
in :mod:`dlprof.judge.thresholds`, and those of leaks in :mod:`dlprof.judge.lifetime`. What is
unknown fires nothing. A new rule is a function in its family, with a page in ``pages/`` and a
plant in :mod:`dlprof.selftest.plants`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.resources import files

from dlprof.errors import UsageError
from dlprof.judge import (
    correctness,
    cost,
    evidence_text,
    handshake,
    lifetime,
    process,
    sharing,
    waiting,
)
from dlprof.judge.cases import Cases, views
from dlprof.judge.rule import SEVERITIES, Rule, worst_first
from dlprof.protocol.messages import DIAGNOSIS
from dlprof.runner.session import FindingRecord, Result
from dlprof.text.clean import nearest

__all__ = [
    "BY_ID",
    "BY_WORD",
    "FAULTS",
    "NEEDS",
    "NEED_TIMES",
    "RULES",
    "SEVERITIES",
    "Rule",
    "cases_in",
    "expected",
    "find",
    "index",
    "observations",
    "page",
    "with_name",
]

TOPICS = ("trace",)
"""Pages that explain something else than a rule."""

FAMILIES = (waiting, cost, correctness, lifetime, process, handshake, sharing)
RULES: tuple[Rule, ...] = tuple(
    sorted(
        (one for family in FAMILIES for one in vars(family).values() if isinstance(one, Rule)),
        key=lambda rule: rule.id,
    )
)
"""In the order of their ids, which never change their meaning."""
BY_ID = {rule.id: rule for rule in RULES}
BY_WORD = {word.lower(): rule for rule in RULES for word in (rule.id, rule.name)}
"""As users write rules, in lower case."""
WRITTEN = tuple(word for rule in RULES for word in (rule.id, rule.name))
FAULTS = {rule.id: rule.fault for rule in RULES if rule.fault is not None}
NEED_TIMES = tuple(rule.id for rule in RULES if rule.times)
NEEDS = {rule.id: rule.instrument for rule in RULES if rule.instrument in DIAGNOSIS}
"""By rule: the instrument of the diagnosis without which it finds nothing."""


def with_name(rule: str, mark: str = "") -> str:
    """``DLP020? unsafe-copy``; the id alone of an unknown rule."""
    return f"{rule}{mark} {BY_ID[rule].name}" if rule in BY_ID else f"{rule}{mark}"


def cases_in(results: Iterable[Result]) -> Cases:
    """The cases of a session. Steps of inference are no conversions: they are left out."""
    return Cases(tuple(views(results)), FAULTS)


def find(results: Iterable[Result]) -> list[FindingRecord]:
    """All findings of a session, worst first."""
    return find_in(cases_in(results))


def find_in(cases: Cases) -> list[FindingRecord]:
    """All findings of the cases, worst first."""
    return worst_first(found for rule in RULES for found in rule.findings(cases))


def expected(finding: FindingRecord, result: Result) -> str:
    """Markdown: what is expected of a case of the finding instead, with its source."""
    rule = BY_ID.get(finding.rule)
    return rule.expectation(result) if rule is not None else ""


def observations(finding: FindingRecord, results: Sequence[Result]) -> list[str]:
    """What proves a finding: a line for each look at its clearest case, first of ``results``."""
    rule = BY_ID.get(finding.rule)
    return evidence_text.observations(results[0], rule.instrument) if rule and results else []


def page(word: str) -> str:
    """The page of a rule's id or name, or of a topic, in Markdown.

    Raises :class:`UsageError` with the nearest one.
    """
    if word.lower() in TOPICS:
        return _read(word.lower())
    if word.lower() not in BY_WORD:
        hint = nearest(word, WRITTEN, "'dlprof explain' lists them")
        raise UsageError(f"there is no rule {word!r}: {hint}")
    rule = BY_WORD[word.lower()]
    first, _, rest = _read(rule.id).partition("\n")
    return f"# {rule.id} {rule.name}\n\n{first} Severity: {rule.severity_text}.\n{rest}"


def index(rule: str) -> str:
    """The first sentence of a rule's page: what it finds."""
    return _read(rule).partition("\n")[0]


def _read(name: str) -> str:
    return files(__package__).joinpath("pages", f"{name}.md").read_text(encoding="utf-8")
