"""Synthetic frameworks with planted faults, and probes for them; they need NumPy.

For ``dlprof selftest``, and for tests of code that is built on dlprof. One framework runs on the
host and queues its work on threads, the others run on a CUDA device.
"""
