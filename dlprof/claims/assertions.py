"""Assertions on conversions: what a pair is asked for is measured once, and judged as often."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from dlprof.claims.claim import Judged
from dlprof.errors import DlprofError, MissingDevice, MissingFramework, UsageError
from dlprof.plan.axes import shape_text
from dlprof.session.model import FindingRecord, Session
from dlprof.text.clean import clean

ROUNDS = 3
"""Processes that must agree: whether a conversion copies can depend on the process."""

Shape = str | int | Sequence[int]
Words = str | Iterable[str]
Value = TypeVar("Value")


@dataclass(frozen=True)
class Asked:
    """What is measured: one array of one pair, and the ways that match one of ``paths``."""

    producer: str
    consumer: str
    paths: tuple[str, ...] = ()
    shape: tuple[int, ...] | None = None
    dtype: str | None = None
    layout: str | None = None
    device: str | None = None
    python: str | None = None
    probes: tuple[str, ...] = ()


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

        ``path`` is a glob of names or code as for ``--path``, or several; ``shape``, ``dtype``,
        ``layout`` and ``device`` are one each, as on the command line; ``python`` is another
        interpreter, ``probes`` are files. Raises :class:`AssertionError`, and
        :class:`dlprof.errors.UsageError` for what makes no sense.
        """
        __tracebackhide__ = True
        from dlprof.claims.claim import are_views

        self._check("Every way is a view", are_views, asked_for(producer, consumer, **asked))

    def assert_copy(self, producer: str, consumer: str, **asked: Any) -> None:
        """Fail where a conversion that is documented to copy does not; of all where none is."""
        __tracebackhide__ = True
        from dlprof.claims.claim import are_copies

        self._check("Every way is a copy", are_copies, asked_for(producer, consumer, **asked))

    def assert_no_host_sync(self, producer: str, consumer: str, **asked: Any) -> None:
        """Fail where a conversion waits on the host for work that is queued on its source."""
        __tracebackhide__ = True
        from dlprof.claims.claim import do_not_wait

        wanted = asked_for(producer, consumer, **asked)
        self._check("No way waits on the host", do_not_wait, wanted, diagnose=True)

    def assert_safe(self, producer: str, consumer: str, **asked: Any) -> None:
        """Fail where a conversion is wrong, not as documented, or unsafe."""
        __tracebackhide__ = True
        from dlprof.claims.claim import are_safe

        wanted = asked_for(producer, consumer, **asked)
        self._check("Every way is safe", are_safe, wanted, diagnose=True)

    def assert_no_finding(
        self,
        producer: str,
        consumer: str,
        *,
        rules: Words = (),
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

        _check_texts(severity=severity)
        words = [*_words("rules", rules), *([] if severity is None else [severity])]
        fails = _plainly(parse, words or ["warning"], "assert_no_finding")
        named = ", ".join(words or ["warning"])
        wanted = asked_for(producer, consumer, **asked)
        self._check(
            f"No finding of {named}",
            lambda found: without_findings(found, fails.rules, fails.severities),
            wanted,
            diagnose=True,
        )
        unseen = fails.unseen(self._session(wanted, diagnose=True)[0].results)
        if unseen:
            lacks = "; ".join(dict.fromkeys(unseen.values()))
            raise AssertionError(f"nothing looked for {', '.join(unseen)}: not measured: {lacks}")

    def measure(self, producer: str, consumer: str, **asked: Any) -> Session:
        """The session on which the assertions look, for claims of one's own."""
        __tracebackhide__ = True
        return self._session(asked_for(producer, consumer, **asked), diagnose=True)[0]

    def _check(
        self, claim: str, judge: Callable[[Session], Any], asked: Asked, diagnose: bool = False
    ) -> None:
        __tracebackhide__ = True

        session, file = self._session(asked, diagnose)
        judged = judge(session)
        if not judged.holds:
            raise AssertionError(text(claim, judged, session, str(file)))

    def _session(self, asked: Asked, diagnose: bool) -> tuple[Session, Path]:
        __tracebackhide__ = True
        found = self._kept.get((asked, True)) or self._kept.get((asked, diagnose))
        if found is None:
            file = self.folder / f"{len(self._kept)}.json"
            found = self._kept[asked, diagnose] = _measured(asked, diagnose, file)
        if isinstance(found, MissingFramework | MissingDevice):
            self.missing(found)
        if isinstance(found, DlprofError):
            raise type(found)(str(found)) from None
        return found


def asked_for(  # noqa: PLR0913 - as many as axes
    producer: str,
    consumer: str,
    *,
    path: Words | None = None,
    shape: Shape | None = None,
    dtype: str | None = None,
    layout: str | None = None,
    device: str | None = None,
    python: str | os.PathLike[str] | None = None,
    probes: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] = (),
) -> Asked:
    """The same request for the same arguments, however they are written."""
    __tracebackhide__ = True
    _check_texts(producer=producer, consumer=consumer, dtype=dtype, layout=layout, device=device)
    if path is not None and not path:
        raise UsageError("path is empty: leave it out for every way")
    files = [probes] if isinstance(probes, str | os.PathLike) else _list("probes", probes)
    return Asked(
        producer,
        consumer,
        tuple(_words("path", path or ())),
        _plainly(_lengths, shape),
        dtype,
        layout,
        device,
        None if python is None else _file("python", python),
        tuple(_file("probes", file) for file in files),
    )


