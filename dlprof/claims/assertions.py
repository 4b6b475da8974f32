"""Assertions on conversions: what a pair is asked for is measured once, and judged as often."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from dlprof.claims.claim import Judged
from dlprof.errors import DlprofError, MissingDevice, MissingFramework, UsageError
from dlprof.plan.axes import shape_text
from dlprof.session.model import FindingRecord, Session
from dlprof.text.clean import clean

ROUNDS = 3
"""Processes that must agree: whether a conversion copies can depend on the process."""
ONE_ARRAY = ("shapes", "dtypes", "layouts", "devices")


@dataclass(frozen=True)
class Asked:
    """What is measured: one array of one pair. ``options`` are of :func:`dlprof.run`.

    The same request is equal however it is written.
    """

    producer: str
    consumer: str
    values: tuple[tuple[str, Any], ...]
    options: dict[str, Any] = field(compare=False)


@dataclass
class Assertions:
    """The fixture ``dlprof``. Sessions are kept in ``folder``.

    ``missing`` is called where a framework or a device is not there, and does not return.
    """

    folder: Path
    missing: Callable[[DlprofError], NoReturn]
    _kept: dict[tuple[Asked, bool], tuple[Session, Path] | DlprofError] = field(
        default_factory=dict, repr=False
    )

    def assert_view(self, producer: str, consumer: str, **asked: Any) -> None:
        """Fail where a conversion copies, but for those that are documented to.

        The options are those of :func:`dlprof.run` that say what is measured; shape, dtype, layout
        and device are one each. Raises :class:`AssertionError`, and
        :class:`dlprof.errors.UsageError` for what makes no sense.
        """
        __tracebackhide__ = True
        from dlprof.claims.claim import are_views

        self._check("Every way is a view", are_views, (producer, consumer), asked, diagnose=False)

    def assert_copy(self, producer: str, consumer: str, **asked: Any) -> None:
        """Fail where a conversion that is documented to copy does not; of all where none is."""
        __tracebackhide__ = True
        from dlprof.claims.claim import are_copies

        self._check("Every way is a copy", are_copies, (producer, consumer), asked, diagnose=False)

    def assert_no_host_sync(self, producer: str, consumer: str, **asked: Any) -> None:
        """Fail where a conversion waits on the host for work that is queued on its source."""
        __tracebackhide__ = True
        from dlprof.claims.claim import do_not_wait

        self._check("No way waits on the host", do_not_wait, (producer, consumer), asked)

    def assert_safe(self, producer: str, consumer: str, **asked: Any) -> None:
        """Fail where a conversion is wrong, not as documented, or unsafe."""
        __tracebackhide__ = True
        from dlprof.claims.claim import are_safe

        self._check("Every way is safe", are_safe, (producer, consumer), asked)

    def assert_no_finding(
        self,
        producer: str,
        consumer: str,
        *,
        rules: str | Iterable[str] = (),
        severity: str | None = None,
        **asked: Any,
    ) -> None:
        """Fail where there is a finding of one of ``rules``, or as severe as ``severity``.

        ``warning`` and worse if neither is given. What could not be told finds nothing; but a rule
        that is named and could look at no way at all fails, too.
        """
        __tracebackhide__ = True
        from dlprof.claims.claim import without_findings
        from dlprof.rules.fail_on import parse

        words = [rules] if isinstance(rules, str) else list(rules)
        words += [] if severity is None else [severity]
        if not all(isinstance(word, str) for word in words):
            raise UsageError(f"rules and severity are text, not {words!r}")
        fails = _at_the_test(lambda: parse(words or ["warning"], "assert_no_finding"))
        self._check(
            f"No finding of {', '.join(words or ['warning'])}",
            lambda found: without_findings(found, fails.rules, fails.severities),
            (producer, consumer),
            asked,
        )
        unseen = fails.unseen(self.measure(producer, consumer, **asked).results)
        if unseen:
            lacks = "; ".join(dict.fromkeys(unseen.values()))
            raise AssertionError(f"nothing looked for {', '.join(unseen)}: not measured: {lacks}")

    def measure(self, producer: str, consumer: str, **asked: Any) -> Session:
        """The session on which the assertions look, for claims of one's own."""
        __tracebackhide__ = True
        return self._session((producer, consumer), asked, diagnose=True)[0]

    def _check(
        self,
        claim: str,
        judge: Callable[[Session], Judged],
        pair: tuple[str, str],
        asked: dict[str, Any],
        diagnose: bool = True,
    ) -> None:
        __tracebackhide__ = True
        session, file = self._session(pair, asked, diagnose)
        judged = judge(session)
        if not judged.holds:
            raise AssertionError(text(claim, judged, session, str(file)))

    def _session(
        self, pair: tuple[str, str], options: dict[str, Any], diagnose: bool
    ) -> tuple[Session, Path]:
        __tracebackhide__ = True
        asked = _at_the_test(lambda: asked_for(*pair, options))
        found = self._kept.get((asked, True)) or self._kept.get((asked, diagnose))
        if found is None:
            file = self.folder / f"{len(self._kept)}.json"
            found = self._kept[asked, diagnose] = _measured(asked, diagnose, file)
        if isinstance(found, MissingFramework | MissingDevice):
            self.missing(found)
        if isinstance(found, DlprofError):
            raise type(found)(str(found)) from None
        return found


