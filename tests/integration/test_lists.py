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
