"""Which file a report points to: one that is there, below the working folder, or none."""

from pathlib import Path

import pytest
from builders import make_header

from dlprof.cli.outputs import scenario_file


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


@pytest.mark.parametrize("request_", [{}, {"scenario": None}, {"scenario": {"file": 7}}])
def test_without_a_scenario_there_is_no_place(request_):
    found = make_header(request=request_)
    assert scenario_file(found) is None
