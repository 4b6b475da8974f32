"""Reproducers of what an instrument saw of an array of its own, and of a user's own setup."""

from __future__ import annotations

import pytest
from builders import make_session
from repro_builders import case_of, finding_of, recipe_of, session_of
from rule_builders import path, verdict

from dlprof.errors import NoReproducer
from dlprof.evidence.repro import reproducer
from dlprof.probes.base import ArraySpec
from dlprof.probes.cupy import CuPy
from dlprof.probes.host import Bytes
from dlprof.probes.numpy import NumPy
from dlprof.probes.torch import Torch
from dlprof.protocol.own_code import OwnCode, Side
from dlprof.worker.instruments import recipe
from dlprof.worker.loading import own_probes

pytestmark = pytest.mark.unit

MADE = {"create": "x = numpy.arange(9.0)", "created_shape": [9]}
SEEN = {
    "DLP005": {"peak_memory": verdict("ok", arrays=2.0, size_bytes=16 << 20, **MADE)},
    "DLP008": {
        "values": verdict("wrong", changed={"source": {"different": 1, "of": 9}}, **MADE),
    },
    "DLP010": {"lifetime": verdict("retained", references_per_conversion=1.0, **MADE)},
    "DLP011": {"lifetime": verdict("dangling", changed_after_drop=True, **MADE)},
    "DLP020": {"early_write": verdict("unsafe", **MADE)},
}


def text_of(rule, *arguments, **changes):
    session = session_of(rule, *arguments, **changes)
    return reproducer(session, session.findings[0]).text


@pytest.mark.parametrize("rule", SEEN)
def test_the_docstring_names_the_array_that_the_script_makes(rule):
    text = text_of(rule, **SEEN[rule])
    assert "x: float32 9 of numpy. Seen with" in text
    assert "x = numpy.arange(9.0)" in text


@pytest.mark.parametrize("told", [None, "9", [9.5], [True]])
def test_a_shape_that_is_none_leaves_the_one_of_the_case(told):
    made = {"create": "x = numpy.arange(9.0)", "created_shape": told}
    lifetime = verdict("retained", references_per_conversion=1.0, **made)
    assert "x: float32 64x64 of numpy." in text_of("DLP010", lifetime=lifetime)


def test_values_that_are_wrong_with_no_queue_are_no_race():
    spec = ArraySpec((1024,), "float32", "C", "cuda")
    text = text_of("DLP003", Torch(), CuPy(), spec, code="cupy.from_dlpack(x)")
    asked = "int((convert(y).get() != expected).sum())  # no race"
    wait = "torch.cuda.current_stream().synchronize()"
    assert text.index("wrong = int(") < text.rindex(wait) < text.index(f"always = {asked}")
    assert "return wrong > always or ready < queue / 2" in text


def test_memory_that_cannot_be_written_has_no_script_for_what_is_read_after_its_end():
    with pytest.raises(NoReproducer, match="others hold the same values"):
        text_of("DLP011", Bytes(), NumPy(), code="numpy.frombuffer(x, dtype=numpy.float32)")


def test_many_bytes_that_stay_are_told_before_a_few_objects():
    left = {"objects_per_conversion": 1.0, "bytes_per_conversion": 4e6}
    assert "leaves bytes behind" in text_of("DLP010", lifetime=verdict("retained", **left))
    left["bytes_per_conversion"] = 300.0
    text = text_of("DLP010", lifetime=verdict("retained", **left))
    assert "leaves blocks of Python's memory behind" in text


@pytest.mark.parametrize("rule", ["DLP012", "DLP013", "DLP014", "DLP019"])
def test_where_alignment_decides_the_array_that_was_timed_is_made_again(rule):
    seen = {
        "ownership": verdict("copy", source_alignment_bytes=16),
        "alignment": verdict("dependent"),
    }
    assert "4097" not in text_of(rule)
    assert "4097" in text_of(rule, **seen)  # one element into a larger array


@pytest.mark.parametrize("name", ["convert", "converted", "before"])
def test_a_name_that_conversion_and_script_both_want_is_refused_in_words(name):
    setup = f"def {name}(array):\n    return array"
    with pytest.raises(NoReproducer, match=f"another use for '{name}'"):
        text_of("DLP014", code=f"{name}(x)", recipe=recipe_of(setup=setup))


def test_a_name_of_the_setup_that_the_conversion_does_not_use_is_left_out():
    text = text_of("DLP014", recipe=recipe_of(setup="def convert(array):\n    return [array]"))
    assert "[array]" not in text
    assert "def convert():" in text


def own_session(source):
    """A session of ``dlprof time`` whose setup makes the array ``source``."""
    numpy = Side("numpy", "numpy", ("builtin", "numpy"))
    setup = f"import numpy\n{source} = numpy.ones((64, 64), 'float32')"
    own = OwnCode(setup, source, "{x}", "numpy.array({x})", "buffer", numpy, numpy)
    [probe] = own_probes(own.reference())
    spec = ArraySpec((64, 64), "float32")
    made = recipe.measure(probe, probe, probe.imports[0], spec)
    case = case_of(probe, probe, spec, source=source, promise="view")
    first = path(f"numpy.array({source})", case=case, recipe=made)
    session = make_session(first, findings=[finding_of("DLP018", against=None)])
    return session.model_copy(update={"request": {"probe_files": [own.reference()]}})


@pytest.mark.parametrize(("source", "lines"), [("x", 0), ("image", 1)])
def test_an_array_of_a_setup_of_ones_own_is_made_by_the_setup_alone(source, lines):
    session = own_session(source)
    text = reproducer(session, session.findings[0]).text
    assert f"{source} = numpy.ones((64, 64), " in text
    assert "_made" not in text
    assert text.count(f"x = {source}") == lines
