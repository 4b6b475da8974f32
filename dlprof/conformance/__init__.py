"""Does a framework follow DLPack 1.3 and the Python array API standard, as producer and consumer?

A check is a function of a framework. It runs in a worker, and its own text is the reproducer.
"""

from __future__ import annotations

from dlprof.conformance import consumer, exchange, memory, ownership, producer
from dlprof.conformance.check import CHECKS

__all__ = ["CHECKS", "consumer", "exchange", "memory", "ownership", "producer"]
