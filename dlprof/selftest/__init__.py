"""Frameworks that do nothing but misbehave on purpose, and probes for them.

For ``dlprof selftest`` and for tests of what is built on dlprof, as a mock transport is for a
client of the network. One runs on the host and queues its work on threads, the other ones on a CUDA
device. Both need NumPy.
"""
