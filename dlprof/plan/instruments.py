"""Which instruments of a worker are asked in which round."""

from __future__ import annotations

EVERY_ROUND = (
    "first_call",
    "ownership",
    "host_time",
    "ready_time",
    "phases",
    "device_time",
    "copy_cost",
)
FIRST_ROUND = (*EVERY_ROUND, "recipe", "values", "handshake", "fresh_source")

FIRST_CALL = ("first_call",)
"""What a process of its own measures of a case that was first in no other."""

IN_LOOPS = ("placement",)
"""In every round as well, where another placement than ``convert`` is asked for."""

STEP = ("host_time", "ready_time", "versus", "shape_change", "values", "reuse")
FIRST_STEP = (*STEP, "allocations")
"""Of steps of inference, which convert nothing. Counting takes long, and gives the same again."""

ALIGNMENT = ("alignment",)
"""Of the diagnosis what is asked where the rest is not wanted: without it a verdict tells only of
the addresses that the processes happened to have. It took 2 to 13 ms for each path on two
processors, quiet and loaded."""

TRACE = ("trace",)
