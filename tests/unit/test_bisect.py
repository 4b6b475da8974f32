"""Search for the release that changed a path, on made-up sessions."""

from types import SimpleNamespace

import pytest
from builders import make_result, make_session
from rule_builders import verdict

from dlprof.errors import Unsure, UsageError
from dlprof.jobs.bisect import Tried, bisect, release_range, requirements
from dlprof.report.comparison_document import bisect_document
from dlprof.report.terminal import render

VERSIONS = [f"1.{minor}" for minor in range(9)]


def of(kind, day):
    return make_session(
        make_result(ownership=verdict(kind)), created=f"2026-01-{day:02}T00:00:00+00:00"
    )


def search(changed_at, broken=(), after="copy"):
    """Return the releases that are tried if the result changed at that place."""

    def measure(version):
        at = VERSIONS.index(version)
        if at in broken:
            return Tried(version, None, "not installed")
        return Tried(version, of("view" if at < changed_at else after, at + 1))

    return bisect(VERSIONS, measure)


@pytest.mark.parametrize("changed_at", [1, 4, 8])
def test_the_first_changed_release_is_found_in_few_steps(changed_at):
    tried = search(changed_at)
    good = [one.version for one in tried if one.is_good]
    bad = [one.version for one in tried if one.is_good is False]
    assert (good[-1], bad[0]) == (VERSIONS[changed_at - 1], VERSIONS[changed_at])
    assert len(tried) <= 5


def test_a_release_that_cannot_be_measured_is_skipped_and_named():
    text = render(bisect_document(search(5, {4}), "numpy", "f(x)", ("numpy", "torch")))
    assert "numpy 1.5" in text
    assert "not installed" in text


def test_ends_with_the_same_result_or_none_start_no_search():
    with pytest.raises(Unsure, match="give the same"):
        search(3, after="view")
    with pytest.raises(Unsure, match=r"1\.8 .*not installed"):
        search(3, broken={8})


def test_releases_between_good_and_bad_are_listed_in_order():
    known = ["2.10.0", "2.9.1", "2.9.0", "2.8.0", "2.11.0"]
    assert release_range(known, "2.9.0", "2.10.0") == ["2.9.0", "2.9.1", "2.10.0"]
    assert release_range(known, "2.9.1", "2.8.0") == ["2.9.1", "2.9.0", "2.8.0"]
    with pytest.raises(UsageError, match=r"no release 2\.9"):
        release_range(known, "2.9", "2.11.0")


def test_the_other_framework_is_installed_in_the_version_that_is_here_or_in_any():
    here = SimpleNamespace(distribution="torch", requirement="torch", version="2.13.0+cpu")
    missing = SimpleNamespace(distribution=None, requirement="jax", version=None)
    assert requirements((here, missing), "numpy") == ["torch==2.13.0", "jax"]
    assert requirements((here, missing), "torch") == ["jax"]
