"""The faults that ``dlprof selftest`` plants, the rule that must find each, and the controls."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Plant:
    """One synthetic consumer: its ways in, and the rule that must find a fault in them.

    ``rule`` must find ``ways[0]``. It is None for a control, which gets no finding worse than an
    info. The other ways are innocent and use the protocol ``native``. On ``cuda``, producer and
    consumer can be put on ``any`` stream, or both stay on the ``default`` stream, or the consumer's
    stream is ``private``. One that is ``surveyed`` shows at small arrays only. The arrays of one
    that is ``immutable`` cannot be written.
    """

    name: str
    ways: tuple[str, ...]
    rule: str | None = None
    promise: str | None = None
    dtypes: tuple[str, ...] = ("float32",)
    layouts: tuple[str, ...] = ("C",)
    shape: tuple[int, ...] = (128, 96)
    protocol: str = "native"
    placements: tuple[str, ...] = ("convert",)
    device: str = "cpu"
    stream: str = "any"
    surveyed: bool = False
    immutable: bool = False

    @property
    def producer(self) -> str:
        return f"{self._family}-default" if self.stream == "default" else self._family

    @property
    def consumer(self) -> str:
        return f"{self._family}-{self.name}"

    @property
    def _family(self) -> str:
        return "synthetic" if self.device == "cpu" else f"synthetic-{self.device}"


LOOPS = ("in-loop", "hoisted")

_ANYWHERE = (
    Plant("view", ("view",)),
    Plant("both", ("copy", "view"), promise="copy"),
    Plant("view-in-loop", ("view",), placements=LOOPS),
    Plant("sync", ("sync", "view"), "DLP001"),
    Plant("device-sync", ("device_sync", "view"), "DLP002"),
    Plant("race", ("race",), "DLP003"),
    Plant("race-and-wait", ("race_and_wait",), "DLP003", promise="copy"),
    Plant("leak", ("leak",), "DLP010"),
    Plant("dangle", ("dangle",), "DLP011"),
    Plant("slow", ("slow", "view"), "DLP012"),
    Plant("slow-in-loop", ("slow",), "DLP014", placements=LOOPS),
    Plant("broken-promise", ("view",), "DLP018", promise="copy"),
    Plant("early", ("early",), "DLP019", promise="copy"),
    Plant("late", ("late",), "DLP020", promise="copy"),
)
_COSTLY_ON_HOST = (512, 384)
"""A copy of this shape costs much more than a view there, on a busy machine too."""


def _sorted(*plants: Plant) -> tuple[Plant, ...]:
    """Controls first."""
    return tuple(sorted(plants, key=lambda plant: plant.rule or ""))


PLANTS = _sorted(
    *_ANYWHERE,
    Plant("strided-view", ("view",), layouts=("C", "strided")),
    Plant("read-only-view", ("view",), layouts=("readonly",)),
    Plant("double-view", ("view",), dtypes=("float64",)),
    Plant("capsule", ("from_capsule",), promise="copy", protocol="dlpack-capsule"),
    Plant("copy", ("copy",), promise="copy"),
    Plant("queued-copy", ("queued_copy",), promise="copy"),
    Plant("avoidable-copy", ("copy", "view"), "DLP004", shape=_COSTLY_ON_HOST),
    Plant("copy-twice", ("copy_twice",), "DLP005", promise="copy"),
    Plant("narrow", ("narrow",), "DLP007", promise="copy", dtypes=("float64",)),
    Plant("wrong-strides", ("wrong_strides",), "DLP008", promise="copy"),
    Plant("change-source", ("change_source",), "DLP008", promise="copy"),
    Plant("one-buffer", ("one_buffer",), "DLP008", promise="copy"),
    Plant("stale", ("stale",), "DLP008", promise="copy"),
    Plant("lose-read-only", ("lose_read_only",), "DLP009", layouts=("readonly",)),
    Plant("asymmetric", ("view",), "DLP013"),
    Plant("retry", ("retry",), "DLP015", protocol="dlpack"),
    Plant("unversioned", ("unversioned",), "DLP023", protocol="dlpack", layouts=("readonly",)),
    Plant("legacy-capsule", ("legacy_capsule",), "DLP023", protocol="dlpack-capsule"),
    Plant("by-strides", ("by_strides",), "DLP023", protocol="dlpack"),
    Plant("take-along", ("take_along",), "DLP011"),
    Plant("keep-open", ("keep_open",), "DLP010"),
    Plant("lock", ("lock", "view"), "DLP022"),
    Plant("crash", ("crash",), "DLP016"),
    Plant("hang", ("hang",), "DLP016"),
    Plant(
        "copy-if-strided",
        ("copy_if_strided",),
        "DLP017",
        layouts=("C", "strided"),
        shape=_COSTLY_ON_HOST,
    ),
    Plant("surveyed-view", ("view",), surveyed=True),
    Plant("flush-denormals", ("flush_denormals",), "DLP008", promise="copy", surveyed=True),
    Plant("crash-if-empty", ("crash_if_empty",), "DLP016", surveyed=True),
    Plant("lose-byte-order", ("lose_byte_order",), "DLP008", surveyed=True),
    Plant("forget-mask", ("forget_mask",), "DLP021", surveyed=True),
    Plant("keep-refused", ("keep_refused",), "DLP010", surveyed=True),
    Plant("set-default", ("set_default",), "DLP025", surveyed=True),
    Plant("freeze", ("lock",), "DLP029", immutable=True),
    Plant("jam", ("jam",), "DLP026", surveyed=True),
    Plant("row-major", ("row_major", "view"), "DLP028", surveyed=True),
    Plant("refuse-oddly", ("asarray_no_copy", "asarray"), "DLP024", surveyed=True),
)

DEVICE_PLANTS = tuple(
    replace(plant, device="cuda")
    for plant in _sorted(
        *_ANYWHERE,
        Plant("queued-copy", ("copy",), promise="copy"),
        Plant("default-stream", ("race",), stream="default"),
        Plant("private-stream", ("view",), stream="private"),
        Plant("legacy-race", ("legacy_race",), "DLP003"),
        Plant("avoidable-copy", ("copy", "view"), "DLP004", shape=(4096, 8192)),
        Plant("to-host", ("to_host", "view"), "DLP027"),
        Plant("bounce", ("from_host", "view"), "DLP006", protocol="numpy"),
    )
)
