"""What the matrix of an atlas shows of a pair: the fastest path that is safe, as ``dlprof matrix``."""

import pytest
from builders import make_result, make_session

from dlprof.atlas.grid import grid_of
from dlprof.report.html.site import Site, matrix_table, pages_of

WRONG = {"values": {"verdict": "wrong", "evidence": {"changed": {"values": {"different": 1}}}}}
DANGLING = {"lifetime": {"verdict": "dangling", "evidence": {"changed_after_drop": True}}}
COPY = {"ownership": {"verdict": "copy", "evidence": {}}}


@pytest.fixture
def atlas(tmp_path):
    """The grid of sessions; each is a list of results."""

    def build(*sessions):
        for number, results in enumerate(sessions):
            text = make_session(*results).model_dump_json(by_alias=True)
            (tmp_path / f"{number}.json").write_text(text, encoding="utf-8")
        return grid_of([tmp_path], pytest.fail)

    return build


def result(name, ns, case=None, **changes):
    named = {"import": name, **(case or {})}
    return make_result(f"f.{name}(x)", ns, (0.9 * ns, 1.1 * ns), named, **changes)


def shown(grid):
    """The cell of the one pair."""
    ((_, cell),) = matrix_table(Site(grid, ())).rows
    return cell.line


@pytest.mark.parametrize("fault", [WRONG, DANGLING], ids=["wrong", "dangling"])
def test_a_fast_view_that_is_unsafe_is_not_the_best(atlas, fault):
    grid = atlas([result("fast", 10_000.0, **fault), result("slow", 50_000.0, **COPY)])
    assert shown(grid) == "50 µs copy"


def test_a_pair_without_a_safe_path_says_so(atlas):
    grid = atlas([result("fast", 10_000.0, **DANGLING), result("wrong", 5_000.0, **WRONG)])
    assert shown(grid) == "10 µs unsafe"
    pages = dict(pages_of(grid, ()))
    assert "DLP011 dangling" in pages["pair-torch-numpy.html"]


def test_a_path_that_gives_wrong_values_alone_is_called_wrong(atlas):
    assert shown(atlas([result("fast", 10_000.0, **WRONG)])) == "wrong"


def test_what_one_session_saw_of_a_path_holds_for_shapes_of_another(atlas):
    unlooked = {"lifetime": None, "early_write": None}
    small = result("fast", 10_000.0, {"shape": (2, 2)}, **unlooked)
    assert shown(atlas([small])) == "10 µs view"
    assert shown(atlas([small], [result("fast", 20_000.0, **DANGLING)])) == "10 µs unsafe"


def test_a_surveyed_array_does_not_stand_for_a_pair_that_was_timed(atlas):
    seen = result("fast", 10_000.0, {"survey": True, "shape": (3,)}, ready_time=None)
    assert shown(atlas([seen])) == "view"
    assert shown(atlas([seen, result("fast", 10_000.0, **DANGLING)])) == "10 µs unsafe"


@pytest.mark.parametrize(
    ("elsewhere", "shown"), [("refused", ""), ("copy", "refused")], ids=["decides", "does not"]
)
def test_a_refusal_is_no_change_where_the_address_decides_on_it_elsewhere(
    tmp_path, elsewhere, shown
):
    looks = {"aligned": {"verdict": "view"}, "sliced": {"verdict": elsewhere}}
    looked = result("f", 1000.0, alignment={"verdict": "dependent", "evidence": looks})
    refused = result("f", 1.0, status="unsupported", reason="TypeError: no", ownership=None)
    for version, one in (("1.0", refused), ("2.0", looked)):
        session = make_session(one, environment={"packages": {"numpy": version}})
        text = session.model_dump_json(by_alias=True)
        (tmp_path / f"{version}.json").write_text(text, encoding="utf-8")
    (row,) = grid_of([tmp_path], pytest.fail).rows
    assert [cell.result for _, cell in sorted(row.cells.items())] == [shown, f"view or {elsewhere}"]
