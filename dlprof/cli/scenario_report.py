"""What becomes of the expectations of a scenario."""

from __future__ import annotations

from dlprof.errors import DlprofError, ExpectationsMissed, ExpectationsUnknown
from dlprof.scenario.expectation import MISSED, UNKNOWN
from dlprof.session.model import Header


def check_missed(header: Header) -> None:
    """Raise :class:`ExpectationsMissed` for what is known not to be as expected."""
    _check(header, MISSED, ExpectationsMissed)


def check_unchecked(header: Header) -> None:
    """Raise :class:`ExpectationsUnknown` for what could not be checked."""
    _check(header, UNKNOWN, ExpectationsUnknown)


def _check(header: Header, verdict: str, kind: type[DlprofError]) -> None:
    found = [one.text for one in header.expectations if one.verdict == verdict]
    if found:
        raise kind(f"expectation {verdict}: {'; '.join(found)}")
