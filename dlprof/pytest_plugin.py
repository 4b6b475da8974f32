"""The pytest plugin: assertions on conversions, and tests that must not copy. See docs/pytest.md.

Every pytest of an environment with dlprof loads it, so it imports only pytest at first.
"""

from __future__ import annotations

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
    """Trace a block, and fail the test for a line that does one of ``words``."""
    from dlprof import api
    from dlprof.report.trace_document import row_place
    from dlprof.runner.trace import FAULTS, checked, faults

    forbidden = checked(words) or FAULTS
    with api.trace() as found:
        yield found
    lines = []
    for row in found.rows:
        does = ", ".join(word for word in faults(row) if word in forbidden)
        if does:
            lines.append(f"{row_place(row)}   {row.expression}   {does}, {row.calls:,}x")
    if lines:
        pytest.fail("\n".join(["the test forbids what these lines do:", *lines]), pytrace=False)


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
            defaults: dict[str, Any] = {"rounds": ROUNDS, "quick": True}
            self._sessions[key] = api.run(producer, consumer, **{**defaults, **options})
        session = self._sessions[key]
        _fail("not measured", {line: "unknown" for line in session.left_out if NO_PATH in line})
        return session

    def assert_view(self, producer: str, consumer: str, **options: Any) -> None:
        """Fail if a path copies. Paths documented to copy count only if no other path is chosen."""
        __tracebackhide__ = True
        cases = _supported_cases(self.measure(producer, consumer, **options))
        cases = [case for case in cases if case.promise != "copy"] or cases
        bad = {
            case.code: case.outcome for case in cases if not _says(case.result.ownership, "view")
        }
        _fail("not a view", bad)

    def assert_no_wait(self, producer: str, consumer: str, **options: Any) -> None:
        """Fail if a path waits on the host for queued work, or if that is unknown."""
        __tracebackhide__ = True
        cases = _supported_cases(self.measure(producer, consumer, **{"diagnose": True, **options}))
        quiet = [case for case in cases if _says(case.result.ordering, *NO_WAIT)]
        bad = {
            case.code: case.waits_for or case.result.reason or "unknown"
            for case in cases
            if case not in quiet or case.waits_for
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


def _says(verdict: Any, *words: str) -> bool:
    return verdict is not None and verdict.verdict in words


def _fail(title: str, bad: dict[str, str]) -> None:
    __tracebackhide__ = True
    if bad:
        lines = [f"  {name}: {problem}" for name, problem in bad.items()]
        raise AssertionError("\n".join([f"{title}:", *lines]))
