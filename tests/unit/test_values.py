"""Values: losses of a conversion are seen, and so are its side effects."""

import numpy
import pytest
from builders import make_subject

from dlprof.probes.base import BITS, DTYPES, LAYOUTS, ArraySpec, Import, Protocol, Unsupported
from dlprof.probes.numpy import NumPy
from dlprof.probes.torch import Torch
from dlprof.worker.instruments import values
from dlprof.worker.instruments.values import unequal
from dlprof.worker.subject import OneArray


def measured(code, spec=None, producer=None, consumer=None, **names):
    import_ = Import("any", (Protocol.DLPACK,), code)
    return values.measure(
        make_subject(import_=import_, spec=spec, producer=producer, consumer=consumer, **names)
    )


def changed(*args, **names):
    found = measured(*args, **names)
    assert found["verdict"] == "wrong", found
    return found["evidence"]["changed"]


class Own(OneArray, NumPy):
    array_name = "x"

    def create(self, spec):
        return "x = numpy.arange(32, dtype='float32').reshape(4, 8) / 3"


def stated(statement):
    """Measure a statement of a user's own, from NumPy to torch."""
    return measured(statement, producer=Own(), consumer=Torch())


@pytest.mark.parametrize(
    "statement",
    [
        "torch.from_numpy({x}[0])",
        "torch.from_numpy({x}.T).reshape(-1)",
        "torch.from_numpy({x} * 2)",
        "torch.from_numpy(2 * {x})",
        "torch.from_numpy({x}.astype('int16'))",
    ],
)
def test_a_statement_is_not_accused_of_what_it_computes(statement):
    assert stated(statement)["verdict"] == "ok"


@pytest.mark.parametrize("statement", ["{x}.astype('f2')", "numpy.array({x}, dtype='f2')"])
def test_a_statement_that_makes_another_dtype_changes_nothing_else(statement):
    found = measured(statement, producer=Own())["evidence"]["changed"]
    assert found == {"dtype": ["float32", "float16"]}


def test_a_cast_that_rounds_twice_gives_no_wrong_values():
    class Doubles(Own):
        def create(self, spec):
            return "x = numpy.random.default_rng(0).standard_normal((400, 500))"

    spec = ArraySpec((400, 500), "float64")
    found = measured("torch.tensor({x}, dtype=torch.half)", spec, Doubles(), Torch())
    assert found["evidence"]["changed"] == {"dtype": ["float64", "float16"]}


def test_integers_that_a_smaller_dtype_cannot_hold_are_wrong_values():
    class Large(Own):
        def create(self, spec):
            return "x = numpy.array([1, 2**32, 2**33])"

    spec = ArraySpec((3,), "int64")
    found = measured("torch.tensor({x}, dtype=torch.int32)", spec, Large(), Torch())
    changed = found["evidence"]["changed"]
    assert changed == {"dtype": ["int64", "int32"], "values": {"different": 2, "of": 3}}


def test_a_statement_that_reads_the_bytes_as_another_dtype_gives_wrong_values():
    found = measured("numpy.resize({x}, (4, 4)).view('c8')", producer=Own())
    assert found["verdict"] != "ok"
    found = measured("view({x})", producer=Own(), view=lambda x: x.astype("c8") * 1j)
    changed = found["evidence"]["changed"]
    assert changed == {"dtype": ["float32", "complex64"], "values": {"different": 31, "of": 32}}


@pytest.mark.parametrize("statement", ["2 * {x}", "{x}.clip(0, 1)", "{x}[::-1]"])
def test_the_arrays_own_operators_and_methods_may_compute(statement):
    with pytest.raises(Unsupported, match="may compute"):
        measured(statement, producer=Own())


def test_an_inner_function_that_makes_wrong_values_is_seen():
    found = measured(
        "torch.from_numpy(wrong({x}))",
        producer=Own(),
        consumer=Torch(),
        wrong=lambda array: array * 2,
    )
    assert found["verdict"] == "wrong"


