"""CuPy and Numba run on the simulated driver unchanged, and wait where their sources say so."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from dlprof.simulated.build import driver_folder

pytestmark = pytest.mark.integration

PROGRAM = """
import ctypes, json, threading
import cupy, numpy
from numba import cuda

source = numpy.arange(1 << 16, dtype="float32")
x = cupy.asarray(source)
stream = cupy.cuda.Stream(non_blocking=True)
found = {"values": bool((x.get() == source).all())}


def behind_work(convert, released_after_s):
    # Work on the stream of y ends when it is released; the conversion stands behind it.
    released = threading.Event()
    timer = threading.Timer(released_after_s, released.set)
    with stream:
        y = cupy.asarray(source)
        stream.synchronize()
        stream.launch_host_func(lambda _: released.wait(), None)
        timer.start()
        result = convert(y)
        waited = released.is_set()
        timer.cancel()
        released.set()
        stream.synchronize()
    return {"waited": waited, "same": bool((result.copy_to_host() == source).all())}


@cuda.jit
def increase_all(values):
    at = cuda.grid(1)
    if at < values.size:
        values[at] += 1


def is_poisoned(array):
    return bool(driver.dlprofSimulatedPoisoned(ctypes.c_void_p(array.data.ptr), array.nbytes))


driver = ctypes.CDLL("libcuda.so.1")
y = cupy.asarray(source)
increase_all[256, 256](y)
cuda.synchronize()
found["poisoned"] = [is_poisoned(x), is_poisoned(y)]
found["synchronized"] = behind_work(lambda y: cuda.as_cuda_array(y), 0.2)
found["not synchronized"] = behind_work(lambda y: cuda.as_cuda_array(y, sync=False), 60)
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found():
    pytest.importorskip("cupy")
    environment = {**os.environ, "LD_LIBRARY_PATH": str(driver_folder())}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_arrays_of_cupy_keep_their_values(found):
    assert found["values"]


def test_numba_waits_for_the_stream_of_an_array_of_cupy(found):
    assert found["synchronized"] == {"waited": True, "same": True}


def test_numba_does_not_wait_if_it_is_told_not_to(found):
    assert found["not synchronized"] == {"waited": False, "same": True}


def test_a_kernel_of_numba_takes_time_and_poisons_its_arrays(found):
    assert found["poisoned"] == [False, True]