def _plainly(read: Callable[..., Value], *words: Any) -> Value:
    """What ``read`` makes of the words of a test; its refusal is shown at the line of the test."""
    __tracebackhide__ = True
    try:
        return read(*words)
    except DlprofError as refusal:
        raise type(refusal)(str(refusal)) from None


def _lengths(shape: Shape | None) -> tuple[int, ...] | None:
    __tracebackhide__ = True
    from dlprof.plan.axes import parse_shapes

    if shape is None:
        return None
    if isinstance(shape, int) and not isinstance(shape, bool):
        return (shape,)
    if isinstance(shape, bytes) or not isinstance(shape, Iterable):
        raise UsageError(f"shape is 64, (64, 64) or '64x64', not {shape!r}")
    if not isinstance(shape, str):
        return tuple(shape)
    shapes = list(parse_shapes(shape))
    if len(shapes) != 1:
        raise UsageError(f"an assertion is on one shape, and {shape!r} has {len(shapes)}")
    return shapes[0]


def _words(name: str, words: Words) -> list[str]:
    __tracebackhide__ = True
    found = [words] if isinstance(words, str) else _list(name, words)
    for word in found:
        if not isinstance(word, str):
            raise UsageError(f"{name} is a text or several, and one is {word!r}")
    return found


def _list(name: str, values: Iterable[Value]) -> list[Value]:
    __tracebackhide__ = True
    if isinstance(values, bytes) or not isinstance(values, Iterable):
        raise UsageError(f"{name} is a text or several, not {values!r}")
    return list(values)


def _file(name: str, path: str | os.PathLike[str]) -> str:
    __tracebackhide__ = True
    if not isinstance(path, str | os.PathLike):
        raise UsageError(f"{name} is a file, not {path!r}")
    return str(os.fspath(path))


def _check_texts(**words: object) -> None:
    """Raises :class:`UsageError` for what is no text; None is what is left out."""
    __tracebackhide__ = True
    for name, word in words.items():
        if word is not None and not isinstance(word, str):
            raise UsageError(f"{name} is a text, not {word!r}")


def _measured(asked: Asked, diagnose: bool, file: Path) -> tuple[Session, Path] | DlprofError:
    """The session and its file, or why there is none."""
    from dlprof.api import run
    from dlprof.plan.plan import NO_PATH

    try:
        session = run(
            asked.producer,
            asked.consumer,
            shapes=None if asked.shape is None else [asked.shape],
            dtypes=asked.dtype,
            layouts=asked.layout,
            device=asked.device,
            paths=asked.paths or None,
            rounds=ROUNDS,
            quick=True,
            diagnose=diagnose,
            python=asked.python,
            probes=asked.probes,
            output=file,
        )
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
