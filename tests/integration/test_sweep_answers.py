"""Scenarios end with a sentence that answers: loops, round trips and plain memory, measured."""

from __future__ import annotations

import json

import pytest
from command_line import content, dlprof

pytestmark = pytest.mark.integration

HEAD = 'title = "A problem"\nquestion = "Is it one?"\nrounds = 2\nsample_ms = 1.0\n'


@pytest.fixture
def sweep(tmp_path):
    """Run a sweep of a scenario of this text: its output, its session."""

    def run(text, *words):
        path, session = tmp_path / "scenario.toml", tmp_path / "s.json"
        path.write_text(HEAD + text)
        done = dlprof("sweep", path, *words, "-o", session, state=tmp_path, COLUMNS="100")
        assert done.code == 0, done.err
        return done, content(session)

    return run


LOOP = """\
pairs = ["numpy->torch"]
paths = ["torch.tensor(x)", "torch.from_numpy(x)"]
shapes = ["16x16"]
placement = ["in-loop", "hoisted"]
diagnose = false
report = "loop"
"""


def test_a_loop_answers_what_the_conversion_is_in_it(sweep):
    done, session = sweep(LOOP)
    assert "In a loop with torch.add(x, 1)" in done.out
    assert all(one["placement"]["in_loop"] for one in session["results"])


def test_placements_of_the_command_line_stand_over_the_file(sweep):
    _, session = sweep(LOOP, "--placement", "hoisted")
    assert {one["placement"]["in_loop"] for one in session["results"]} == {None}


TRIPS = """\
pairs = ["numpy<->torch"]
paths = ["torch.from_numpy(x)", "x.numpy()"]
shapes = ["64"]
round_trips = 30
diagnose = false
report = "round trip"
"""


def test_round_trips_are_made_in_a_row_and_told(sweep):
    done, session = sweep(TRIPS)
    (trip,) = session["round_trips"]
    assert trip["iterations"] == 30
    assert len(trip["idle"]["processes"]) == 2
    assert trip["idle"]["median_ns"] > 0
    assert trip["restarted"] is None
    assert "finishes its work on cpu" in trip["not_loaded"]
    assert "Round trips in a row" in done.out


def test_behind_queued_work_of_jax_a_trip_waits(sweep):
    pytest.importorskip("jax")
    text = TRIPS.replace("numpy<->torch", "jax<->numpy").replace(
        '"x.numpy()"', '"numpy.asarray(x)"'
    )
    _, session = sweep(text.replace("torch.from_numpy(x)", "jnp.array(x)"))
    (trip,) = session["round_trips"]
    assert trip["loaded"]["queued_ns"] > 0
    assert trip["loaded"]["there_ns"] + trip["loaded"]["back_ns"] > 0


PLACES = TRIPS.replace("numpy<->torch", "numpy<->jax").replace(
    '"torch.from_numpy(x)", "x.numpy()"', '"jax.dlpack.from_dlpack(x)", "numpy.asarray(x)"'
)


@pytest.mark.parametrize(
    ("path", "kind"), [("jnp.array(x)", "copies"), ("jax.dlpack.from_dlpack(x)", "views")]
)
def test_trips_see_themselves_whether_each_way_copies(sweep, path, kind):
    pytest.importorskip("jax")
    text = PLACES.replace("jax.dlpack.from_dlpack(x)", path)
    _, session = sweep(text + 'layouts = ["aligned"]\n')
    (trip,) = session["round_trips"]
    assert [one["round"] for one in trip["processes"]] == [0, 1]
    for process in trip["processes"]:
        for look in (process["in_a_row"], process["by_halves"]):
            assert look["there"][kind] > 0
            assert look["there"]["views"] + look["there"]["copies"] == look["there"][kind]
            assert look["back"]["copies"] == look["back"]["unknown"] == 0
            places = look["there"]["view_alignments"] + look["there"]["copy_alignments"]
            assert places
            assert all(size % 64 == 0 for size in places)


def test_without_a_safe_path_trips_take_one_that_is_right_and_say_so(sweep):
    """JAX's ``copy=True`` gives a view of aligned memory, against its word (DLP018)."""
    pytest.importorskip("jax")
    path = "jax.dlpack.from_dlpack(x, copy=True)"
    text = PLACES.replace("jax.dlpack.from_dlpack(x)", path) + 'layouts = ["aligned"]\n'
    done, session = sweep(text)
    (found,) = [one for one in session["results"] if one["case"]["code"] == path]
    if found["ownership"]["verdict"] != "view":
        pytest.skip("this version of JAX copies")
    assert session["round_trips"][0]["idle"]["median_ns"] > 0
    assert "unsafe" in done.out


INGEST = """\
pairs = ["bytearray->torch"]
paths = ["*frombuffer", "*asarray_buffer_copy"]
shapes = ["262144"]
dtypes = ["float64"]
report = "ingest"
"""


def test_plain_memory_answers_what_is_a_view_and_what_copies(sweep):
    done, session = sweep(INGEST, "--full")
    copies = [one for one in session["results"] if one["ownership"]["verdict"] == "copy"]
    assert len(copies) == 1
    assert json.dumps(copies[0]["peak_memory"])
    assert "memcpy" in done.out
