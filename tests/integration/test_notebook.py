"""The magics of IPython in a shell of its own, as a notebook uses them."""

import numpy as np
import pytest

InteractiveShell = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell


@pytest.fixture
def shell():
    found = InteractiveShell.instance()
    assert found.run_cell("%load_ext dlprof\nimport numpy as np, torch").success
    yield found
    InteractiveShell.clear_instance()


def test_a_traced_cell_shows_its_lines_its_value_and_its_error(shell, capsys):
    done = shell.run_cell("%%dlprof\nx = torch.tensor(np.ones(3))\nx.numpy().shape\n")
    out = capsys.readouterr().out
    assert done.success
    assert "(3,)" in out
    assert "]:2  torch.tensor(np.ones(3))" in out
    assert "x" in shell.user_ns
    failed = shell.run_cell("%%dlprof\nx.numpy()\n1/0\n")
    assert isinstance(failed.error_in_exec, ZeroDivisionError)
    assert "]:2  x.numpy()" in capsys.readouterr().out


def test_an_expression_of_the_notebook_is_measured_elsewhere(shell, capsys):
    shell.user_ns["x"] = np.arange(12.0).reshape(3, 4)
    assert shell.run_cell("%dlprof torch.from_numpy(x)").success
    assert "torch.from_numpy(x) is a view" in capsys.readouterr().out


def test_the_word_of_the_command_line_is_not_part_of_an_expression(shell, capsys):
    assert not shell.run_cell("%dlprof time x.numpy()").success
    assert "write %dlprof x.numpy()" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("x", "sentence"),
    [
        (np.ones((4, 4))[:, ::2], "x loses its strides"),
        (np.broadcast_to(1.0, (3,)), "x loses its strides"),
        (open, "no expression"),
        ((one for one in ()), "x cannot go to another process"),
    ],
    ids=["strided", "read-only", "statement", "generator"],
)
def test_what_another_process_would_not_have_alike_is_refused(shell, capsys, x, sentence):
    shell.user_ns["x"] = x
    done = shell.run_cell("%dlprof y = x" if x is open else "%dlprof torch.from_numpy(x)")
    assert not done.success
    assert sentence in capsys.readouterr().err