def asked_for(producer: str, consumer: str, options: dict[str, Any]) -> Asked:
    """Raises :class:`UsageError`, and TypeError for an option that there is not."""
    from dlprof import api
    from dlprof.plan.options import AXES, INTERPRETER

    values = api.read(options, (*AXES, *INTERPRETER))
    for key in ONE_ARRAY:
        if len(values[key]) != 1:
            raise UsageError(f"an assertion is on one array, and {key} has {len(values[key])}")
    return Asked(producer, consumer, tuple(values.items()), options)


def _at_the_test(read: Callable[[], Any]) -> Any:
    """What ``read`` gives; its refusal is shown at the line of the test."""
    __tracebackhide__ = True
    try:
        return read()
    except (DlprofError, TypeError) as refusal:
        raise type(refusal)(str(refusal)) from None


def _measured(asked: Asked, diagnose: bool, file: Path) -> tuple[Session, Path] | DlprofError:
    """The session and its file, or why there is none."""
    from dlprof import api
    from dlprof.plan.plan import NO_PATH

    how: dict[str, Any] = {"rounds": ROUNDS, "quick": True, "diagnose": diagnose, "output": file}
    try:
        session = api.run(asked.producer, asked.consumer, **asked.options, **how)
    except DlprofError as error:
        return error
    idle = [text for text in session.left_out if text.startswith(NO_PATH)]
    # A claim about a way that is not there would hold for those beside it, and say nothing of it.
    return UsageError("; ".join(idle)) if idle else (session, file)


MOST_WAYS = 12
MOST_FINDINGS = 6
MOST_EVIDENCE = 6


def text(claim: str, judged: Judged, session: Session, file: str) -> str:
    """Several lines; ``claim`` is one sentence, ``file`` the session file."""
    lines = [f"{_what(session)}: {_headline(claim, judged)}"]
    lines += [f"  {one.code}: {one.said}" for one in judged.complaints[:MOST_WAYS]]
    if len(judged.complaints) > MOST_WAYS:
        lines.append(f"  … and {len(judged.complaints) - MOST_WAYS:,} more ways")
    if not judged.ways:
        lines += [f"  unsupported: {reason}" for reason in judged.refused[:MOST_WAYS]]
    lines += _findings(_about(session.findings, judged))
    return "\n".join([*lines, f"session: {clean(file)} (dlprof report prints it)"])


def _what(session: Session) -> str:
    if not session.results:
        return "no case"
    case = session.results[0].case
    array = f"{shape_text(case.shape)} {case.dtype} {case.layout} on {case.device}"
    return clean(f"{case.producer} -> {case.consumer}, {array}")


def _headline(claim: str, judged: Judged) -> str:
    if not judged.ways:
        return f"{claim}? No way could be measured"
    return f"{claim}? Not so for {len(judged.complaints)} of {judged.ways}"


def _about(findings: Sequence[FindingRecord], judged: Judged) -> list[FindingRecord]:
    """The findings about the ways that speak against the claim, worst first."""
    guilty = {complaint.index for complaint in judged.complaints}
    return [finding for finding in findings if guilty & set(finding.results)]


def _findings(findings: Sequence[FindingRecord]) -> Iterator[str]:
    for finding in findings[:MOST_FINDINGS]:
        yield clean(f"{finding.severity} {finding.rule} {finding.name}: {finding.summary}")
        if finding.evidence:
            yield f"    evidence: {_evidence(finding.evidence)}"
        if finding.advice:
            yield f"    {clean(finding.advice)}"
        yield f"    dlprof explain {clean(finding.rule)} explains it"
    if len(findings) > MOST_FINDINGS:
        yield f"… and {len(findings) - MOST_FINDINGS:,} more findings"


def _evidence(evidence: dict[str, Any]) -> str:
    items = list(evidence.items())[:MOST_EVIDENCE]
    return clean(", ".join(f"{name} {_value(value)}" for name, value in items))


def _value(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
