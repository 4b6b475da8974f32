"""Assertions on conversions, and on what the lines of a test do, for the pytest plugin.

See docs/pytest.md.

A pair is measured once for the same request, and judged as often as tests ask. An unknown answer
fails an assertion, and so does a pair of which nothing was measured: a test must not pass because
nothing was looked at.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ContextDecorator
from dataclasses import dataclass, field
from operator import methodcaller
from pathlib import Path
from typing import Any, NoReturn

from dlprof import api
from dlprof.errors import DlprofError, MissingDevice, MissingFramework, UsageError
from dlprof.judge import cases_in, with_name
from dlprof.judge.case_view import CaseView
from dlprof.judge.cases import Cases
from dlprof.judge.fail_on import parse
from dlprof.report.trace_document import Group, grouped, place_of
from dlprof.runner.axes import shape_text
from dlprof.runner.options import AXES, INTERPRETER
from dlprof.runner.plan import no_path
from dlprof.runner.quantity import plain_time
from dlprof.runner.session import Session, Verdict
from dlprof.runner.trace import FAULTS, checked, doubts, faults
from dlprof.runner.trace_file import Row
from dlprof.text.clean import clean, counted, first_line

ROUNDS = 3
"""Processes that must agree: whether a conversion copies can depend on the process."""
NO_WAIT = ("synchronous", "stream-ordered", "unordered")
"""``synchronous``: the producer's work is done before the conversion starts."""
MOST_LINES = 12
HIDDEN = methodcaller("errisinstance", (AssertionError, DlprofError, Warning))
"""Of pytest's ``__tracebackhide__``: a failure stands at the line of the test, and a bug of dlprof
where it is.
"""

Objection = Callable[[Cases, CaseView], str | None]
"""What speaks against a claim on a conversion that was measured to its end; None for nothing."""


@dataclass
class Assertions:
    """The fixture ``dlprof``. Sessions are kept in ``folder``.

    ``missing`` is called if a framework or a device is not there, and does not return.

    The options of all assertions are those of :func:`dlprof.run` that say what is measured; shape,
    dtype, layout and device are one each. An option that makes no sense raises
    :class:`dlprof.errors.UsageError`.
    """

    folder: Path
    missing: Callable[[DlprofError], NoReturn]
    _kept: dict[tuple[Any, ...], tuple[Session, Path] | DlprofError] = field(
        default_factory=dict, repr=False
    )

    def assert_view(self, producer: str, consumer: str, **asked: Any) -> None:
        """Fail if a conversion copies; paths that are documented to copy are left out."""
        __tracebackhide__ = True
        measured = self._session((producer, consumer), asked, diagnose=False)
        check("Every path is a view", measured, _not("view"), lambda one: one.promise != "copy")

    def assert_copy(self, producer: str, consumer: str, **asked: Any) -> None:
        """Fail if a conversion that is documented to copy does not; of all if none is."""
        __tracebackhide__ = True
        measured = self._session((producer, consumer), asked, diagnose=False)
        check("Every path is a copy", measured, _not("copy"), lambda one: one.promise == "copy")

    def assert_no_host_sync(self, producer: str, consumer: str, **asked: Any) -> None:
        """Fail if a conversion waits on the host for work that is queued on its source."""
        __tracebackhide__ = True
        check("No path waits on the host", self._session((producer, consumer), asked), _waits)

    def assert_safe(self, producer: str, consumer: str, **asked: Any) -> None:
        """Fail if a conversion is wrong, not as documented, or unsafe."""
        __tracebackhide__ = True
        check("Every path is safe", self._session((producer, consumer), asked), _unsafe)

    def assert_no_finding(
        self,
        producer: str,
        consumer: str,
        *,
        rules: str | Iterable[str] = (),
        severity: str | None = None,
        **asked: Any,
    ) -> None:
        """Fail if there is a finding of one of ``rules``, or as severe as ``severity``.

        ``warning`` and worse if neither is given.
        """
        __tracebackhide__ = HIDDEN
        words = [rules] if isinstance(rules, str) else list(rules)
        words = [*words, *([] if severity is None else [severity])] or ["warning"]
        fails = _at_the_test(lambda: parse(words, "assert_no_finding"))
        session, file = self._session((producer, consumer), asked)
        found = {
            index: one.title
            for one in reversed(session.findings)
            if fails.fails(one)
            for index in one.results
        }
        claim = f"No finding of {', '.join(words)}"
        check(claim, (session, file), lambda _, case: found.get(case.index))

    def measure(self, producer: str, consumer: str, **asked: Any) -> Session:
        """The session on which the assertions look, for your own claims."""
        __tracebackhide__ = True
        return self._session((producer, consumer), asked)[0]

    def _session(
        self, pair: tuple[str, str], options: dict[str, Any], diagnose: bool = True
    ) -> tuple[Session, Path]:
        __tracebackhide__ = True
        asked = (*pair, *_at_the_test(lambda: _values(options)).items())
        found = self._kept.get((asked, True)) or self._kept.get((asked, diagnose))
        if found is None:
            file = self.folder / f"{len(self._kept)}.json"
            found = self._kept[asked, diagnose] = _measured(pair, options, diagnose, file)
        if isinstance(found, MissingFramework | MissingDevice):
            self.missing(found)
        if isinstance(found, DlprofError):
            raise type(found)(str(found)) from None
        return found


