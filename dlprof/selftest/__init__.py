"""A framework that does nothing but misbehave on purpose, and probes for it.

For ``dlprof selftest`` and for tests of what is built on dlprof, as a mock transport is for a
client of the network. It runs on the host, needs NumPy, and queues its work on threads;
:mod:`dlprof.selftest.device` is the same on a CUDA device.
"""
