"""What a probe declares is checked when it is loaded, and refused with its place."""

import operator
from pathlib import Path

import numpy
import pytest
import torch
from builders import make_subject

from dlprof.probes.base import ArraySpec, Import, Probe, Protocol, Unsupported
from dlprof.probes.numpy import NumPy
from dlprof.worker import loading
from dlprof.worker.contract import guard
from dlprof.worker.refusal import FaultyProbe, attempt
from dlprof.worker.subject import OneArray, check_mistake

FAKE = Path(__file__).parent.parent / "probe_files" / "fake.py"


@pytest.mark.parametrize(
    ("line", "facts"),
    [
        ("name = 5", ("Bad.name", "5")),
        ("name = 'x' * 10**6 + '\\n'", ("Bad.name", "'xxx")),
        ("aliases = 'bad'", ("Bad.aliases", "'bad'")),
        ("setup = b'import ctypes'", ("Bad.setup", "b'import ctypes'")),
        ("devices = ('gpu',)", ("Bad.devices", "('cpu', 'cuda')", "('gpu',)")),
        ("variables = ['A=1']", ("Bad.variables", "['A=1']")),
        ("variables = {'A': 'a\\0b'}", ("Bad.variables['A']",)),
        ("imports = (*IMPORTS, *IMPORTS)", ("Bad.imports", "'view'")),
        ("exports = (Export(5, Protocol.NATIVE, '{x}'),)", ("name in Bad.exports", "5")),
        ("exports = (Export('a', 'native!', '{x}'),)", ("protocol of Bad.exports 'a'", "('native!',)")),
        ("exports = (Export('a', Protocol.NATIVE, 'x'),)", ("code of Bad.exports 'a'", "{x}", "{dtype}, {shape}", "'x'")),
        ("exports = (Export('a', Protocol.NATIVE, 'y = {x}'),)", ("code of Bad.exports 'a'", "Python")),
        ("exports = (Export('a', Protocol.NATIVE, '{x}', promise='vieww'),)", ("promise of Bad.exports 'a'", "copy or view", "'vieww'")),
        ("imports = (Import('a', (Protocol.DLPACK,), 'f({x})', layouts=('odd',)),)", ("layouts of Bad.imports 'a'", "C, aligned")),
    ],
)  # fmt: skip
def test_a_declaration_that_cannot_be_used_is_refused_with_its_place(tmp_path, line, facts):
    name = "" if line.startswith("name") else "name = 'bad'\n    aliases = ()\n    "
    head = FAKE.read_text(encoding="utf-8").partition("class Missing")[0]
    probe = tmp_path / "probe.py"
    probe.write_text(f"{head}\nclass Bad(Fake):\n    {name}{line}\n", encoding="utf-8")
    with pytest.raises(FaultyProbe) as refused:
        loading.load(f"file:{probe}")
    assert all(fact in str(refused.value) for fact in facts)


class Making(NumPy):
    """Its arrays are made by a text, or by a function that gives the text."""

    def __init__(self, made):
        self.made = made

    def create(self, spec):
        return self.made() if callable(self.made) else self.made


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: {}["float8"], "numpy's create raises KeyError: 'float8'"),
        ("x = sizes[0]", "the text of numpy's create raises NameError"),
        ("x = {'float32': 4}['int4']", "the text of numpy's create raises KeyError: 'int4'"),
        ("def size(one):\n    return {}[one]\nx = size(1)", "raises KeyError: 1"),
    ],
)
def test_a_mistake_of_a_probe_is_no_refusal_of_its_framework(made, words):
    with pytest.raises(FaultyProbe, match=words):
        make_subject(producer=Making(made))


def refuse():
    raise Unsupported


@pytest.mark.parametrize(
    ("made", "error"),
    [
        (refuse, Unsupported),
        ("x = {}.pop(1)", KeyError),
        ("x = numpy.no_such_dtype", AttributeError),
        ("x = numpy.zeros(4, 'no such dtype')", TypeError),
        ("x = numpy.zeros(1, [('a', 'i4')])['b']", ValueError),
    ],
)
def test_what_a_framework_raises_is_its_own_answer(made, error):
    with pytest.raises(error):
        make_subject(producer=Making(made))


def raising(error):
    def method(*_):
        raise error

    return method


@pytest.mark.parametrize("method", ["create", "dtype", "shape", "device", "pointer", "wait"])
@pytest.mark.parametrize("error", [KeyError("float8"), SystemExit("float8")], ids=repr)
def test_a_mistake_in_what_a_probe_says_of_its_array_is_no_refusal(method, error):
    mistaken = type("Mistaken", (NumPy,), {method: raising(error)})()
    with pytest.raises(FaultyProbe, match=f"numpy's {method} raises {type(error).__name__}: .*8"):
        make_subject(producer=mistaken)