def _values(options: dict[str, Any]) -> dict[str, Any]:
    """The same for the same request, however it is written.

    Raises :class:`UsageError`, and TypeError for an option that there is not.
    """
    values = api.read(options, (*AXES, *INTERPRETER))
    for key in ("shapes", "dtypes", "layouts", "devices"):
        if len(values[key]) != 1:
            raise UsageError(f"an assertion is on one array, and {key} has {len(values[key])}")
    return values


def _at_the_test(read: Callable[[], Any]) -> Any:
    """What ``read`` gives; its refusal is shown at the line of the test."""
    __tracebackhide__ = True
    try:
        return read()
    except (DlprofError, TypeError) as refusal:
        raise type(refusal)(str(refusal)) from None


def _measured(
    pair: tuple[str, str], options: dict[str, Any], diagnose: bool, file: Path
) -> tuple[Session, Path] | DlprofError:
    """The session and its file, or why there is none."""
    how: dict[str, Any] = {"rounds": ROUNDS, "quick": True, "diagnose": diagnose, "output": file}
    try:
        session = api.run(pair[0], pair[1], **options, **how)
    except DlprofError as error:
        return error
    # A claim about a path that is not there would hold for those beside it, and say nothing of it.
    return UsageError(no_path(session.unmatched)) if session.unmatched else (session, file)


def check(
    claim: str,
    measured: tuple[Session, Path],
    objection: Objection,
    chosen: Callable[[CaseView], bool] = lambda _: True,
) -> None:
    """Raise :class:`AssertionError` if anything speaks against ``claim``, or nothing was measured.

    Of the cases those are judged that are ``chosen``, or all if none is. Paths that the framework
    refuses are left out.
    """
    __tracebackhide__ = HIDDEN
    session, file = measured
    cases = cases_in(session.results, session.findings)
    tried = [case for case in cases.cases if case.result.status != "unsupported"]
    judged = [case for case in tried if chosen(case)] or tried
    against = {}
    for case in judged:
        lost = case.result.status in ("crashed", "timeout", "skipped")
        is_faulty = case.result.is_of_faulty_probe
        what = "could not be checked" if is_faulty else case.result.status
        said = f"{what}: {first_line(case.result.reason)}" if lost else None
        if found := said or objection(cases, case):
            against[case.index] = found
    if against or not judged:
        raise AssertionError(_failure(claim, session, against, len(judged), file))


def _not(wanted: str) -> Objection:
    def objection(_: Cases, case: CaseView) -> str | None:
        found = case.result.ownership
        if found is None or found.verdict == "unknown":
            return f"unknown whether view or copy: {_reason(found)}"
        if found.verdict == "varies":
            return f"a {wanted} in some processes only: {_reason(found)}"
        return f"a {found.verdict}" if found.verdict != wanted else _elsewhere(case, wanted)

    return objection


def _elsewhere(case: CaseView, wanted: str) -> str | None:
    """What the next array would give, if the producer's arrays begin at any address."""
    others = case.words_by_address & {"view", "copy"} - {wanted}
    recipe = case.result.recipe
    anywhere = case.result.case.layout == "C" and recipe is not None and "aligned" in recipe.create
    if not (others and anywhere):
        return None
    return f"a {min(others)} if the source begins elsewhere, as the next one may"


def _waits(_: Cases, case: CaseView) -> str | None:
    found, word = case.result.ordering, case.waits_for
    if found is not None and found.verdict in NO_WAIT and word is None:
        return None
    if found is None or word is None:
        return f"unknown whether it waits: {_reason(found)}"
    if case.loaded is None:
        return word
    call, queue = map(plain_time, case.loaded)
    return f"{word}: takes {call} behind {queue} of queued work"


def _unsafe(cases: Cases, case: CaseView) -> str | None:
    safety = cases.safety(case)
    if safety.is_safe:
        return None
    if case.result.status == "ok" and safety.level == "unsafe":
        return f"unsafe: {', '.join(with_name(*one) for one in safety.marked)}"
    return f"unknown whether it is safe: {safety.unknown}"


