"""Which label a session gets, and from where."""

from __future__ import annotations

import subprocess
from datetime import datetime, timedelta, timezone

import pytest

from dlprof.history.label import GIT, Label, label_for

pytestmark = pytest.mark.unit

COMMITTED = datetime(2026, 1, 1, tzinfo=timezone.utc)
LATER = COMMITTED + timedelta(hours=1)
IDENTITY = {
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.org",
    "GIT_AUTHOR_DATE": COMMITTED.isoformat(),
    "GIT_COMMITTER_DATE": COMMITTED.isoformat(),
    "GIT_CONFIG_GLOBAL": "/dev/null",
}


@pytest.fixture
def repository(tmp_path, monkeypatch):
    for name, value in IDENTITY.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "file").write_text("x")
    for words in (("init", "-q"), ("add", "file"), ("commit", "-q", "-m", "first")):
        subprocess.run(["git", *words], cwd=tmp_path, check=True, capture_output=True)
    told = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    return tmp_path, told.stdout.strip()


def test_what_is_given_counts_before_all(repository):
    found = label_for(LATER, " v1 ", repository[0], {"GITHUB_SHA": "abc"})
    assert found == Label("v1", "--label")


def test_an_empty_label_is_none(repository):
    assert label_for(LATER, "", repository[0], {"GITHUB_SHA": "abc"}) == Label()


@pytest.mark.parametrize("name", ["GITHUB_SHA", "CI_COMMIT_SHA"])
def test_what_ci_builds_is_the_label(repository, name):
    assert label_for(LATER, None, repository[0], {name: "abc"}) == Label("abc", name)


def test_the_commit_that_is_checked_out_is_the_label(repository):
    folder, commit = repository
    assert label_for(LATER, None, folder, {}) == Label(commit, GIT)


def test_changes_that_are_not_committed_are_told(repository):
    folder, commit = repository
    (folder / "file").write_text("y")
    assert label_for(LATER, None, folder, {}).text == f"{commit}-dirty"


def test_a_session_older_than_the_commit_is_not_of_it(repository):
    assert label_for(COMMITTED - timedelta(days=1), None, repository[0], {}) == Label()


def test_without_a_repository_there_is_no_label(tmp_path):
    assert label_for(LATER, None, tmp_path, {}) == Label()


def test_without_git_there_is_no_label(repository, monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert label_for(LATER, None, repository[0], {}) == Label()


@pytest.mark.parametrize(("hours", "known"), [(1, True), (-1, False)])
def test_the_commit_of_ci_is_no_label_of_what_was_measured_before_it(repository, hours, known):
    folder, commit = repository
    created = COMMITTED + timedelta(hours=hours)
    expected = Label(commit, "GITHUB_SHA") if known else Label()
    assert label_for(created, None, folder, {"GITHUB_SHA": commit}) == expected
