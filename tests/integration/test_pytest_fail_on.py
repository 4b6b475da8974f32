"""A marked test fails for a line that copies, in a separate pytest."""

pytest_plugins = ["pytester"]

CONTENT = """\
import numpy, pytest, torch

X = numpy.ones((2, 3), "float32")

def step(convert=None):
    return (convert or torch.tensor)(X)

@pytest.mark.dlprof_fail_on("copy")
def test_copies():
    step()
    step()

@pytest.mark.dlprof_fail_on("wait", "device-crossing")
def test_may_copy():
    step()

@pytest.mark.dlprof_fail_on()
def test_is_a_view():
    assert torch.from_numpy(X).sum() == 6

@pytest.mark.dlprof_fail_on("copy")
def test_is_allowed():
    torch.tensor(X)  # dlprof: allow copy

@pytest.mark.dlprof_fail_on("copy")
def test_fails_by_itself():
    step()
    assert X.sum() == 7

@pytest.mark.dlprof_fail_on("copy")
def test_may_copy_without_a_row():
    torch.stack([torch.from_numpy(X)])

def test_converts_before_the_block(dlprof_fail_on):
    step()
    with dlprof_fail_on("copy") as found:
        step(torch.from_numpy)
    assert [(row.line, row.calls, row.result) for row in found.rows] == [(6, 1, "view")]

def test_copies_in_the_block(dlprof_fail_on):
    with dlprof_fail_on("copy"):
        step()
"""
FAILED = {
    "copies": "test_a.py:6   (convert or torch.tensor)(X)   copy, 2x",
    "fails_by_itself": "assert ",
    "copies_in_the_block": "test_a.py:6   (convert or torch.tensor)(X)   copy, 1x",
}


def test_a_test_fails_for_what_it_forbids(pytester, monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(test_a=CONTENT)
    ran = pytester.runpytest_subprocess("-p", "dlprof.pytest_plugin", "-rA", "--strict-markers")
    ran.assert_outcomes(passed=5, warnings=1, failed=len(FAILED))
    for name, said in FAILED.items():
        text = ran.stdout.str().split(f"__ test_{name} __")[1].split("\n__")[0]
        assert said in text
    warning = ran.stdout.str().split("= warnings summary =")[1]
    assert "dlprof_fail_on: passed, but unknown for test_a.py:32" in warning