def _reason(verdict: Verdict[Any] | None) -> str:
    return "it was not measured" if verdict is None else first_line(verdict.evidence.reason)


def _failure(claim: str, session: Session, against: dict[int, str], judged: int, file: Path) -> str:
    """Several lines: what was claimed, what speaks against it, and the findings about that."""
    lines = [f"  {session.results[at].case.code}: {said}" for at, said in against.items()]
    if not judged:
        reasons = dict.fromkeys(first_line(one.reason) for one in session.results)
        lines = [f"  refused: {reason}" for reason in reasons]
    found: list[str] = []
    for finding in session.findings:
        if against.keys() & set(finding.results):
            found.append(finding.line)
            found += [f"    {finding.advice}"] if finding.advice else []
            found.append(f"    dlprof explain {finding.rule} explains it")
    headline = f"{len(against)} of {judged} do not" if judged else "no path could be measured"
    lines = [
        f"{_what(session)}: {claim}? {headline}",
        *_first(lines),
        *_first(found),
        f"session: {file} (dlprof report prints it)",
    ]
    return "\n".join(clean(line, longest=1000) for line in lines)


def _first(lines: list[str]) -> list[str]:
    beyond = len(lines) - MOST_LINES
    return [*lines[:MOST_LINES], f"  … and {beyond:,} more lines"] if beyond > 0 else lines


def _what(session: Session) -> str:
    if not session.results:
        return "no case"
    case = session.results[0].case
    array = f"{shape_text(case.shape)} {case.dtype} {case.layout} on {case.device}"
    return f"{case.producer} -> {case.consumer}, {array}"


def fail_on(*words: str, include: Sequence[str] = ()) -> ForbiddingBlock:
    """Trace a block, and raise :class:`AssertionError` for a line that does one of ``words``.

    Without words, none of :data:`FAULTS` may happen. ``include`` names packages whose lines count
    as the test's own. Raises :class:`UsageError` for another word.
    """
    __tracebackhide__ = True
    forbidden = _at_the_test(lambda: checked(words)) or FAULTS
    return ForbiddingBlock(forbidden, include)


class ForbiddingBlock(ContextDecorator):
    """What :func:`fail_on` returns. A generator's failure would show lines of contextlib."""

    def __init__(self, forbidden: Sequence[str], include: Sequence[str]) -> None:
        self._forbidden = forbidden
        self._include = include if isinstance(include, str) else tuple(include)

    def __enter__(self) -> api.Traced:
        self._tracing = api.trace(include=self._include)
        self._found = self._tracing.__enter__()
        return self._found

    def __exit__(self, *error: object) -> None:
        __tracebackhide__ = HIDDEN
        self._tracing.__exit__(*error)  # type: ignore[arg-type]
        if error[0] is not None:
            return
        said = _said(self._found.rows, self._forbidden)
        if said:
            raise AssertionError(said)
        for text in _unknown(self._found, self._forbidden):
            warnings.warn(text, stacklevel=2)


def _unknown(found: api.Traced, forbidden: Sequence[str]) -> Iterator[str]:
    """What the trace could not tell: a test that passes by it has not passed for sure."""
    for trouble in found.trace.troubles if found.trace else ():
        yield f"dlprof does not trace all of {first_line(trouble)}"
    doubtful = [row for row in found.rows if {*doubts(row)} & {*forbidden}]
    if doubtful:
        may = ", ".join(word for word in doubts(doubtful[0]) if word in forbidden)
        more = f", +{counted(len(doubtful) - 1, 'more line')}" if len(doubtful) > 1 else ""
        yield f"dlprof does not know of {place_of(doubtful[0])}: {may}{more}"


def _said(rows: Sequence[Row], forbidden: Sequence[str]) -> str:
    """The lines that do it, those that took longest first; empty if there are none."""
    guilty = [
        (group, does)
        for group in grouped(rows, "line")
        if (does := [word for word in faults(group.rows[0]) if word in forbidden])
    ]
    if not guilty:
        return ""
    count = counted(len(guilty), "line")
    verb = "do" if len(guilty) > 1 else "does"
    words = list(dict.fromkeys(word for _, does in guilty for word in does))
    return "\n".join(
        (
            f"{count} {verb} what this test forbids: {', '.join(words)}",
            *_first([_line(*one) for one in guilty]),
            f"A comment on a line allows it: # dlprof: allow {', '.join(words)}",
        )
    )


def _line(group: Group, does: Sequence[str]) -> str:
    calls = group.total("calls")
    many = counted(calls, "call")
    return f"  {group.place}   {group.code}   {', '.join(does)}: {many}"
