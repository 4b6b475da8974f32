"""JAX is let in where the simulated driver is, and only there."""

import sys
import types

import pytest

from dlprof.worker.simulated import DEVICES, admit_jax


@pytest.fixture
def hardware(monkeypatch):
    module = types.ModuleType("jax._src.hardware_utils")
    module.has_visible_nvidia_gpu = lambda: False
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module


def test_jax_finds_the_simulated_device(hardware, monkeypatch):
    monkeypatch.setenv(DEVICES, "1")
    admit_jax()
    assert hardware.has_visible_nvidia_gpu()


def test_jax_looks_for_itself_elsewhere(hardware, monkeypatch):
    monkeypatch.delenv(DEVICES, raising=False)
    admit_jax()
    assert not hardware.has_visible_nvidia_gpu()
