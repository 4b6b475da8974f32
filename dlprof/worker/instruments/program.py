"""Program: one conversion of a user's program, by what it says and by what is in its memory.

A verdict needs answers that agree. Page faults and disturbed samples are not counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from dlprof.probes.base import ArraySpec, Import, Unsupported, numbers
from dlprof.protocol.messages import verdict
from dlprof.worker import memory, timer
from dlprof.worker.channel import Reply
from dlprof.worker.instruments import copy_cost, lifetime
from dlprof.worker.instruments.values import unequal
from dlprof.worker.program import Program, ProgramProbe
from dlprof.worker.turns import Turns

PART_ELEMENTS = 1 << 22
CONTROL_CALLS = 20
"""Conversions after which a result must be the same while its source lives."""


@dataclass
class Conversion:
    """One path of the program on the array of ``spec``, which is made at ``address``."""

    program: Program
    path: int
    spec: ArraySpec
    address: int = 0

    def make(self) -> None:
        shape, dtype = list(self.spec.shape), self.spec.dtype
        self.address = self.program.ask("make", shape=shape, dtype=dtype)["address"]

    def fill(self, *, shifted: bool = False) -> None:
        """Write known values into the source."""
        for begin, values in _parts(replace(self.spec, shifted=shifted)):
            self.program.write(self.address + begin * values.itemsize, values.tobytes())

    def look(self) -> dict[str, Any]:
        """Convert once. Raises :class:`Unsupported` if the answer cannot be used as proof."""
        if not self.spec.elements:
            raise Unsupported("an array without elements has no memory to look at")
        found = self.program.ask("look", path=self.path)
        if found["sees_write"] != (found["address"] == self.address):
            raise Unsupported("address and write contradict each other")
        return found

    def look_at_known(self) -> dict[str, Any]:
        """Make a source of known values, and convert it. It has these values afterwards, too."""
        self.make()
        self.fill()
        found = self.look()
        self.fill()
        return found

    def different(self, address: int) -> int:
        """Count the values at ``address`` that are not those of the source."""
        import numpy

        count = 0
        for begin, values in _parts(self.spec):
            data = self.program.read(address + begin * values.itemsize, values.nbytes)
            if data != values.tobytes():
                count += int(unequal(values, numpy.frombuffer(data, values.dtype)).sum())
        return count


def measure(
    probe: ProgramProbe,
    import_: Import,
    spec: ArraySpec,
    request: dict[str, Any],
    reply: Reply,
    cases_before: int,
) -> tuple[str, str | None]:
    """Run the wanted instruments that a program can answer."""
    names, program = request["instruments"], probe.program
    if names == ["alignment"]:
        return "ok", None
    if spec.layout != "C" or spec.device != "cpu":
        raise Unsupported("a program makes contiguous arrays on the host")
    memory.check_room(spec)
    reply.stage("create")
    path = [way.name for way in probe.imports].index(import_.name)
    conversion = Conversion(program, path, spec)
    conversion.make()
    reply.stage("first call")
    first = program.time(path, 1)
    if "first_call" in names:
        reply.part("first_call", {"ns": first, "cases_before": cases_before})

    take = reply.take
    take("host_time", lambda: _host_time(conversion, request, reply))
    take("values", lambda: _values(conversion))
    owned = take("ownership", lambda: _ownership(conversion))
    if owned and owned["verdict"] == "copy":
        take("copy_cost", lambda: copy_cost.measure(spec.size_bytes, request["budget_ns"]))
    take("lifetime", lambda: _lifetime(conversion))
    if "host_time" in reply.failures:
        return "unsupported", reply.failures["host_time"]
    return "ok", None


def _host_time(conversion: Conversion, request: dict[str, Any], reply: Reply) -> dict[str, Any]:
    program, path, turns = conversion.program, conversion.path, None
    if options := request.get("turns"):
        turns = Turns(reply.channel, reply.identity, **options)
        turns = replace(turns, name="host time", program=program.pid)
    timing = timer.sample(
        partial(program.time, path), request["budget_ns"], once_from_ns=timer.LONG_NS, turns=turns
    )
    return asdict(replace(timing, page_faults_per_call=None, disturbed=None))


def _values(conversion: Conversion) -> dict[str, Any]:
    found, spec = conversion.look_at_known(), conversion.spec
    pairs = {"shape": [[*spec.shape], found["shape"]], "dtype": [spec.dtype, found["dtype"]]}
    changed: dict[str, Any] = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
    if not changed and (different := conversion.different(found["address"])):
        changed["values"] = {"different": different, "of": spec.elements}
    return verdict("wrong" if changed else "ok", {"changed": changed})


def _ownership(conversion: Conversion) -> dict[str, Any]:
    conversion.make()
    found = conversion.look()
    conversion.program.read(found["address"], 1)
    is_view = found["sees_write"]
    evidence = {"result_device": "cpu", "same_address": is_view, "source_write_shows": is_view}
    return verdict("view" if is_view else "copy", evidence)


def _lifetime(conversion: Conversion) -> dict[str, Any]:
    for size in (lifetime.SMALL_BYTES, lifetime.LARGE_BYTES, lifetime.SIZE_BYTES):
        evidence = _without_source(replace(conversion, spec=conversion.spec.of_bytes(size)))
        if evidence["changed_after_drop"] is not False:
            return verdict("dangling", evidence)
    return verdict("safe", evidence)


def _without_source(trial: Conversion) -> dict[str, Any]:
    """Return evidence of a result that is read after its source's memory was used again."""
    result, program = trial.look_at_known()["address"], trial.program
    if trial.different(result):
        raise Unsupported("its values are wrong before its source is dropped")
    # Other conversions of a living source are the control.
    trial.fill(shifted=True)
    program.time(trial.path, CONTROL_CALLS)
    trial.fill()
    if trial.different(result):
        raise Unsupported("other conversions change its result, although its source lives")
    program.ask("drop", what="source")
    trial.make()
    trial.fill(shifted=True)
    try:
        return {"changed_after_drop": trial.different(result) > 0}
    except Unsupported as error:  # the system has the memory back
        return {"changed_after_drop": None, "error_after_drop": str(error)}


def _parts(spec: ArraySpec) -> Iterator[tuple[int, Any]]:
    """Yield the values of a source as arrays of NumPy, each with the index of its first value."""
    import numpy

    pattern = numbers(spec)
    count = min(spec.elements, max(1, PART_ELEMENTS // pattern.modulus) * pattern.modulus)
    text = pattern.text(f"numpy.arange({count})", count)
    values = eval(text, {"numpy": numpy}).astype(spec.dtype)  # noqa: S307 - our own
    for begin in range(0, spec.elements, max(count, 1)):
        yield begin, values[: spec.elements - begin]
