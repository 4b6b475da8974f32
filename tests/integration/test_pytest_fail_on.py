"""A marked test fails for a line of its own that copies, in a pytest of its own."""

pytest_plugins = ["pytester"]

CONTENT = """\
import numpy, pytest, torch
from torch import tensor

X = numpy.ones((2, 3), "float32")

def step(convert=None):
    return (convert or tensor)(X)

BEFORE = torch.tensor, tensor, torch.Tensor.numpy

@pytest.mark.dlprof_fail_on("copy")
def test_copies():
    step()
    step()

@pytest.mark.dlprof_fail_on("wait", "device-crossing")
def test_copies_and_may():
    step()

@pytest.mark.dlprof_fail_on()
def test_is_a_view():
    assert torch.from_numpy(X).sum() == 6
    assert torch.tensor is not BEFORE[0]

@pytest.mark.dlprof_fail_on("copy")
def test_is_allowed():
    tensor(X)  # dlprof: allow copy

@pytest.mark.dlprof_fail_on("copy")
def test_fails_by_itself():
    step()
    assert X.sum() == 7

@pytest.mark.dlprof_fail_on("read")
def test_has_no_such_word():
    pass

def test_converts_before_the_block(dlprof_fail_on):
    step()
    with dlprof_fail_on("copy") as found:
        step(torch.from_numpy)
    assert [(row.line, row.calls, row.result) for row in found.rows] == [(7, 1, "view")]

def test_copies_in_the_block(dlprof_fail_on):
    with dlprof_fail_on("copy"):
        step()

@pytest.mark.dlprof_fail_on("device-crossing")
def test_has_both(dlprof_fail_on):
    with dlprof_fail_on("wait") as found:
        step()
    assert [row.calls for row in found.rows] == [1]

@pytest.mark.xfail(raises=AssertionError, strict=True)
@pytest.mark.dlprof_fail_on("copy")
def test_is_expected_to_copy():
    step()

def test_decorates(dlprof_fail_on):
    view = dlprof_fail_on("copy")(lambda: step(torch.from_numpy))
    assert view().sum() == view().sum() == 6
    with pytest.raises(AssertionError):
        dlprof_fail_on("copy")(step)()

def test_finds_all_put_back():
    assert (torch.tensor, tensor, torch.Tensor.numpy) == BEFORE
"""
FAILED = {
    "copies": "test_a.py:7 step   (convert or tensor)(X)   copy: 2 calls",
    "fails_by_itself": "assert ",
    "has_no_such_word": "read: expected copy, wait, device-crossing",
    "copies_in_the_block": "test_a.py:7 step   (convert or tensor)(X)   copy: 1 call",
}


def test_a_test_fails_for_what_it_forbids(pytester, monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(test_a=CONTENT)
    ran = pytester.runpytest_subprocess("-p", "dlprof.pytest_plugin", "-rA", "--strict-markers")
    ran.assert_outcomes(passed=7, failed=len(FAILED), xfailed=1)
    for name, said in FAILED.items():
        text = ran.stdout.str().split(f"__ test_{name} __")[1].split("\n__")[0]
        assert said in text
        assert ("forbids: copy" in text) == ("copies" in name)
        assert not any(file in text for file in ("pytest_plugin.py", "assertions.py", "contextlib"))
