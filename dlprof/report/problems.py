"""The findings of a session as problems: one for each rule and severity, worst first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from dlprof.errors import NoReproducer
from dlprof.judge import expected, observations
from dlprof.judge.case_view import CaseView
from dlprof.judge.rule import severity_of
from dlprof.report.document import Problem
from dlprof.report.paths import severity_rank
from dlprof.runner.session import FindingRecord, Session, pair_text
from dlprof.text.clean import first_words, listed
from dlprof.ticket.reproducer import reproducer
from dlprof.ticket.rerun_command import rerun_command

MOST_WORDS = 20
MOST_SCRIPTS = 12
"""Problems with a script of their own: a document of a long session stays small."""


def problems_of(session: Session, name: str, scripts: bool = False) -> tuple[Problem, ...]:
    """``name`` is the session in commands; ``scripts`` asks for reproducers, which take time."""
    alike: dict[tuple[str, ...], list[FindingRecord]] = defaultdict(list)
    for finding in session.findings:
        # A rule's breaches of several severities differ in what happens: a copy that is a view.
        alone = finding.said if finding.subject else ""
        alike[finding.rule, severity_of(finding.severity), alone].append(finding)
    ranked = sorted(
        alike.values(),
        key=lambda found: (severity_rank(found[0]), _is_of_other_arrays(session, _indices(found))),
    )
    has_pairs = len({one.case.pair for one in session.results}) > 1
    return tuple(
        _problem(session, found, name, scripts and at < MOST_SCRIPTS, has_pairs)
        for at, found in enumerate(ranked)
    )


def _problem(
    session: Session, findings: Sequence[FindingRecord], name: str, script: bool, has_pairs: bool
) -> Problem:
    """One for all findings of a rule and a severity."""
    worst = findings[0]
    indices = _indices(findings)
    results = [session.results[index] for index in indices]
    codes: dict[tuple[str, ...], str] = {}
    for one in results:
        codes.setdefault(one.case.way, one.case.code)
    commands = [f"dlprof explain {worst.rule}", f"dlprof ticket {name} {worst.rule}"]
    again = _rerun(session, worst)
    sentence, more = _sentence(session, findings)
    numbers = {id(one): number for number, one in enumerate(session.findings, 1)}
    return Problem(
        worst.rule,
        severity_of(worst.severity),
        sentence if worst.subject else _where(session, indices, has_pairs) + sentence,
        more,
        (worst.subject,) if worst.subject else tuple(codes.values()),
        _advice(session, findings),
        (
            # A ticket is asked for by the number of its finding.
            *(f"{numbers[id(one)]}. {one.summary}" for one in findings),
            *observations(worst, results),
        ),
        expected(worst, results[0]) if results else "",
        _script(session, worst) if script else "",
        (*commands, *([again] if again else [])),
    )


def _where(session: Session, indices: Sequence[int], has_pairs: bool) -> str:
    """The pairs of findings, if the session has several; and whether other arrays show them."""
    results = [session.results[index] for index in indices]
    told = []
    if has_pairs and results:
        told.append(listed(dict.fromkeys(pair_text(one.case.pair) for one in results)))
    if _is_of_other_arrays(session, indices):
        told += ["other arrays"] * any(not one.case.survey for one in session.results)
    return f"{', '.join(told)}: " if told else ""


def _is_of_other_arrays(session: Session, indices: Sequence[int]) -> bool:
    """Whether only small arrays of the survey show it."""
    return bool(indices) and all(session.results[index].case.survey for index in indices)


def _sentence(session: Session, findings: Sequence[FindingRecord]) -> tuple[str, int]:
    """The headline that counts most paths, and how many others there are.

    Findings that say the same are counted together.
    """
    if findings[0].subject:
        return _headline(findings[0]), 0
    alike: dict[str, list[FindingRecord]] = defaultdict(list)
    for finding in findings:
        alike[finding.said or finding.summary].append(finding)
    paths = {said: _paths(session, found) for said, found in alike.items()}
    said = max(paths, key=lambda one: len(paths[one]))
    told, count = alike[said], len(paths[said])
    more = len(set().union(*paths.values()) - paths[said])
    return f"{count:,} paths {told[0].said}" if len(told) > 1 else _headline(told[0]), more


def _advice(session: Session, findings: Sequence[FindingRecord]) -> tuple[str, ...]:
    """What to do, once; where findings differ in it, each line names its findings by number."""
    numbers: dict[str, list[str]] = defaultdict(list)
    for finding in findings:
        numbers[finding.advice].append(str(session.findings.index(finding) + 1))
    if len(numbers) == 1:
        return tuple(filter(None, numbers))
    return tuple(f"For {listed(ids)}: {advice}" for advice, ids in numbers.items() if advice)


def _paths(session: Session, findings: Iterable[FindingRecord]) -> set[tuple[str, ...]]:
    return {session.results[index].case.way for index in _indices(findings)}


def _headline(finding: FindingRecord) -> str:
    """Of a session that was written before there were headlines, the beginning of its summary."""
    return finding.headline or first_words(finding.summary, MOST_WORDS)


def _rerun(session: Session, finding: FindingRecord) -> str | None:
    """The command that measures the cases of a finding again."""
    named = [(index, session.results[index]) for index in finding.results]
    shape = named[0][1].case.shape if named else ()  # the command has the first array alone
    cases = [CaseView(index, one) for index, one in named if one.case.shape == shape]
    at = finding.against
    against = None if at is None else CaseView(at, session.results[at])
    return rerun_command(cases, session, against, finding.rule)


def _script(session: Session, finding: FindingRecord) -> str:
    try:
        return reproducer(session, finding).text
    except NoReproducer:
        return ""


def _indices(findings: Iterable[FindingRecord]) -> list[int]:
    """The results that the findings name, each once."""
    return list(dict.fromkeys(index for finding in findings for index in finding.results))
