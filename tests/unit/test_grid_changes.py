"""What a report over many environments says that changed, and since when."""

import pytest
from builders import make_result, make_session
from grid_builders import cell, facts, grid, told

from dlprof.atlas.cells import BY_ADDRESS, Cell, read
from dlprof.atlas.changes import changes_of
from dlprof.atlas.grid import version_key
from dlprof.judge.slower import Time

JAX = [facts(jax=version) for version in ("0.4.30", "0.4.31", "0.5.0")]
BOTH = [facts(numpy=numpy, jax=jax) for numpy in ("1.26.4", "2.0.2") for jax in ("0.4.30", "0.5.0")]


@pytest.mark.parametrize(
    ("results", "said"),
    [
        (("view", "copy", "copy"), ["view until jax 0.4.30, copy since 0.4.31"]),
        (("view", "copy", "view"), ["view until jax 0.4.30, copy in 0.4.31, view since 0.5.0"]),
        (("view", "view", "view"), []),
        (("view", "", "copy"), ["view until jax 0.4.30, copy since 0.5.0"]),
        (("view", "", "view"), []),
        (
            ("refused", "view", BY_ADDRESS[0]),
            ["refused until jax 0.4.30, view in 0.4.31, view or copy since 0.5.0"],
        ),
    ],
)
def test_a_change_of_verdict_names_the_versions(results, said):
    assert told(JAX, [cell(result) for result in results]) == said


def test_of_two_packages_the_one_that_decides_is_named():
    results = ("view", "copy", "view", "copy")
    assert told(BOTH, map(cell, results)) == ["view until jax 0.4.30, copy since 0.5.0"]


def test_where_no_package_decides_alone_the_rarer_answer_is_named_with_its_environment():
    results = ("view", "view", "view", "copy")
    (said,) = told(BOTH, map(cell, results))
    assert said == "copy with jax 0.5.0, numpy 2.0.2; view in 3"


def test_machines_are_compared_by_verdict_and_never_by_time():
    columns = [facts("A", jax="0.5.0"), facts("B", jax="0.5.0")]
    cells = [cell("view", 100.0), cell("copy", 900.0)]
    assert told(columns, cells) == ["view on A; copy on B"]


def test_a_time_changes_if_the_intervals_are_apart():
    cells = [cell(ns=100.0), cell(ns=110.0), cell(ns=400.0)]
    assert told(JAX, cells) == ["100 ns until jax 0.4.31, 400 ns since 0.5.0"]
    wide = Cell(cells[2].words, time=Time(400.0, (90.0, 1000.0)))
    single = Cell(cells[2].words, time=Time(400.0, None))
    assert told(JAX, [*cells[:2], wide]) == told(JAX, [*cells[:2], single]) == []


@pytest.mark.parametrize(
    ("ended", "word"), [("import", ""), ("create", ""), ("first call", "refused")]
)
def test_without_a_framework_or_an_array_nothing_is_known_of_a_path(ended, word):
    session = make_session(make_result(status="unsupported", refused_at=ended))
    ((_, found),) = read("a.json", session.model_dump_json(by_alias=True).encode()).cells
    assert found.words[0] == word


def test_a_view_is_worse_where_a_copy_is_documented():
    (change,) = changes_of(grid(JAX, map(cell, ("copy", "copy", "view")), promise="copy"))
    assert change.direction == "worse"


def test_versions_are_in_their_order():
    versions = ["10.0", "2.0.post1", "2.0", "0.4.10", "2.0rc1", "0.4.9"]
    in_order = ["0.4.9", "0.4.10", "2.0rc1", "2.0", "2.0.post1", "10.0"]
    assert sorted(versions, key=version_key) == in_order
