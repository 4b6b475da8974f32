"""TensorFlow tensors on the host, as the probe makes and reads them."""

from __future__ import annotations

import ctypes

import pytest

from dlprof.probes.base import ArraySpec
from dlprof.probes.tensorflow import TensorFlow

pytestmark = [pytest.mark.integration, pytest.mark.filterwarnings("ignore")]

tf = pytest.importorskip("tensorflow")


@pytest.fixture
def asynchronous():
    """TensorFlow queues operations on the host as well, as it does on a GPU."""
    tf.config.experimental.set_synchronous_execution(False)
    yield
    tf.test.experimental.sync_devices()
    tf.config.experimental.set_synchronous_execution(True)


def namespace_with(dtype="float32", layout="C"):
    spec = ArraySpec((4, 8), dtype, layout)
    namespace = {"work": 3}
    exec(TensorFlow.setup, namespace)
    exec(TensorFlow().create(spec), namespace)
    return spec, namespace


def test_to_numpy_shows_memory_as_it_is_now():
    probe = TensorFlow()
    x = namespace_with()[1]["x"]
    probe.to_numpy(x)
    ctypes.memset(probe.pointer(x), 0, 128)
    assert not probe.to_numpy(x).any()


def test_a_tensor_of_a_dtype_without_dlpack_has_no_pointer():
    x = namespace_with("float8_e5m2")[1]["x"]
    assert TensorFlow().pointer(x) is None


def test_bfloat16_is_read_as_its_bits():
    x = namespace_with("bfloat16")[1]["x"]
    assert TensorFlow().to_numpy(x)[0, :3].tolist() == [0, 0x3F80, 0x4000]


def test_nothing_is_queued_or_waited_for_where_operations_run_at_once():
    assert TensorFlow().enqueue(ArraySpec((4, 8), "float32")) is None
    assert TensorFlow().wait("cpu") == ""


@pytest.mark.parametrize("dtype", ["bool", "uint16", "int32", "float32", "complex64"])
def test_queued_work_ends_with_the_values_of_x(asynchronous, dtype):
    spec, namespace = namespace_with(dtype)
    exec(TensorFlow().queue_setup(spec) + TensorFlow().enqueue(spec), namespace)
    assert namespace["y"].dtype == namespace["x"].dtype
    assert (namespace["y"].numpy() == namespace["x"].numpy()).all()


def test_queued_work_is_traced_once_for_any_amount(asynchronous):
    spec, namespace = namespace_with()
    exec(TensorFlow().queue_setup(spec), namespace)
    for namespace["work"] in (1, 2, 3):
        exec(TensorFlow().enqueue(spec), namespace)
    assert namespace["tf_queue"].experimental_get_tracing_count() == 1


def test_waiting_is_possible_where_operations_are_queued(asynchronous):
    spec, namespace = namespace_with()
    exec(TensorFlow().queue_setup(spec) + TensorFlow().enqueue(spec), namespace)
    eval(TensorFlow().wait("cpu").format(x="y"), namespace)
    assert namespace["y"].numpy().shape == spec.shape
