"""Probe declarations: loading a probe checks them, and an error names the place."""

from pathlib import Path

import pytest
from builders import make_subject

from dlprof.probes.base import Unsupported
from dlprof.probes.numpy import NumPy
from dlprof.worker import loading
from dlprof.worker.refusal import FaultyProbe

FAKE = Path(__file__).parent.parent / "probe_files" / "fake.py"


@pytest.mark.parametrize(
    ("line", "facts"),
    [
        ("name = 5", ("Bad.name", "5")),
        ("name = 'x' * 10**6 + '\\n'", ("Bad.name", "'xxx")),
        ("setup = b'import ctypes'", ("Bad.setup", "b'import ctypes'")),
        ("devices = ('gpu',)", ("Bad.devices", "cpu, cuda", "('gpu',)")),
        ("imports = (*IMPORTS, *IMPORTS)", ("Bad.imports", "'view'")),
        ("exports = (Export('a', 'native!', '{x}'),)", ("protocol of Bad.exports 'a'", "('native!',)")),
        ("exports = (Export('a', Protocol.NATIVE, 'x'),)", ("code of Bad.exports 'a'", "{x}, {dtype}, {shape}", "'x'")),
        ("exports = (Export('a', Protocol.NATIVE, 'y = {x}'),)", ("code of Bad.exports 'a'", "Python")),
        ("exports = (Export('a', Protocol.NATIVE, '{x}', promise='vieww'),)", ("promise of Bad.exports 'a'", "copy or view", "'vieww'")),
    ],
)  # fmt: skip
def test_an_unusable_declaration_is_refused_with_its_place(tmp_path, line, facts):
    name = "" if line.startswith("name") else "name = 'bad'\n    aliases = ()\n    "
    head = FAKE.read_text(encoding="utf-8").partition("class Missing")[0]
    probe = tmp_path / "probe.py"
    probe.write_text(f"{head}\nclass Bad(Fake):\n    {name}{line}\n", encoding="utf-8")
    with pytest.raises(FaultyProbe) as refused:
        loading.load(f"file:{probe}")
    assert all(fact in str(refused.value) for fact in facts)


class Making(NumPy):
    """A probe whose arrays are made by a text, or by a function that returns the text."""

    def __init__(self, made):
        self.made = made

    def create(self, spec):
        return self.made() if callable(self.made) else self.made


def refuse():
    raise Unsupported


@pytest.mark.parametrize(
    ("made", "error"),
    [
        (refuse, Unsupported),
        ("x = {}.pop(1)", KeyError),
        ("x = numpy.zeros(1, [('a', 'i4')])['b']", ValueError),
    ],
)
def test_an_error_of_a_framework_is_its_own_answer(made, error):
    with pytest.raises(error):
        make_subject(producer=Making(made))


def raising(error):
    def method(*_):
        raise error

    return method


@pytest.mark.parametrize("method", ["create", "dtype", "wait"])
@pytest.mark.parametrize("error", [KeyError("float8"), SystemExit("float8")], ids=repr)
def test_a_mistake_in_a_probes_description_of_its_array_is_no_refusal(method, error):
    mistaken = type("Mistaken", (NumPy,), {method: raising(error)})()
    with pytest.raises(FaultyProbe, match=f"numpy's {method} raises {type(error).__name__}: .*8"):
        make_subject(producer=mistaken)
