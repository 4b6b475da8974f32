"""JAX's probe: where it queues its work."""

import subprocess
import sys

from dlprof.probes.base import ArraySpec
from dlprof.probes.jax import Jax

SCRIPT = """
import os
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
import jax, jax.numpy as jnp, numpy
work, x = 1, jax.device_put(numpy.ones(4), jax.devices()[1])
%s
jax_many = lambda z: z
%s
print(y.devices() == x.devices())
"""


def test_work_is_queued_on_the_device_of_its_array():
    spec = ArraySpec((4,), "float32", "C", "cuda")
    script = SCRIPT % (Jax().queue_setup(spec), Jax().enqueue(spec))
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"
