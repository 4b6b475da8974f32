"""Which file a report points to: one that is there, below the working folder, or none."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import pytest
from builders import make_header

from dlprof.cli import place
from dlprof.cli.place import documentation, place_of, scenario_file

pytestmark = pytest.mark.unit


@pytest.fixture(autouse=True)
def repository(tmp_path, monkeypatch):
    """The working folder, with a scenario and a session, beside a file that is not in it."""
    folder = tmp_path / "repository"
    (folder / "scenarios").mkdir(parents=True)
    for file in ("scenarios/a b.toml", "s.json", "../outside.toml"):
        (folder / file).touch()
    (folder / "link.toml").symlink_to(tmp_path / "outside.toml")
    monkeypatch.chdir(folder)
    return folder


def header(file):
    return make_header(request={"scenario": {"file": str(file)}})


@pytest.mark.parametrize("file", ["scenarios/a b.toml", "./scenarios/../scenarios/a b.toml"])
def test_a_scenario_is_named_from_the_working_folder_on(file):
    assert scenario_file(header(file)) == "scenarios/a b.toml"
    assert scenario_file(header(Path.cwd() / file)) == "scenarios/a b.toml"


@pytest.mark.parametrize(
    "file",
    ["../outside.toml", "/etc/passwd", "link.toml", "not-there.toml", "torch->numpy", "scenarios", "", "\0", "x" * 5000],
)  # fmt: skip
def test_a_file_that_is_elsewhere_or_none_is_not_named(file):
    assert scenario_file(header(file)) is None
    assert place_of(header(file), None) == "dlprof"


def test_what_has_no_place_points_to_a_file_that_is_there():
    assert place_of(make_header(), Path("../outside.toml")) == "dlprof"
    Path("README.md").touch()
    assert place_of(make_header(), Path("../outside.toml")) == "README.md"
    Path("pyproject.toml").touch()
    assert place_of(make_header(), None) == "pyproject.toml"


@pytest.mark.parametrize("request_", [{}, {"scenario": None}, {"scenario": {"file": 7}}])
def test_without_a_scenario_it_is_the_session(request_):
    found = make_header(request=request_)
    assert scenario_file(found) is None
    assert place_of(found, Path("s.json")) == "s.json"


def test_the_scenario_goes_before_the_session():
    assert place_of(header("scenarios/a b.toml"), Path("s.json")) == "scenarios/a b.toml"


@pytest.mark.parametrize(
    ("urls", "found"),
    [
        (["Source, https://a.org", "Documentation, https://b.org/docs"], "https://b.org/docs"),
        (["Source, https://a.org"], None),
        (None, None),
    ],
)
def test_the_documentation_is_where_the_package_says(monkeypatch, urls, found):
    class Metadata:
        def get_all(self, _):
            return urls

    monkeypatch.setattr(place.metadata, "metadata", lambda _: Metadata())
    assert documentation() == found


def test_a_checkout_that_is_not_installed_has_no_address(monkeypatch):
    def missing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(place.metadata, "metadata", missing)
    assert documentation() is None
