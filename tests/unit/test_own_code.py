"""Probes made of a user's own text."""

from __future__ import annotations

import pytest
from builders import Silent, make_catalog, make_probe_info, make_subject, make_way

from dlprof.plan import pairing
from dlprof.plan.pairing import Axes
from dlprof.probes.base import ArraySpec, Unsupported
from dlprof.protocol.statement import OwnCode, Side
from dlprof.runner.merge import merge
from dlprof.worker import loading
from dlprof.worker.instruments import (
    early_write,
    fresh_source,
    lifetime,
    times,
    values,
)

pytestmark = pytest.mark.unit

NUMPY = Side("numpy", "numpy", ("builtin", "numpy"))
SETUP = "import numpy; a = numpy.arange(12, dtype='float32').reshape(3, 4)"


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
    return OwnCode(**(fields | changes))


def subject(setup=SETUP, shape=(3, 4), dtype="float32", **changes):
    (probe,) = loading.load(own(setup, **changes).reference())
    return make_subject(
        producer=probe, consumer=probe, import_=probe.imports[0], spec=ArraySpec(shape, dtype)
    )


def test_a_reference_is_read_as_it_was_written():
    written = own(consumer=Side("other", "builtins"), result_device="cpu", returns_array=False)
    assert OwnCode.read(written.reference()) == written


def test_the_setup_makes_the_source():
    assert subject().source.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]


def test_another_array_is_a_setup_run_anew():
    found = subject()
    assert found.make_another() is not found.source
    assert found.make_another().tolist() == found.source.tolist()


def test_a_setup_that_gives_the_same_array_gives_no_other():
    found = subject(KEPT)
    with pytest.raises(Unsupported, match="gives the same array each time"):
        found.make_another()


KEPT = (
    "import sys, numpy\n"
    "if not hasattr(sys, '_dlprof_test'): sys._dlprof_test = numpy.arange(12.).astype('f4').reshape(3, 4)\n"
    "a = sys._dlprof_test"
)


def test_functions_of_the_setup_keep_their_own_x():
    setup = f"{SETUP}\nx = 5\ndef convert(array): return array * x"
    assert subject(setup, import_="convert({x})").convert()[0, 1] == 5


def test_braces_of_the_users_own_are_left_alone():
    text = "numpy.array({x}, dtype='{{dtype}} {{shape}}'.format(dtype='float32', shape='').strip())"
    assert subject(import_=text).convert().shape == (3, 4)
    way, source = make_way(code=text), make_way(array="a")
    path = pairing.Path(source, way, "array-interface", "")
    assert path.written("float32", (3, 4)) == (
        "numpy.array(a, dtype='{dtype} {shape}'.format(dtype='float32', shape='').strip())"
    )


def test_instruments_take_the_array_as_it_is():
    found = subject()
    assert lifetime.measure(found, None, Silent())["verdict"] == "safe"
    assert fresh_source.measure(found, 1)["verdict"] == "not kept"
    assert early_write.measure(found)["evidence"]["sizes_bytes"] == {"48": "whole"}


def test_a_source_of_unknown_size_has_no_lifetime():
    own_dtype = "import numpy; a = numpy.zeros(3, dtype=[('f', 'f4')])"
    side = Side("other", "builtins", wait="{x}.__array_interface__")
    found = subject(own_dtype, shape=(3,), dtype="unknown", producer=side, consumer=side)
    with pytest.raises(Unsupported, match="nothing tells how many bytes"):
        lifetime.measure(found, None, Silent())


def test_equal_values_prove_nothing():
    found = values.measure(subject("import numpy; a = numpy.ones((3, 4), 'float32')"))
    assert (found["verdict"], found["evidence"]["changed"]) == ("unknown", {})
    assert "all values of the source are equal" in found["evidence"]["reason"]


def test_a_statement_in_one_piece_has_no_export_of_its_own():
    found = times.phases(subject(), 100, 1000)
    assert (found["export_ns"], found["import_ns"]) == (None, None)
    assert found["release_ns"] is not None


def test_phases_that_no_process_knows_are_kept_as_unknown():
    part = {
        "phases": {"export_ns": None, "import_ns": None, "release_ns": 5.0, "resolution_ns": 1.0}
    }
    answer = {"status": "ok", "reason": None, "parts": part, "failures": []}
    record = make_catalog_case().record()
    result = merge(record, [(0, answer), (1, answer)], 2)
    assert result.status == "ok"
    assert (result.phases.export_ns, result.phases.release_ns) == (None, 5.0)


def make_catalog_case():
    export = make_way("array", code="{x}", array="tensor")
    probe = make_probe_info(
        source="code:{}", exports=[export], imports=[make_way("statement", code="f({x})")]
    )
    (case,) = pairing.cases([(probe, probe)], make_catalog(probe), Axes(device="cpu"))
    return case


def test_the_device_is_where_the_setup_made_the_array():
    case = make_catalog_case()
    pairs = [(case.producer, case.consumer)]
    found = pairing.targets(pairs, make_catalog(), pairing.Axes(device="cpu"))
    assert found.device_reasons == "on cpu: where the setup made the array"
