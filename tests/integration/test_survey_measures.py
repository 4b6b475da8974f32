"""The survey of real frameworks: wide, at small arrays, and a crash costs one of them."""

import pytest
from command_line import dlprof

from dlprof.measuring.judged import load

ONE_PATH = ("--path", "torch.from_dlpack(x)")


@pytest.fixture(scope="module")
def numpy_to_torch(tmp_path_factory):
    path = tmp_path_factory.mktemp("survey") / "session.json"
    done = dlprof("survey", "numpy", "torch", *ONE_PATH, "-o", path)
    return done, load(path)


def by_array(session):
    return {(r.case.dtype, r.case.layout, r.case.shape): r for r in session.results}


def test_a_crash_costs_one_array_and_the_others_are_looked_at(numpy_to_torch):
    done, session = numpy_to_torch
    assert done.code == 0
    lost = {r.case.layout for r in session.results if r.status == "crashed"}
    kept = [r for r in session.results if r.status == "ok"]
    assert len(kept) > len(session.results) // 2
    # torch 2.13 aborts on a negative stride; another version may refuse it.
    assert lost <= {"reversed"}


def test_every_bit_of_every_dtype_survives_a_view(numpy_to_torch):
    found = by_array(numpy_to_torch[1])
    for dtype in ("bool", "int64", "uint64", "float16", "float64", "complex128"):
        result = found[dtype, "aligned", (6, 10)]
        assert (result.ownership.verdict, result.values.verdict) == ("view", "ok")


def test_a_lost_mask_is_told(numpy_to_torch):
    assert "DLP021" in {finding.rule for finding in numpy_to_torch[1].findings}


def test_a_run_looks_beside_its_own_array(tmp_path):
    path = tmp_path / "session.json"
    words = ("run", "numpy", "numpy", "--path", "*->asarray", "--shape", "16")
    done = dlprof(*words, "--rounds", 1, "--no-diagnose", "-o", path)
    assert done.code == 0
    results = load(path).results
    timed = [result for result in results if not result.case.survey]
    assert [result.case.shape for result in timed] == [(16,)]
    assert len(results) > len(timed)
    assert "16" in done.out.splitlines()[0]
