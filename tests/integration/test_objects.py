"""``dlprof run EXPRESSION CONSUMER``: every way from an object of any library."""

import pytest
from command_line import content, dlprof

BOX = """\
import numpy
class Box:
    def __init__(self, values):
        self.values = values
    def __array__(self, dtype=None, copy=None):
        return self.values"""
QUICK = ("--rounds", "1", "--no-diagnose")


def measured(path, *words):
    done = dlprof("run", *words, *QUICK, "-o", path)
    assert done.code == 0, done.err
    return {result["case"]["code"]: result for result in content(path)["results"]}


def test_all_paths_from_an_object_without_a_probe_are_measured(tmp_path):
    words = "Box(numpy.arange(6.0))", "torch", "--setup", BOX
    found = measured(tmp_path / "session.json", *words)
    view = found["torch.from_numpy(x.values)"]
    assert view["case"]["producer"] == "Box"
    assert (view["case"]["dtype"], view["case"]["shape"]) == ("float64", [6])
    assert view["ownership"]["verdict"] == "view"
    assert view["values"]["verdict"] == "ok"
    assert found["torch.tensor(x.values)"]["ownership"]["verdict"] == "copy"


def test_an_array_of_a_framework_is_made_by_the_expression(tmp_path):
    found = measured(tmp_path / "session.json", "torch.arange(12.0).reshape(3, 4).T", "numpy")
    case = found["x.numpy()"]["case"]
    assert (case["producer"], case["shape"], case["layout"]) == ("torch", [4, 3], "F")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("nope.zeros(3)", "numpy"), 4, "name 'nope' is not defined"),
        (("len([3])", "numpy"), 2, "makes no array, but a int"),
        (("array.array('f')[1]", "numpy"), 4, "IndexError"),
        (("numpy.zeros(3", "numpy"), 2, "not Python"),
        (("numpy.zeros(3)", "torch", "--shape", "4"), 2, "--shape: the expression makes"),
        (("drjit", "torch"), 2, "measure one conversion with 'dlprof time'"),
        (("tensorflwo", "torch"), 2, "did you mean 'tensorflow'?"),
    ],
)
def test_a_producer_that_makes_no_sense_is_refused_in_a_sentence(words, code, said):
    done = dlprof("run", *words, "--quick")
    assert done.code == code
    assert said in done.sentence()
