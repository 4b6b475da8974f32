"""What the wrappers share: the tracer of a process, and what is known by function and place."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dlprof.probes import capsule
from dlprof.tracer.arrays import LOOSE, Kind, Kinds
from dlprof.tracer.place import Places
from dlprof.tracer.rows import BYTES, TIME, UNKNOWN, Row, Rows


class Missing:
    """Stands for the array where a call has no argument by its place."""


MISSING = Missing()


class Way:
    """How the calls of one function convert arrays of one kind.

    It is special if the first argument is no array itself: a container, a capsule, a view, or an
    array that is given by the name of its argument.
    """

    __slots__ = (
        "address", "distant", "in_head", "is_busy", "is_special", "kept", "kind", "last", "sites",
    )  # fmt: skip

    def __init__(self, kind: Kind) -> None:
        self.kind, self.is_special = kind, kind.is_special
        self.address, self.in_head, self.is_busy = kind.address, kind.in_head, kind.is_busy
        self.kept = kind.kept
        self.sites: dict[int, Site] = {}
        """Calls from the user's own code, by the address of the instruction."""
        self.distant: dict[tuple[int, int, int], Site] = {}
        """Calls from a framework or a package."""
        self.last = site(None, -1, None)
        """The last call from the user's own code."""


Site = list[Any]
"""Where a call is made, and the array that was met there last: code object, instruction, row, type
of the result, how to see its address (None: in its head), dtype and shape of the source, numbers,
whether dtype and shape are looked up at the result, where they are the same, and the kind of the
result. It is taken apart at once, as that is the fastest.
"""
ROW, MADE = 2, 3


def site(code: Any, instruction: int, row: Any) -> Site:
    return [code, instruction, row, None, None, None, None, None, False, None]


CONTAINER, NAMED, OWN = (
    Way(replace(LOOSE, framework=name)) for name in ("container", "named", "own")
)
"""OWN is of an array that its own framework takes in by a capsule: it converts nothing."""


KEPT = "kept"
"""Stands for the form of a call whose array keeps a copy of itself on the host."""
NOWHERE = 1
"""An address that no array has."""


class Export:
    """A capsule that waits for its consumer.

    If arguments asked for a copy, the capsule holds other memory than the array's. That of the
    array may be free when the capsule is consumed, and be what a consumer copies to.
    """

    __slots__ = ("address", "is_busy", "key", "kind", "pointer", "row", "size", "took")

    def __init__(
        self,
        row: Row,
        kind: Kind,
        source: Any,
        made: Any,
        took: float,
        is_alone: bool,
        is_busy: bool | None,
    ) -> None:
        self.row, self.kind, self.took, self.is_busy = row, kind, took, is_busy
        self.key, self.size = kind.key(source), kind.nbytes(source)
        self.address = kind.address(source)
        held = None if is_alone else LOOSE.address(made)
        if held and self.address and held != self.address:
            self.address = NOWHERE
        self.pointer = pointer(made)
        row.device = row.device or kind.device(source)

    def flush(self) -> None:
        """Count it alone: what took it in was not traced."""
        size = self.size
        count(self.row.numbers(self.key, lambda: size), self.took, UNKNOWN, 0)
        self.row.consumer = "untraced"


def pointer(thing: Any) -> int | None:
    name = capsule.capsule_name(thing)
    return capsule.capsule_pointer(thing, name) if name else None


def count(numbers: list[Any], took: float, at: int, copied: int) -> None:
    numbers[TIME] += took
    numbers[at] += 1
    numbers[BYTES] += copied


class Tracer:
    """What all wrappers of a process share."""

    def __init__(self, places: Places, rows: Rows) -> None:
        self.places, self.rows, self.kinds = places, rows, Kinds()
        self.inside: set[int] = set()
        """Threads that are in a traced call."""
        self.capsules: dict[int, Export] = {}
        self.is_active = True
        self.calls: list[Any] = []
        """Of each function that is wrapped."""

    def tick(self, row: Any, began_s: float, took_ns: float) -> None:
        """Write the timeline and the file, after a call that was counted."""
        try:
            self.rows.tick(row, began_s, took_ns)
        except Exception as error:  # noqa: BLE001 - the tracer's own is not the program's
            self.rows.trouble("the file of the process", error)

    def stop(self) -> None:
        """A wrapper that is still held somewhere records no more."""
        self.is_active = False
        for calls in self.calls:
            calls.ways.clear()

    def begin_again(self) -> None:
        """In the child of a fork: nothing of the parent's is counted again."""
        self.inside.clear()
        self.capsules.clear()
        self.rows.begin()
        for calls in self.calls:
            calls.forget()

    def finish(self) -> None:
        for export in list(self.capsules.values()):
            export.flush()
        self.capsules.clear()
        self.rows.write(ended=True)