@pytest.mark.parametrize(("factor", "kinds"), [(1, {"shape"}), (2, {"shape", "values"})])
def test_values_are_compared_across_further_axes_of_length_one(factor, kinds):
    def boxed(array):
        import torch

        return torch.from_numpy(array * factor)[None]

    found = changed("boxed({x})", producer=Own(), consumer=Torch(), boxed=boxed)
    assert set(found) == kinds


def test_a_statement_that_uses_its_array_twice_is_not_accused():
    with pytest.raises(Unsupported, match="more than once"):
        stated("torch.from_numpy({x}).reshape({x}.size)")


def test_a_statement_is_compared_from_the_part_that_it_converts():
    def zeros(part):
        import torch

        return torch.zeros(part.shape)

    found = measured("zeros({x}[1:])", producer=Own(), consumer=Torch(), zeros=zeros)
    assert found["evidence"]["changed"]["values"]["of"] == 24


@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable")
def test_a_read_only_array_inside_of_a_statement_is_named():
    found = stated("torch.from_numpy(numpy.broadcast_to({x}, (2, 4, 8)))")
    writable = found["evidence"]["writable"]
    assert (writable["source"], writable["result"]) == (False, True)
    assert writable["read_only"] == "numpy.broadcast_to(x, (2, 4, 8))"


class Made(NumPy):
    """Makes the array of an expression."""

    def __init__(self, expression):
        self.expression = expression

    def create(self, spec):
        return f"x = {self.expression}"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_faithful_copy_of_any_dtype_is_ok(layout):
    for dtype in (dtype for dtype in DTYPES if dtype not in BITS):
        found = measured("{x}.copy()", ArraySpec((5, 7), dtype, layout))
        assert (found["verdict"], found["evidence"]["changed"]) == ("ok", {}), dtype


def test_the_value_of_a_masked_element_is_no_data():
    masked = Made("numpy.ma.array(numpy.ones(4, 'float32'), mask=[True, False, True, False])")
    spec = ArraySpec((4,), "float32", "masked")
    assert "values" not in measured("{x}.filled(7)", spec, producer=masked)["evidence"]["changed"]
    assert changed("{x}.filled(7) + 1", spec, producer=masked)["values"]["different"] == 2


@pytest.mark.parametrize(
    ("layout", "code"),
    [
        ("F", "numpy.lib.stride_tricks.as_strided({x}, strides=(32, 4))"),
        ("strided", "numpy.lib.stride_tricks.as_strided({x}, strides=(32, 4))"),
        ("reversed", "{x}[::-1]"),
    ],
)
def test_ignored_strides_are_seen(layout, code):
    found = changed(code, ArraySpec((6, 8), "float32", layout))["values"]
    assert (found["of"], found["different"] > 24) == (48, True)


@pytest.mark.parametrize(
    ("dtype", "narrow"),
    [
        ("float64", "float32"),
        ("uint64", "uint32"),
        ("int32", "float32"),
    ],
)
def test_a_narrower_dtype_is_seen_in_the_values_too(dtype, narrow):
    found = changed(f"{{x}}.astype('{narrow}')", ArraySpec((300,), dtype))
    assert found["dtype"] == [dtype, narrow]
    assert found["values"]["different"] > 0


@pytest.mark.parametrize(
    ("dtype", "wrong"), [("float32", 99), ("complex128", 1j)], ids=["number", "half a number"]
)
def test_one_wrong_value_is_counted(dtype, wrong):
    def spoil(array):
        copy = array.copy()
        copy[2, 3] += wrong
        return copy

    found = changed("spoil({x})", ArraySpec((4, 8), dtype), spoil=spoil)
    assert found == {"values": {"different": 1, "of": 32}}


NAN, ZERO = "numpy.full((4, 8), numpy.nan, 'float32')", "-numpy.zeros((4, 8), 'float32')"


@pytest.mark.parametrize(
    ("expression", "code", "different"),
    [
        (NAN, "{x}.copy()", 0),
        (NAN, "({x}.view('uint32') | 1).view('float32')", 32),
        (ZERO, "numpy.abs({x})", 32),
        (ZERO, "{x}.astype('>f4')", 0),
    ],
    ids=["NaN stays", "other bits of NaN", "a lost sign", "the order of bytes"],
)
def test_values_are_compared_by_their_bits(expression, code, different):
    found = measured(code, producer=Made(expression))["evidence"]["changed"]
    assert found.get("values", {"different": 0})["different"] == different


