"""``dlprof bisect``: what makes no sense is refused before anything is installed."""

import pytest
from command_line import dlprof

PATH = ("numpy", "torch", "torch.from_dlpack(x)")
ENDS = ("--good", "2.0.2", "--bad", "2.1.0")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((*PATH, *ENDS), "--package"),
        ((*PATH, "--package", "numpy", "--good", "2.0.2"), "--good"),
        (("numpy", "nothing", PATH[2], "--package", "numpy", *ENDS), "nothing"),
    ],
)
def test_a_bisection_that_makes_no_sense_is_refused(words, said):
    done = dlprof("bisect", *words)
    assert done.code == 2
    assert said in done.sentence()
