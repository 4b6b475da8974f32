"""The simulated device: JAX is admitted, and uncomputed kernel output leads to no verdict."""

import os

import numpy
import pytest

from dlprof.device.cuda import SIMULATED_DEVICES, admit_jax
from dlprof.probes.numpy import NumPy
from dlprof.protocol.messages import verdict
from dlprof.worker import simulated
from dlprof.worker.simulated import NOT_COMPUTED, OnSimulatedDevice, compare_contents


class Device:
    """Instruments that read uncomputed values, or none."""

    reads = 0

    def uncomputed_reads(self):
        return self.reads


def judged(name, found, reads=1):
    device = Device()

    def instrument():
        device.reads += reads
        return found

    answer = compare_contents(name, device, instrument)
    return answer["verdict"], answer["evidence"].get("reason")


DIFFERENT = {"different": 1, "of": 64}


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("values", verdict("ok", {"changed": {}})),
        ("values", verdict("wrong", {"changed": {"values": DIFFERENT}})),
        ("values", verdict("wrong", {"changed": {"source": DIFFERENT, "after_write": DIFFERENT}})),
        ("values", verdict("wrong", {"changed": {"earlier_result": DIFFERENT}})),
        ("early_write", verdict("safe", {})),
        ("early_write", verdict("unsafe", {})),
    ],
)
def test_a_verdict_on_contents_is_neither_right_nor_wrong(name, found):
    assert judged(name, found) == ("unknown", NOT_COMPUTED)
    assert judged(name, found, reads=0) == (found["verdict"], None)


def test_answers_that_need_no_contents_stay():
    found = verdict("wrong", {"changed": {"dtype": ["int8", "int16"]}})
    assert judged("values", found)[0] == found["verdict"]


class Gathering(OnSimulatedDevice, NumPy):
    """A framework whose kernel would gather the elements of an array with gaps."""

    gpu = Device()

    def device(self, array):
        return "cuda"


@pytest.mark.parametrize("step", [1, 2])
def test_an_array_with_gaps_is_read_by_its_address(step, monkeypatch):
    monkeypatch.setattr(simulated, "device_values", lambda found: found.layout)
    read = Gathering().to_numpy(numpy.arange(24.0)[::step])
    assert isinstance(read, str) == (step > 1)


def test_jax_finds_the_simulated_device(monkeypatch):
    hardware = pytest.importorskip("jax._src.hardware_utils")
    monkeypatch.setattr(os.path, "exists", os.path.exists)
    monkeypatch.setenv(SIMULATED_DEVICES, "1")
    admit_jax()
    assert hardware.has_visible_nvidia_gpu()