def test_an_address_that_is_no_number_is_a_mistake_of_its_probe():
    mistaken = type("Mistaken", (NumPy,), {"pointer": lambda *_: "here"})()
    with pytest.raises(FaultyProbe, match="numpy's pointer gives 'here'"):
        make_subject(producer=mistaken, spec=ArraySpec((4,), "float32", "aligned"))


def test_a_probe_may_say_that_it_cannot_tell_and_a_users_own_array_may_raise_anything():
    unable = type("Unable", (NumPy,), {"pointer": raising(Unsupported("no address"))})()
    with pytest.raises(Unsupported, match="no address"):
        make_subject(producer=unable)
    own = type("Own", (OneArray, NumPy), {"dtype": raising(TypeError("no dtype"))})()
    with pytest.raises(TypeError, match="no dtype"):
        make_subject(producer=own)


def converted(code, **names):
    """What the first conversion by an import with this code raises, if it is no mistake."""
    subject = make_subject(import_=Import("any", (Protocol.DLPACK,), code), **names)
    error = attempt(subject.convert).error
    check_mistake(subject, error)
    return type(error)


@pytest.mark.parametrize("code", ["asarray({x})", "numpy.asarray({x}, kinds['{dtype}'])"])
def test_a_name_or_a_dtype_that_the_text_of_a_way_does_not_know_is_a_mistake(code):
    with pytest.raises(FaultyProbe, match=r"the text .* raises"):
        converted(code, kinds={})


@pytest.mark.parametrize(
    ("code", "error"),
    [("{x}.no_such_method()", AttributeError), ("load({x})['x']", KeyError)],
)
def test_what_a_framework_lacks_or_leaves_out_is_no_mistake_of_a_probe(code, error):
    assert converted(code, load=lambda _: {}) is error


def test_a_name_that_a_users_setup_took_away_is_no_mistake_of_a_probe():
    subject = make_subject(import_=Import("any", (Protocol.DLPACK,), "numpy.asarray({x})"))
    del subject.namespace["numpy"]
    with pytest.raises(NameError) as raised:
        subject.convert()
    check_mistake(subject, raised.value)


@pytest.mark.parametrize(
    ("method", "value"),
    [
        ("pointer", "here"),
        ("pointer", -5),
        ("pointer", 1.5),
        ("pointer", 1 << 64),
        ("pointer", numpy.arange(3)),
        ("shape", (torch.tensor([1, 2]),)),
        ("writable", numpy.ones(2)),
        ("shape", [2, 3]),
        ("shape", ("2",)),
        ("dtype", numpy.dtype("float32")),
        ("dtype", "x" * 10**7),
        ("device", None),
        ("writable", "yes"),
        ("to_numpy", None),
        ("to_numpy", numpy.array([1, None])),
    ],
)
def test_what_is_no_answer_of_a_method_is_a_mistake_of_the_probe(method, value):
    probe = guard(type("Mistaken", (NumPy,), {method: lambda *_: value})())
    with pytest.raises(FaultyProbe, match=f"numpy's {method} returns must be .*, not "):
        getattr(probe, method)(numpy.ones(3))


def test_a_method_of_a_probe_that_ends_the_process_is_a_mistake_and_an_error_is_none():
    ending = guard(type("Ending", (NumPy,), {"pointer": raising(SystemExit(3))})())
    with pytest.raises(FaultyProbe, match="numpy's pointer raises SystemExit: 3"):
        ending.pointer(numpy.ones(3))
    failing = guard(type("Failing", (NumPy,), {"pointer": raising(RuntimeError("deleted"))})())
    with pytest.raises(RuntimeError):
        failing.pointer(numpy.ones(3))


def test_right_answers_of_a_probe_pass_as_plain_values():
    class Odd(NumPy):
        shape = staticmethod(lambda _: torch.Size([2, 3]))
        device = classmethod(lambda _, array: "cpu")
        dtype = operator.attrgetter("dtype.name")

        def pointer(self, array):
            return numpy.uint64(array.ctypes.data)

        def writable(self, _):
            return numpy.bool_(True)

    array, probe = numpy.ones((2, 3)), guard(Odd())
    assert type(probe.pointer(array)) is int
    answers = [getattr(probe, method)(array) for method in ("shape", "dtype", "device", "writable")]
    assert answers == [(2, 3), "float64", "cpu", True]


def test_the_probes_of_a_file_are_guarded(tmp_path):
    file = tmp_path / "bad.py"
    lines = ("class Bad(NumPy):", "    name = 'bad'", "    pointer = lambda *_: -1\n")
    file.write_text("\n".join(("from dlprof.probes.numpy import NumPy", *lines)), encoding="utf-8")
    (probe,) = loading.load(f"file:{file}")
    with pytest.raises(FaultyProbe, match="pointer returns must be an address, not -1"):
        probe.pointer(None)


def test_the_default_dtype_has_no_byte_order():
    assert Probe().dtype(numpy.zeros(3, ">f4")) == "float32"
