"""Probes made of a user's own text, and instruments' answers for the user's array."""

import pytest
from builders import Silent, make_subject

from dlprof.probes.base import ArraySpec, Unsupported
from dlprof.protocol.statement import Side, UserCode
from dlprof.worker import loading
from dlprof.worker.instruments import early_write, fresh_source, lifetime, values

NUMPY = Side("numpy", "numpy", ("builtin", "numpy"))
SETUP = "import numpy; a = numpy.arange(12, dtype='float32').reshape(3, 4)"
KEPT = (
    "import sys, numpy\n"
    "if not hasattr(sys, '_dlprof_test'): sys._dlprof_test = numpy.arange(12.).reshape(3, 4)\n"
    "a = sys._dlprof_test.astype('f4', copy=False)"
)


def own(setup=SETUP, **changes):
    fields = {
        "setup": setup,
        "source": "a",
        "export": "{x}",
        "import_": "numpy.array({x})",
        "protocol": "array-interface",
        "producer": NUMPY,
        "consumer": NUMPY,
    }
    return UserCode(**(fields | changes))


def subject(setup=SETUP, shape=(3, 4), dtype="float32", **changes):
    (probe,) = loading.load(UserCode.reference([own(setup, **changes)]))
    return make_subject(
        producer=probe, consumer=probe, import_=probe.imports[0], spec=ArraySpec(shape, dtype)
    )


def test_the_setup_makes_the_source_and_runs_again_for_another_array():
    found = subject()
    assert found.source.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    assert found.make_another() is not found.source
    assert found.make_another().tolist() == found.source.tolist()


def test_a_setup_that_repeats_its_array_gives_no_other():
    found = subject(KEPT.replace(".astype('f4', copy=False)", ""), dtype="float64")
    with pytest.raises(Unsupported, match="same array"):
        found.make_another()


def test_instruments_take_the_array_as_it_is():
    found = subject()
    assert lifetime.measure(found, None, Silent())["verdict"] == "safe"
    assert fresh_source.measure(found, 1)["verdict"] == "not kept"
    assert early_write.measure(found)["evidence"]["sizes_bytes"] == {"48": "whole"}


def test_equal_values_prove_nothing():
    found = values.measure(subject("import numpy; a = numpy.ones((3, 4), 'float32')"))
    assert (found["verdict"], found["evidence"]["changed"]) == ("unknown", {})
    assert "equal" in found["evidence"]["reason"]
