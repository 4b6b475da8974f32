"""Ordering on real frameworks that queue work on the CPU: JAX, and TensorFlow when asked to.

The machine may be busy: a measurement that cannot tell is repeated, and nothing is said of times.
"""

import pytest

from dlprof.probes.base import ArraySpec
from dlprof.probes.jax import Jax
from dlprof.probes.numpy import NumPy
from dlprof.probes.tensorflow import TensorFlow
from dlprof.probes.torch import Torch
from dlprof.worker.instruments import ordering
from dlprof.worker.subject import Path, namespace_for

pytestmark = pytest.mark.filterwarnings("ignore")

pytest.importorskip("jax")
pytest.importorskip("torch")

SPEC = ArraySpec((64, 64), "float32")
TRIES = 5


def named(ways, name):
    return next(way for way in ways if way.name == name)


def subject_of(producer, export, consumer, import_):
    taken = named(consumer.imports, import_)
    namespace = namespace_for(producer, consumer, taken)
    path = Path(producer, consumer, named(producer.exports, export), taken, namespace)
    return path.subject(SPEC)


def measured(*path):
    """The verdict, and the evidence of the last try."""
    case = subject_of(*path)
    for _ in range(TRIES):
        found = ordering.measure(case, None)
        if found["verdict"] != "unknown":
            break
    return found


@pytest.mark.parametrize(
    ("export", "consumer", "import_"),
    [("asarray", NumPy(), "asarray"), ("dlpack_capsule", Torch(), "from_dlpack")],
)
def test_taking_an_array_out_of_jax_waits_for_its_queue(export, consumer, import_):
    assert measured(Jax(), export, consumer, import_)["verdict"] == "host-sync"


def test_an_array_that_stays_in_jax_is_not_waited_for():
    found = measured(Jax(), "array", Jax(), "asarray")
    assert found["verdict"] == "stream-ordered"
    assert found["evidence"]["values_right"] is True


def test_a_producer_that_queues_nothing_is_synchronous():
    found = measured(NumPy(), "dlpack", Jax(), "from_dlpack")
    assert found["verdict"] == "synchronous"
    assert "before it returns" in found["evidence"]["reason"]


class TestTensorFlow:
    @pytest.fixture(params=[True, False], ids=["synchronous", "asynchronous"])
    def synchronous(self, request):
        config = pytest.importorskip("tensorflow").config.experimental
        before = config.get_synchronous_execution()
        config.set_synchronous_execution(request.param)
        yield request.param
        config.set_synchronous_execution(before)

    def test_it_waits_if_it_was_told_to_queue(self, synchronous):
        found = measured(TensorFlow(), "to_dlpack", Torch(), "from_dlpack")
        assert found["verdict"] == ("synchronous" if synchronous else "host-sync")
