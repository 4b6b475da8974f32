"""The pytest plugin: a fixture ``dlprof`` with assertions on conversions. See docs/pytest.md.

Loaded by every pytest of an environment that has dlprof, so nothing but pytest is imported here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import pytest

if TYPE_CHECKING:
    from dlprof.claims.assertions import Assertions
    from dlprof.errors import DlprofError

FAIL, SKIP = "fail", "skip"
MISSING = "what a test does whose framework or device is not there"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("dlprof", "conversions of tensors between frameworks")
    group.addoption(
        "--dlprof-missing",
        choices=(FAIL, SKIP),
        default=None,
        help=f"{MISSING}: fail (default), since nothing was measured; or skip.",
    )
    parser.addini("dlprof_missing", f"{MISSING}: {FAIL} or {SKIP}", default=FAIL)


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
    pytest.skip(f"not measured: {error}")


def fail_missing(error: DlprofError) -> NoReturn:
    __tracebackhide__ = True
    raise AssertionError(
        f"nothing was measured: {error}\n--dlprof-missing=skip skips what is not there"
    )
