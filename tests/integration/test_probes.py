"""Special cases of single frameworks, with the real ones.

A framework is imported when a test runs: few test processes need one.
"""

import numpy as np
import pytest
from test_probe_contract import make, names_with

from dlprof.probes.base import BITS, DTYPES, LAYOUTS, ArraySpec
from dlprof.probes.cupy import CuPy
from dlprof.probes.jax import Jax
from dlprof.probes.numpy import NumPy
from dlprof.probes.onnxruntime import OnnxRuntime
from dlprof.probes.tensorflow import TensorFlow
from dlprof.probes.torch import Torch
from dlprof.worker.instruments import ordering
from dlprof.worker.source_text import execute
from dlprof.worker.subject import LoadedPath, run_setups

pytestmark = pytest.mark.filterwarnings("ignore")

TRIES = 5


def queued(probe, spec, *amounts):
    """Return the names after queuing this much work on ``x``."""
    namespace = names_with(probe, spec)
    execute(probe.queue_setup(spec), namespace, "queue setup")
    for namespace["work"] in amounts:
        execute(probe.enqueue(spec), namespace, "enqueue")
    return namespace


@pytest.fixture
def jax():
    return pytest.importorskip("jax")


@pytest.mark.parametrize("dtype", ["bool", "bfloat16", "float32"])
def test_queued_work_of_jax_ends_with_the_values_of_x_and_is_compiled_once(jax, dtype):
    namespace = queued(Jax(), ArraySpec((4, 8), dtype), 1, 2, 3)
    assert namespace["y"].dtype == namespace["x"].dtype
    assert (namespace["y"] == namespace["x"]).all()
    assert namespace["jax_queue"]._cache_size() == 1


@pytest.fixture
def tensorflow():
    return pytest.importorskip("tensorflow")


@pytest.fixture
def asynchronous(tensorflow):
    """Let TensorFlow queue operations on the host, as it does on a GPU."""
    tensorflow.config.experimental.set_synchronous_execution(False)
    yield
    tensorflow.test.experimental.sync_devices()
    tensorflow.config.experimental.set_synchronous_execution(True)


@pytest.mark.parametrize("dtype", ["bool", "float32"])
@pytest.mark.usefixtures("asynchronous")
def test_queued_work_of_tensorflow_ends_with_the_values_of_x_and_is_traced_once(dtype):
    namespace = queued(TensorFlow(), ArraySpec((4, 8), dtype), 1, 2, 3)
    eval(TensorFlow().wait("cpu").format(x="y"), namespace)
    assert namespace["y"].dtype == namespace["x"].dtype
    assert (namespace["y"].numpy() == namespace["x"].numpy()).all()
    assert namespace["tf_queue"].experimental_get_tracing_count() == 1


def bound(name, x, dtype="float32"):
    """Return the names with ``x`` bound to an input of an onnxruntime session."""
    (import_,) = (way for way in OnnxRuntime.imports if way.name == name)
    namespace = {"x": x}
    execute(f"{OnnxRuntime.setup}\n{import_.setup}", namespace, "setup")
    eval(import_.code.format(x="x", dtype=dtype, shape="(4, 8)"), namespace)
    return namespace


@pytest.mark.parametrize(
    ("name", "framework"),
    [
        ("bind_cpu_input", "numpy"),
        ("bind_ortvalue_input", "numpy"),
        ("bind_input_torch_cpu", "torch"),
    ],
)
def test_a_session_reads_the_memory_that_was_bound(name, framework):
    pytest.importorskip("onnxruntime")
    made = pytest.importorskip(framework)
    x = made.ones((4, 8), dtype=made.float32)
    namespace = bound(name, x)
    x[...] = 7
    namespace["binding"].bind_output("y")
    namespace["session"].run_with_iobinding(namespace["binding"])
    assert (namespace["binding"].copy_outputs_to_cpu()[0] == 7).all()


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name != "readonly"])
def test_the_text_of_cupy_makes_what_numpy_makes(layout):
    # CuPy follows NumPy's interface, so its text is run with NumPy under its name.
    for dtype in (dtype for dtype in DTYPES if dtype not in BITS):
        spec = ArraySpec((4, 6), dtype, layout, "cuda")
        names = {"cupy": np}
        exec(CuPy().create(spec), names)
        ours, numpys = names["x"], make(NumPy(), ArraySpec((4, 6), dtype, layout))
        assert (ours.dtype.name, ours.strides) == (dtype, numpys.strides)
        assert ours.tolist() == numpys.tolist()


@pytest.mark.parametrize("way", [*CuPy.exports, *CuPy.imports], ids=lambda one: one.name)
def test_every_way_names_something_that_this_cupy_has(way):
    found = pytest.importorskip("cupy")
    name = way.code.partition("(")[0].replace("{x}", "cupy.ndarray")
    for part in name.split(".")[1:]:
        found = getattr(found, part)
    assert callable(found)


# Ordering of work queued on the host: JAX, and TensorFlow on request


def named(ways, name):
    return next(way for way in ways if way.name == name)


def order_of(producer, export, consumer, import_):
    """Return the verdict and its evidence. On a busy machine, ``unknown`` is measured again."""
    taken = named(consumer.imports, import_)
    namespace = run_setups(producer, consumer, taken)
    path = LoadedPath(producer, consumer, named(producer.exports, export), taken, namespace)
    case = path.subject(ArraySpec((64, 64), "float32"))
    for _ in range(TRIES):
        found = ordering.measure(case, None)
        if found["verdict"] != "unknown":
            break
    return found


@pytest.mark.parametrize(
    ("export", "consumer", "import_"),
    [("asarray", NumPy(), "asarray"), ("dlpack_capsule", Torch(), "from_dlpack")],
)
def test_taking_an_array_out_of_jax_waits_for_its_queue(jax, export, consumer, import_):
    pytest.importorskip(consumer.module)
    assert order_of(Jax(), export, consumer, import_)["verdict"] == "host-sync"


def test_an_array_that_stays_in_jax_is_not_waited_for(jax):
    found = order_of(Jax(), "array", Jax(), "asarray")
    assert found["verdict"] == "stream-ordered"
    assert found["evidence"]["values_right"] is True


@pytest.mark.parametrize("queues", [False, True], ids=["synchronous", "asynchronous"])
def test_tensorflow_waits_if_it_was_told_to_queue(tensorflow, request, queues):
    pytest.importorskip("torch")
    if queues:
        request.getfixturevalue("asynchronous")
    found = order_of(TensorFlow(), "to_dlpack", Torch(), "from_dlpack")
    assert found["verdict"] == ("host-sync" if queues else "synchronous")
