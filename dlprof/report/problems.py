"""The findings of a session as problems: one for each rule and severity, worst first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress

from dlprof.errors import NoReproducer
from dlprof.judge import expected, observations
from dlprof.judge.rule import severity_of
from dlprof.report.document import Problem
from dlprof.report.paths import severity_rank
from dlprof.runner.session import FindingRecord, Session, pair_text
from dlprof.text.clean import first_words, listed
from dlprof.ticket.reproducer import reproducer, rerun_command

MOST_WORDS = 20
MOST_SCRIPTS = 12
"""Problems with a script of their own: a document of a long session stays small."""


def problems_of(session: Session, name: str, scripts: bool = False) -> tuple[Problem, ...]:
    """``name`` is the session in commands; ``scripts`` asks for reproducers, which take time."""
    alike: dict[tuple[str, ...], list[FindingRecord]] = defaultdict(list)
    for finding in session.findings:
        # Findings of one rule about a subject, such as a framework, say different things.
        alone = finding.said if finding.subject else ""
        alike[finding.rule, severity_of(finding.severity), alone].append(finding)
    ranked = sorted(
        alike.values(), key=lambda found: (severity_rank(found[0]), _is_surveyed(session, found))
    )
    return tuple(
        _problem(session, found, name, scripts and at < MOST_SCRIPTS)
        for at, found in enumerate(ranked)
    )


def _problem(
    session: Session, findings: Sequence[FindingRecord], name: str, has_script: bool
) -> Problem:
    """One for all findings of a rule and a severity."""
    worst = findings[0]
    results = [session.results[index] for index in _indices(findings)]
    codes = tuple({one.case.way: one.case.code for one in results}.values())
    sentence, more = _sentence(session, findings)
    numbers = [session.findings.index(one) + 1 for one in findings]
    script, again = "", rerun_command(session, worst)
    if has_script:
        with suppress(NoReproducer):
            script = reproducer(session, worst).text
    return Problem(
        worst.rule,
        severity_of(worst.severity),
        sentence if worst.subject else _where(session, findings) + sentence,
        more,
        (worst.subject,) if worst.subject else codes,
        _advice(findings, numbers),
        (
            # A ticket is asked for by the number of its finding.
            *(f"{number}. {one.summary}" for number, one in zip(numbers, findings, strict=True)),
            *observations(worst, results),
        ),
        expected(worst, results[0]) if results else "",
        script,
        (
            f"dlprof explain {worst.rule}",
            f"dlprof ticket {name} {worst.rule}",
            *([again] if again else []),
        ),
    )


def _where(session: Session, findings: Sequence[FindingRecord]) -> str:
    """The pairs of findings, if the session has several; and whether other arrays show them."""
    told = []
    if len({one.case.pair for one in session.results}) > 1:
        found = (session.results[index].case.pair for index in _indices(findings))
        told.append(listed(dict.fromkeys(map(pair_text, found))))
    has_times = any(not one.case.survey for one in session.results)
    if has_times and _is_surveyed(session, findings):
        told.append("other arrays")
    return f"{', '.join(told)}: " if told else ""


def _is_surveyed(session: Session, findings: Sequence[FindingRecord]) -> bool:
    """Whether only small arrays of the survey show it."""
    indices = _indices(findings)
    return bool(indices) and all(session.results[index].case.survey for index in indices)


def _sentence(session: Session, findings: Sequence[FindingRecord]) -> tuple[str, int]:
    """The headline that counts most paths, and the number of the others.

    Findings that say the same are counted together.
    """
    alike: dict[str, list[FindingRecord]] = defaultdict(list)
    for finding in findings:
        alike[finding.said or finding.summary].append(finding)
    paths = {
        said: {session.results[index].case.way for index in _indices(found)}
        for said, found in alike.items()
    }
    said = max(paths, key=lambda one: len(paths[one]))
    told, count = alike[said], len(paths[said])
    more = len(set().union(*paths.values()) - paths[said])
    if len(told) > 1 and not told[0].subject:
        return f"{count:,} paths {told[0].said}", more
    return told[0].headline or first_words(told[0].summary, MOST_WORDS), more


def _advice(findings: Sequence[FindingRecord], numbers: Sequence[int]) -> tuple[str, ...]:
    """What to do, once; where findings differ in it, each line names its findings by number."""
    by_advice: dict[str, list[str]] = defaultdict(list)
    for number, finding in zip(numbers, findings, strict=True):
        by_advice[finding.advice].append(str(number))
    if len(by_advice) == 1:
        return tuple(filter(None, by_advice))
    return tuple(f"For {listed(ids)}: {advice}" for advice, ids in by_advice.items() if advice)


def _indices(findings: Iterable[FindingRecord]) -> list[int]:
    """The results that the findings name, each once."""
    return list(dict.fromkeys(index for finding in findings for index in finding.results))
