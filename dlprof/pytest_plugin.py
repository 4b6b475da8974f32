"""The pytest plugin: assertions on conversions, and tests that must not copy. See docs/pytest.md.

Every pytest of an environment with dlprof loads it, so it imports only pytest at first.
"""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from dlprof.api import Session, Traced
    from dlprof.judge.case_view import CaseView

ROUNDS = 3
"""Processes that must agree: whether a conversion copies can depend on the process."""
NO_PATH = "no path matches"
NO_WAIT = ("synchronous", "stream-ordered", "unordered")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "dlprof_fail_on(*words): fail if a line of the test does one of copy, wait or "
        "device-crossing (default: any of them).",
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Trace a marked test. A test that fails by itself keeps its own failure."""
    mark = item.get_closest_marker("dlprof_fail_on")
    if mark is None:
        return (yield)
    with fail_on(*mark.args):
        return (yield)


@contextmanager
def fail_on(*words: str) -> Iterator[Traced]:
    """Trace a block, fail the test for a line that does one of ``words``, and warn if it may."""
    from dlprof import api
    from dlprof.report.trace_advice import first_places, row_place
    from dlprof.report.trace_document import gaps, unknown_places
    from dlprof.runner.trace import FAULTS, checked, faults

    forbidden = checked(words) or FAULTS
    with api.trace() as found:
        yield found
    trace: Any = found.trace
    lines = [
        f"{row_place(row)}   {row.expression}   {', '.join(does)}, {row.calls:,}x"
        for row in found.rows
        if (does := [word for word in faults(row) if word in forbidden])
    ]
    if lines:
        pytest.fail("\n".join(["the test forbids what these lines do:", *lines]), pytrace=False)
    if missing := next(gaps(trace), ""):
        pytest.fail(f"unknown, as {missing}", pytrace=False)
    if unknown := first_places(unknown_places(trace, forbidden)):
        warnings.warn(f"dlprof_fail_on: passed, but unknown for {unknown}", stacklevel=1)


@pytest.fixture
def dlprof_fail_on() -> Callable[..., Any]:
    """A context manager that fails if a line in its block copies, waits or crosses devices."""
    return fail_on


@pytest.fixture(scope="session")
def dlprof() -> Conversions:
    """Assertions on conversions between frameworks, each pair measured once per test session."""
    return Conversions()


class Conversions:
    """The fixture ``dlprof``. Its options are those of :func:`dlprof.run`."""

    def __init__(self) -> None:
        self._sessions: dict[str, Session] = {}

    def measure(self, producer: str, consumer: str, **options: Any) -> Session:
        """Return the session that the assertions judge."""
        from dlprof import api

        key = repr((producer, consumer, sorted(options.items())))
        if key not in self._sessions:
            options = {"rounds": ROUNDS, "quick": True, **options}
            self._sessions[key] = api.run(producer, consumer, **options)
        session = self._sessions[key]
        _fail("not measured", {line: "unknown" for line in session.left_out if NO_PATH in line})
        return session

    def assert_view(self, producer: str, consumer: str, **options: Any) -> None:
        """Fail if a path copies. Paths documented to copy count only if no other path is chosen."""
        __tracebackhide__ = True
        cases = _supported_cases(self.measure(producer, consumer, **options))
        cases = [case for case in cases if case.promise != "copy"] or cases
        bad = [case for case in cases if getattr(case.result.ownership, "verdict", "") != "view"]
        _fail("not a view", {case.code: case.outcome for case in bad})

    def assert_no_wait(self, producer: str, consumer: str, **options: Any) -> None:
        """Fail if a path waits on the host for queued work, or if that is unknown."""
        __tracebackhide__ = True
        cases = _supported_cases(self.measure(producer, consumer, **{"diagnose": True, **options}))
        bad = {
            case.code: case.waits_for or case.result.reason or "unknown"
            for case in cases
            if case.waits_for or getattr(case.result.ordering, "verdict", "") not in NO_WAIT
        }
        _fail("not known to go without waiting", bad)

    def assert_no_finding(self, producer: str, consumer: str, *words: str, **options: Any) -> None:
        """Fail on a finding of these rules or severities; of a warning or an error by default."""
        __tracebackhide__ = True
        from dlprof.judge.fail_on import parse

        fails = parse(words or ["warning"], "assert_no_finding")
        session = self.measure(producer, consumer, **{"diagnose": True, **options})
        cases = _supported_cases(session)
        failed = [case for case in cases if case.result.status != "ok"]
        _fail("not measured", {case.code: case.result.reason or "" for case in failed})
        fails.check_coverage(session.results)
        bad = {finding.rule: finding.line for finding in session.findings if fails.fails(finding)}
        _fail(f"findings ({', '.join(words) or 'warning'})", bad)


def _supported_cases(session: Session) -> list[CaseView]:
    """Return the cases that their framework does not refuse; fail if there are none."""
    from dlprof.judge import cases_in

    cases = cases_in(session.results).cases
    supported = [case for case in cases if case.result.status != "unsupported"]
    if not supported:
        raise AssertionError("the framework refuses every path")
    return supported


def _fail(title: str, bad: dict[str, str]) -> None:
    __tracebackhide__ = True
    if bad:
        lines = [f"  {name}: {problem}" for name, problem in bad.items()]
        raise AssertionError("\n".join([f"{title}:", *lines]))
