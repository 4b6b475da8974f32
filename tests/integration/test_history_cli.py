"""``dlprof history`` as a user runs it: files, words and exit codes."""

import json
import re

import pytest
from command_line import dlprof
from history_builders import day, machine, result

NO_LABEL = {"GITHUB_SHA": None, "CI_COMMIT_SHA": None, "DLPROF_HISTORY": None}


def written(folder, number, *results, **header):
    path = folder / f"day{number:02}.json"
    session = day(number, *(results or [result("a", seed=number)]), **header)
    path.write_text(session.model_dump_json(by_alias=True), encoding="utf-8")
    return path


def history_in(folder):
    """Run ``dlprof history``; ``@name`` is a file in the folder."""

    def call(*words, **variables):
        here = [re.sub("@", f"{folder}/", str(word)) for word in words]
        return dlprof("history", *here, **{**NO_LABEL, **variables})

    return call


@pytest.fixture
def run(tmp_path):
    return history_in(tmp_path)


@pytest.fixture(scope="module")
def weeks(tmp_path_factory):
    """Twenty days of sessions and their history; the case takes 20 % longer from the eleventh on.

    For tests that add nothing to it.
    """
    folder = tmp_path_factory.mktemp("weeks")
    for number in range(20):
        ns, numpy = (1200.0, "2.5.0") if number >= 10 else (1000.0, "2.4.0")
        found = result("a", ns, seed=number)
        written(folder, number, found, environment=machine(packages={"numpy": numpy}))
    (folder / "empty").mkdir()
    (folder / "other.json").write_text("{}")
    days = sorted(folder.glob("day*.json"))
    assert history_in(folder)("add", *days, "--to", "@history").code == 0
    return folder


@pytest.fixture
def ask(weeks):
    return history_in(weeks)


def files(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_session_is_added_once_and_shown(tmp_path, run):
    path = written(tmp_path, 0)
    done = run("add", path, "--to", "@history", "--label", "v1")
    assert (done.code, done.err) == (0, "")
    assert "1 case, label v1" in done.out
    again = run("add", path, "--to", "@history", "--label", "v2")
    assert (again.code, "nothing added" in again.out) == (0, True)
    assert len(files(tmp_path / "history")) == 1
    shown = run("show", "@history")
    assert (shown.code, shown.err) == (0, "")
    assert "1 case" in shown.out


def test_the_history_as_json_and_as_a_page(tmp_path, ask):
    found = json.loads(ask("show", "@history", "--json", "-").out)
    assert (found["schema"], len(found["sessions"])) == ("dlprof.trend/1", 20)
    assert len(found["trends"][0]["steps"]) == 1
    page = tmp_path / "page.html"
    assert ask("show", "@history", "--html", page).code == 0
    assert "<svg" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "code", "reason"),
    [
        (("show", "@nowhere"), 2, "@nowhere"),
        (("show", "@history", "--case", "zz*"), 2, "no case"),
        (("show", "@history", "--measure", "x"), 2, "ready"),
        (("show", "@empty"), 4, "@empty holds no session"),
        (("add", "@day00.json"), 2, "DLPROF_HISTORY"),
        (("add", "@day00.json", "@other.json", "--to", "@new"), 2, "other.json is not a dlprof"),
    ],
)
def test_what_makes_no_sense_is_told_in_one_sentence(weeks, ask, words, code, reason):
    done = ask(*words)
    assert done.code == code
    assert reason.replace("@", f"{weeks}/") in done.sentence()
    assert not (weeks / "new").exists()
