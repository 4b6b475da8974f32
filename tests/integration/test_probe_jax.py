"""JAX arrays on the host, as the probe makes and reads them."""

from __future__ import annotations

import ctypes

import pytest

from dlprof.probes.base import ArraySpec, Unsupported
from dlprof.probes.jax import Jax
from dlprof.worker.subject import check_source

pytestmark = [pytest.mark.integration, pytest.mark.filterwarnings("ignore")]

jax = pytest.importorskip("jax")


def namespace_with(dtype="float32", layout="C"):
    spec = ArraySpec((4, 8), dtype, layout)
    namespace = {"work": 3}
    exec(Jax.setup, namespace)
    exec(Jax().create(spec), namespace)
    return spec, namespace


def test_to_numpy_shows_memory_as_it_is_now():
    probe = Jax()
    x = namespace_with()[1]["x"]
    probe.to_numpy(x)
    ctypes.memset(probe.pointer(x), 0, 128)
    assert not probe.to_numpy(x).any()


def test_bfloat16_is_read_as_its_bits():
    x = namespace_with("bfloat16")[1]["x"]
    assert Jax().to_numpy(x)[0, :3].tolist() == [0, 0x3F80, 0x4000]


@pytest.mark.parametrize("dtype", ["int64", "uint64", "float64", "complex128"])
def test_an_array_that_jax_narrows_is_refused_under_its_wide_name(dtype):
    if jax.config.jax_enable_x64:
        pytest.skip("JAX_ENABLE_X64 is set")
    spec, namespace = namespace_with(dtype)
    with pytest.raises(Unsupported, match=f"jax made dtype .* when asked for {dtype}"):
        check_source(Jax(), spec, namespace["x"])


def test_an_array_stays_on_the_device_it_was_made_for():
    assert namespace_with()[1]["x"].committed


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "bfloat16", "float32", "complex64"])
def test_queued_work_ends_with_the_values_of_x(dtype):
    spec, namespace = namespace_with(dtype)
    exec(Jax().queue_setup(spec) + Jax().enqueue(spec), namespace)
    assert namespace["y"].dtype == namespace["x"].dtype
    assert (namespace["y"] == namespace["x"]).all()


def test_queued_work_is_compiled_once_for_any_amount():
    spec, namespace = namespace_with()
    exec(Jax().queue_setup(spec), namespace)
    for namespace["work"] in (1, 2, 3):
        exec(Jax().enqueue(spec), namespace)
    assert namespace["jax_queue"]._cache_size() == 1
