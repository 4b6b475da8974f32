"""Rules: pure functions from what was measured to findings.

Nothing here measures, reads or writes. No rule decides by a framework's name; only quotations of
documentation in :mod:`dlprof.judge.rule` have names. The thresholds of rules are in
:mod:`dlprof.judge.thresholds`, those of leaks in :mod:`dlprof.judge.lifetime`. An unknown
verdict is no finding. A new rule is a function in its family, with a page in ``pages/`` and a
plant in :mod:`dlprof.selftest.plants`.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files

from dlprof.errors import UsageError
from dlprof.judge import correctness, cost, handshake, lifetime, process, sharing, waiting
from dlprof.judge.cases import Cases, views
from dlprof.judge.rule import Rule, worst_first
from dlprof.protocol.messages import DIAGNOSIS
from dlprof.runner.session import FindingRecord, Result
from dlprof.text.clean import nearest

TOPICS = ("trace",)
"""Pages that do not belong to a rule."""

FAMILIES = (waiting, cost, correctness, lifetime, process, handshake, sharing)
RULES: tuple[Rule, ...] = tuple(
    sorted(
        (rule for family in FAMILIES for rule in vars(family).values() if isinstance(rule, Rule)),
        key=lambda rule: rule.id,
    )
)
"""Sorted by id. An id never changes its meaning."""
BY_ID = {rule.id: rule for rule in RULES}
BY_WORD = {word.lower(): rule for rule in RULES for word in (rule.id, rule.name)}
"""Rules by id and by name, in lower case."""
WRITTEN = tuple(word for rule in RULES for word in (rule.id, rule.name))
FAULTS = {rule.id: rule.fault for rule in RULES if rule.fault is not None}
NEED_TIMES = tuple(rule.id for rule in RULES if rule.times)
NEEDS = {rule.id: rule.instrument for rule in RULES if rule.instrument in DIAGNOSIS}
"""The instrument of the diagnosis that a rule needs to find anything."""


def with_name(rule: str) -> str:
    """Return ``DLP020 unsafe-copy``."""
    return f"{rule} {BY_ID[rule].name}"


def cases_in(results: Iterable[Result]) -> Cases:
    """Return the cases of a session, without steps of inference, which convert nothing."""
    return Cases(tuple(views(results)), FAULTS)


def find(results: Iterable[Result]) -> list[FindingRecord]:
    """Return all findings of a session, worst first."""
    return case_findings(cases_in(results))


def case_findings(cases: Cases) -> list[FindingRecord]:
    """Return all findings of the cases, worst first."""
    return worst_first(finding for rule in RULES for finding in rule.findings(cases))


def about(word: str) -> tuple[Rule, ...]:
    """Return the rules about a word such as ``copy``; none for a rule's id or name, or a topic."""
    if word.lower() in (*TOPICS, *BY_WORD):
        return ()
    return tuple(rule for rule in RULES if word.lower() in f"{rule.name} {index(rule.id)}".lower())


def page(word: str) -> str:
    """Return the page of a rule's id or name, or of a topic, in Markdown.

    Raises :class:`UsageError` with the nearest one.
    """
    if word.lower() in TOPICS:
        return _read(word.lower())
    if word.lower() not in BY_WORD:
        hint = nearest(word, WRITTEN, "'dlprof explain' lists them")
        raise UsageError(f"there is no rule {word!r}: {hint}")
    rule = BY_WORD[word.lower()]
    first, _, body = _read(rule.id).partition("\n")
    return f"# {rule.id} {rule.name}\n\n{first} Severity: {rule.severity_text}.\n{body}"


def index(rule: str) -> str:
    """Return the first sentence of a rule's page."""
    return _read(rule).partition("\n")[0]


def _read(name: str) -> str:
    return files(__package__).joinpath("pages", f"{name}.md").read_text(encoding="utf-8")
