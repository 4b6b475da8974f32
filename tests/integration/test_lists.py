"""Lists of arrays into real frameworks."""

import pytest
from command_line import content, dlprof


@pytest.mark.parametrize("consumer", ["numpy", "torch", "jax", "tf"])
def test_a_list_of_arrays_is_copied_with_every_value(tmp_path, consumer):
    path = tmp_path / "session.json"
    done = dlprof("run", "list", consumer, "--quick", "--shape", "6x4x5", "-o", path)
    assert done.code == 0, done.err
    assert "6 arrays float32 4\N{MULTIPLICATION SIGN}5 in a list" in done.out
    results = content(path)["results"]
    found = {result["case"]["code"]: result for result in results}
    assert any("numpy.stack(x)" in code for code in found)
    for result in found.values():
        if result["status"] == "ok":
            assert (result["ownership"]["verdict"], result["values"]["verdict"]) == ("copy", "ok")


@pytest.mark.parametrize(
    ("setup", "statement", "faster", "title"),
    [
        (
            "import torch; a = [torch.rand(4, 5) for _ in range(6)]",
            "torch.stack([b for b in a])",
            "torch.stack(a)",
            "6 torch arrays float32 4\N{MULTIPLICATION SIGN}5 in a list",
        ),
        (
            "import numpy as np; a = (np.arange(5.0), np.ones(5))",
            "np.array(a)",
            "numpy.stack(a)",
            "2 arrays float64 5 in a tuple",
        ),
        (
            "import jax.numpy as jnp; a = [[1.5, 2.5], [3.5, 4.5]]",
            "jnp.array(a)",
            "jnp.asarray(numpy.array(a))",
            "2\N{MULTIPLICATION SIGN}2 numbers in nested lists",
        ),
    ],
)
def test_a_list_is_timed_with_the_way_that_usually_is_faster(
    tmp_path, setup, statement, faster, title
):
    path = tmp_path / "session.json"
    done = dlprof("time", "-s", setup, statement, "--quick", "-o", path)
    assert done.code == 0, done.err
    assert title in done.out
    results = content(path)["results"]
    assert {result["case"]["code"] for result in results} == {statement, faster}
    assert {result["values"]["verdict"] for result in results} == {"ok"}


@pytest.mark.parametrize(("add", "word"), [("", "ok"), (" + 1", "wrong")])
def test_a_list_of_times_is_compared_also_across_units(tmp_path, add, word):
    path = tmp_path / "session.json"
    days = "numpy.datetime64('2020-01-01'), numpy.datetime64('2021-01-01')"
    setup = (
        f"import numpy\ndef seconds(x): return numpy.array(x).astype('M8[s]'){add}\na = [{days}]"
    )
    done = dlprof("time", "-s", setup, "seconds(a)", "--quick", "-o", path)
    assert "2 scalars in a list" in done.out
    changed = content(path)["results"][0]["values"]["evidence"]["changed"]
    assert changed["dtype"] == ["datetime64[D]", "datetime64[s]"]
    assert ("values" in changed) == (word == "wrong")


def test_a_way_that_the_user_wrote_is_not_offered_again(tmp_path):
    path = tmp_path / "session.json"
    setup = "import numpy as np; a = [[1.5, 2.5], [3.5, 4.5]]"
    assert dlprof("time", "-s", setup, "np.array(a)", "--quick", "-o", path).code == 0
    assert len(content(path)["results"]) == 1
