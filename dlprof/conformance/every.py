"""All checks: to import this module is to declare them."""

from __future__ import annotations

from dlprof.conformance import capsules, consumer, exchange, memory, ownership, producer
from dlprof.conformance.check import CHECKS

MODULES = (consumer, memory, ownership, producer, capsules, exchange)
__all__ = ["CHECKS", "MODULES"]
