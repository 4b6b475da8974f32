"""The faults that ``dlprof selftest`` plants on a CUDA device, with streams, and the controls.

Those of :mod:`dlprof.selftest.faults`, and those that need a device.
"""

from __future__ import annotations

from dataclasses import replace

from dlprof.selftest.faults import LOOPS, Plant

BIG = (4096, 8192)
"""Of float32, 128 MiB: to copy it takes a fast device tens of microseconds, several times what a
view costs the host."""

_PLANTS = (
    Plant("view", ("view",)),
    Plant("queued-copy", ("copy",), promise="copy"),
    Plant("both", ("copy", "view"), promise="copy"),
    Plant("default-stream", ("race",), stream="default"),
    Plant("private-stream", ("view",), stream="private"),
    Plant("strided-view", ("view",), layouts=("C", "strided")),
    Plant("read-only-view", ("view",), layouts=("readonly",)),
    Plant("double-view", ("view",), dtypes=("float64",)),
    Plant("sync", ("sync", "view"), "DLP001"),
    Plant("device-sync", ("device_sync", "view"), "DLP002"),
    Plant("race", ("race",), "DLP003"),
    Plant("race-and-wait", ("race_and_wait",), "DLP003", promise="copy"),
    Plant("legacy-race", ("legacy_race",), "DLP003"),
    Plant("avoidable-copy", ("copy", "view"), "DLP004", shape=BIG),
    Plant("bounce", ("from_host", "view"), "DLP006", protocol="numpy"),
    Plant("narrow", ("narrow",), "DLP007", promise="copy", dtypes=("float64",)),
    Plant("wrong-strides", ("wrong_strides",), "DLP008"),
    Plant("lose-read-only", ("lose_read_only",), "DLP009", layouts=("readonly",)),
    Plant("leak", ("leak",), "DLP010"),
    Plant("dangle", ("dangle",), "DLP011"),
    Plant("slow", ("slow", "view"), "DLP012"),
    Plant("asymmetric", ("view",), "DLP013"),
    Plant("slow-in-loop", ("slow",), "DLP014", placements=LOOPS),
    Plant("view-in-loop", ("view",), placements=LOOPS),
    Plant("retry", ("retry",), "DLP015", protocol="dlpack"),
    Plant("crash", ("crash",), "DLP016"),
    Plant("hang", ("hang",), "DLP016"),
    Plant("copy-if-strided", ("copy_if_strided",), "DLP017", layouts=("C", "strided"), shape=BIG),
    Plant("broken-promise", ("view",), "DLP018", promise="copy"),
    Plant("early", ("early",), "DLP019", promise="copy"),
    Plant("late", ("late",), "DLP020", promise="copy"),
)

PLANTS = tuple(replace(plant, device="cuda") for plant in _PLANTS)

NOT_PLANTED = {
    "DLP005": "planted on the host: peak memory is measured there",
}
"""Rules for which nothing can be planted on a device, and why."""