class TestFurtherLooks:
    """Side effects of a conversion."""

    class Ring:
        """A conversion that cycles through this number of buffers."""

        def __init__(self, length):
            self.length, self.buffers = length, []

        def __call__(self, array):
            is_full = len(self.buffers) == self.length
            buffer = self.buffers.pop(0) if is_full else numpy.empty_like(array)
            self.buffers.append(buffer)
            buffer[...] = array
            return buffer

    class Own(OneArray, NumPy):
        array_name = "x"

        def create(self, spec):
            return "x = numpy.arange(32, dtype='float32').reshape(4, 8)"

    @staticmethod
    def write_source(array):
        copy = array.copy()
        array.reshape(-1)[3] = -5
        return copy

    @staticmethod
    def lock(array):
        array.flags.writeable = False
        return array

    def changed(self, convert, **options):
        return changed("convert({x})", convert=convert, **options)

    @pytest.mark.parametrize(
        "convert", [numpy.copy, lambda x: x[...], lambda x: x, lock], ids=range(4)
    )
    def test_an_innocent_conversion_is_not_blamed(self, convert):
        specs = [
            ArraySpec((), "float32"),
            ArraySpec((0, 3), "float32"),
            ArraySpec((5, 7), "complex128"),
            ArraySpec((4, 8), "float32", "readonly"),
            ArraySpec((4, 8), "float32", "broadcast"),
            ArraySpec((1 << 20,), "float32", "reversed"),
        ]
        for spec in specs:
            found = measured("convert({x})", spec, convert=convert)
            assert (found["verdict"], found["evidence"]["changed"]) == ("ok", {}), spec

    def test_a_write_to_the_source_is_seen(self):
        found = {"source": {"different": 1, "of": 32}}
        assert self.changed(self.write_source) == found
        assert self.changed(self.write_source, producer=self.Own()) == found

    def test_a_conversion_that_overwrites_an_earlier_result_is_seen(self):
        overwritten = {"different": 32, "of": 32}
        assert self.changed(self.Ring(1)) == {"earlier_result": overwritten}
        assert self.changed(self.Ring(4)).keys() == {"earlier_result"}

    def test_values_that_arrive_a_moment_later_are_unfinished(self, monkeypatch):
        waiting = []
        monkeypatch.setattr(values.time, "sleep", lambda _: waiting.pop()())

        def begin(array):
            result = numpy.zeros_like(array)
            waiting.append(lambda: numpy.copyto(result, array))
            return result

        assert changed("begin({x})", begin=begin).keys() == {"unfinished"}

    def test_a_result_whose_memory_is_free_is_seen_and_its_source_is_not_blamed(self):
        class Interface:
            def __init__(self, array):
                made = array.copy()
                self.__array_interface__ = {**made.__array_interface__, "made": None}

        found = self.changed(lambda x: numpy.asarray(Interface(x)))
        assert found.keys() == {"freed"}

    def test_old_values_after_a_write_to_the_source_are_seen(self):
        kept = {}
        seen = {"different": 32, "of": 32}
        found = self.changed(lambda x: kept.setdefault(id(x), (x, x.copy()))[1])
        assert found == {"after_write": seen}


def test_a_nan_of_another_dtype_is_no_changed_value():
    before = numpy.array([1.0, numpy.nan, 2.0, numpy.nan], "float32")
    after = numpy.array([1.0, numpy.nan, numpy.nan, 3.0], "float64")
    assert unequal(before, after, ("float32", "float64")).tolist() == [False, False, True, True]


def test_strides_of_an_empty_array_that_differ_are_kept_in_elements():
    spec = ArraySpec((0, 3), "float32", "C", "cpu")
    found = measured("numpy.from_dlpack({x})", spec, Torch(), NumPy())
    assert found["verdict"] == "ok"
    assert [*map(list, found["evidence"]["strides"])] == [[3, 1], [0, 0]]
