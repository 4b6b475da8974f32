"""The pytest plugin: assertions on conversions, and tests that must not copy. See docs/pytest.md.

Loaded by every pytest of an environment that has dlprof, so nothing but pytest is imported here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from dlprof.api import Traced
    from dlprof.claims.assertions import Assertions
    from dlprof.errors import DlprofError

FAIL, SKIP = "fail", "skip"
MISSING = "what a test does whose framework or device is not there"


class Forbidden(pytest.fail.Exception, AssertionError):  # type: ignore[name-defined,misc]
    """A failure without a traceback; ``xfail(raises=AssertionError)`` expects it."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("dlprof", "conversions of tensors between frameworks")
    group.addoption(
        "--dlprof-missing",
        choices=(FAIL, SKIP),
        default=None,
        help=f"{MISSING}: fail (default), since nothing was measured; or skip.",
    )
    parser.addini("dlprof_missing", f"{MISSING}: {FAIL} or {SKIP}", default=FAIL)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "dlprof_fail_on(*words, include=()): fail if a line of the test does this: copy, wait or "
        "device-crossing (default: any of them).",
    )


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Trace a marked test. A test that fails by itself keeps its own failure."""
    mark = item.get_closest_marker("dlprof_fail_on")
    if mark is None:
        yield
        return
    from dlprof.claims.assertions import fail_on
    from dlprof.errors import UsageError

    try:
        block = fail_on(*mark.args, **mark.kwargs)
    except (UsageError, TypeError) as refusal:
        told = f"the marker dlprof_fail_on: {refusal}"
        raise pytest.fail.Exception(told, pytrace=False) from None
    outcome: Any = None
    try:
        with block:
            outcome = yield
    except Exception as error:
        if outcome is None:
            raise
        if outcome.excinfo is None:
            names_lines = isinstance(error, AssertionError | Warning)  # those of the test
            failed = Forbidden(str(error), pytrace=False)  # type: ignore[call-arg]
            outcome.force_exception(failed if names_lines else error)


@pytest.fixture
def dlprof_fail_on() -> Callable[..., AbstractContextManager[Traced]]:
    """A context that fails if a line in it copies, waits or crosses devices; or does less."""
    from dlprof.claims.assertions import fail_on

    return fail_on


@pytest.fixture(scope="session")
def dlprof(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Assertions:
    """Assertions on conversions of tensors between frameworks; measured once per test session."""
    from dlprof.claims.assertions import Assertions

    word = pytestconfig.getoption("--dlprof-missing") or pytestconfig.getini("dlprof_missing")
    if word not in (FAIL, SKIP):
        raise pytest.UsageError(f"dlprof_missing is {FAIL} or {SKIP}, not {word!r}")
    missing = skip_missing if word == SKIP else fail_missing
    return Assertions(tmp_path_factory.mktemp("dlprof"), missing)


def skip_missing(error: DlprofError) -> NoReturn:
    __tracebackhide__ = True
    pytest.skip(f"not measured: {error}")


def fail_missing(error: DlprofError) -> NoReturn:
    __tracebackhide__ = True
    raise AssertionError(
        f"nothing was measured: {error}\n--dlprof-missing=skip skips what is not there"
    )
