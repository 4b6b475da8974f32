"""Versions: of frameworks, and of the libraries that do their work."""

from dlprof.probes.base import Probe
from dlprof.probes.jax import Jax
from dlprof.runner.session import Environment
from dlprof.worker.inspect import describe

KNOWN = {
    "packages": {"numpy": "2.4", "worker": "1.5", "onnxruntime-gpu": "1.2", "a-tvm-ffi": "0.1"},
    "libraries": {"worker": "numpy"},
}


def test_a_library_is_listed_with_its_framework():
    known = Environment.model_validate(KNOWN)
    assert known.distributions(["numpy"]) == [("numpy", "2.4"), ("worker", "1.5")]
    assert known.distributions(["onnxruntime"]) == [("onnxruntime-gpu", "1.2")]
    assert known.distributions(["tvm-ffi"]) == [("a-tvm-ffi", "0.1")]
    assert known.distributions(["N"]) == []  # a language
    assert known.distributions(["Num.Box"]) == [("numpy", "2.4")]


def test_a_probe_names_the_libraries_that_are_installed():
    assert "jaxlib" in Jax.also

    class Working(Probe):
        name = module = "working"
        distributions = ("pytest",)
        also = ("pluggy", "no-such-distribution")

    assert list(describe(Working(), "builtin")["also"]) == ["pluggy"]
