"""The part of the tracer in C: it counts as Python does (test_tracer.py), and needs less for it."""

import cProfile
import gc
import os
import shutil
import sys
import sysconfig
from pathlib import Path

import numpy
import pytest

from dlprof.tracer import state
from dlprof.tracer.place import Places
from dlprof.tracer.rows import Rows
from dlprof.tracer.state import Tracer
from dlprof.tracer.targets import declared
from dlprof.tracer.wrappers import make

CAN_BE_BUILT = (
    sys.version_info >= (3, 11)
    and not sysconfig.get_config_var("Py_GIL_DISABLED")
    and shutil.which("cc") is not None
    and Path(sysconfig.get_path("include"), "Python.h").exists()
)
IS_LEFT_OUT = bool(os.environ.get(state.IN_PYTHON))
pytestmark = pytest.mark.skipif(
    IS_LEFT_OUT or (state.fast is None and not CAN_BE_BUILT), reason="it cannot be built here"
)
CALLS = 20_000


def test_it_is_built():
    assert state.fast is not None


def traced(original, conversion):
    (target,) = (one for one in declared() if one.conversion == conversion)
    tracer = Tracer(Places(), Rows(None))
    tracer.rows.next_s = float("inf")  # what is done now and then is no call
    return make(original, target, tracer), tracer


def functions_of_the_tracer_in(call):
    """The Python functions of the tracer that ``call`` runs."""
    seen = []

    def look(frame, event, _):
        if frame.f_globals["__name__"].startswith("dlprof.tracer"):
            seen.append(frame.f_code.co_name)

    before = sys.gettrace()
    sys.settrace(look)
    try:
        call()
    finally:
        sys.settrace(before)
    return seen


@pytest.mark.parametrize(
    ("convert", "source"),
    [
        pytest.param("frombuffer", numpy.zeros(3), id="a view"),
        pytest.param("asarray", numpy.zeros(3), id="what passes through"),
    ],
)
def test_a_call_like_the_one_before_runs_nothing_of_the_tracer_in_python(convert, source):
    convert, _ = traced(getattr(numpy, convert), f"numpy.{convert}(x)")
    sources = source, source, source
    for _ in range(3):  # which one place calls
        seen = functions_of_the_tracer_in(lambda: list(map(convert, sources)))
    assert seen == []


def test_calls_keep_nothing():
    source = numpy.zeros((2, 3))
    view, counts = traced(lambda x: x[:], "torch.from_numpy(x)")
    again, _ = traced(numpy.frombuffer, "numpy.frombuffer(x)")

    def failing(x):
        raise ValueError(x)

    refused, _ = traced(failing, "torch.from_numpy(x)")

    def run():
        for _ in range(CALLS):
            view(source)
            again(source)
            with pytest.raises(ValueError, match="0"):
                refused(source)

    def held():
        gc.collect()
        things = source, source.dtype, numpy.ndarray, view, again, refused
        return [*map(sys.getrefcount, things), sys.getallocatedblocks()]

    run()
    before = held()
    run()
    assert [abs(now - then) > CALLS / 100 for now, then in zip(held(), before, strict=True)] == [
        False
    ] * len(before)
    (row,) = counts.rows.as_dict(ended=True)["rows"]
    assert row["views"] == 2 * CALLS


def test_a_profiler_sees_the_calls_of_the_original():
    source = numpy.zeros(3)

    def convert_each(convert):
        for _ in range(5):
            convert(source)

    convert, _ = traced(numpy.frombuffer, "numpy.frombuffer(x)")
    convert_each(convert)
    with cProfile.Profile() as profile:
        convert_each(convert)
    called = {one.code: one.callcount for one in profile.getstats()}
    assert called["<built-in method numpy.frombuffer>"] == 5


def test_a_wrapper_that_lost_its_part_in_c_converts():
    convert, counts = traced(numpy.frombuffer, "numpy.frombuffer(x)")
    for lost in (None, "not what it was"):
        convert(b"1234", "uint8")
        convert._recorder = lost
    del convert._recorder
    assert convert(b"1234", "uint8").size == 4
    (row,) = counts.rows.as_dict(ended=True)["rows"][1:]
    assert row["views"] == 1


def test_a_recorder_that_gets_anything_else_than_a_call_raises_an_error_of_python():
    convert, _ = traced(numpy.frombuffer, "numpy.frombuffer(x)")
    for arguments in [(), (1, 2, 3, 4, 5), (sys._getframe(), 2, b"", (), {})]:
        with pytest.raises((TypeError, AttributeError)):
            convert._recorder(*arguments)
