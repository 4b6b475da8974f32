"""What became of the array? Rules on its device, its layout, and who else can write it."""

from __future__ import annotations

from collections.abc import Iterator

from dlprof.judge.case_view import CaseView, seen
from dlprof.judge.cases import Cases, groups
from dlprof.judge.rule import Rule, expect, finding, or_a_copy, replacements
from dlprof.judge.script import Effect, Subject, shows
from dlprof.judge.standards import NOT_MUTATED, SAME_DEVICE, SAME_ORDER
from dlprof.probes.base import ANY_DEVICE
from dlprof.runner.session import FindingRecord, Result

ON = {"cpu": "the host", "cuda": "the device"}


def device_changed(cases: Cases) -> Iterator[FindingRecord]:
    """The result is on another device than the source, and no code asks for that."""
    moved = [case for case in cases.cases if _is_moved(case)]
    for found in groups(moved, lambda case: (case.way_in, case.result_device)):
        result, source = found[0].result_device or "", found[0].result.case.device
        yield finding(
            found,
            ("moves", "move"),
            f"the array from {ON[source]} to {ON[result]}",
            evidence={"source_device": source, "result_device": result},
            advice=replacements(cases, found, "stays there", lambda other: other.stays_on_device),
        )


def _is_moved(case: CaseView) -> bool:
    """Whether every process found the result elsewhere, although it should be with the source."""
    declared = {evidence.declared_device for _, evidence in case.kinds_seen}
    here = case.result.case.device
    return declared == {here} and case.result_device not in (None, here) and here in ANY_DEVICE


MOVED = """
def device_type(array):  # DLPack's: 1 for the host, 2 for CUDA
    if hasattr(array, "__dlpack_device__"):
        return array.__dlpack_device__()[0]
    return 2 if hasattr(array, "__cuda_array_interface__") else 1

<create>
<convert of y>
devices = device_type(x), device_type(y)
print("DLPack's device type of x is %d, that of y is %d" % devices)
return devices[0] != devices[1]
"""


def order_changed(cases: Cases) -> Iterator[FindingRecord]:
    """It copies column-major order into row-major order; another path is a view that keeps it."""
    changed = [
        case
        for case in cases.cases
        if _orders(case) == ("F", "C")
        and any(_is_view_in_order(other) for other in cases.arrays[case.array])
    ]
    for found in groups(changed, lambda case: case.way_in):
        yield finding(
            found,
            ("makes", "make"),
            "row-major order of column-major order",
            evidence={"source_order": "F", "result_order": "C"},
            advice=replacements(cases, found, "keeps the order", _is_view_in_order),
        )


def _orders(case: CaseView) -> tuple[str, str] | None:
    found = {evidence.orders for _, evidence in seen(case.result.values)}
    return found.pop() if len(found) == 1 else None


def _is_view_in_order(case: CaseView) -> bool:
    return case.kind == "view" and _orders(case) == ("F", "F")


ORDER = """
def is_column_major(array):
    strides = array.stride() if hasattr(array, "stride") else array.strides
    return strides[0] < strides[1]

<create>
<convert of y>
orders = is_column_major(x), is_column_major(y)
print("column-major order: x %s, y %s" % orders)
return orders == (True, False)
"""


def immutable_shared(cases: Cases) -> Iterator[FindingRecord]:
    """An array that its framework takes for immutable shares memory that the source can write."""
    views = [case for case in cases.cases if _can_be_written_elsewhere(case)]
    for found in groups(views, lambda case: case.pair):
        yield finding(
            found,
            ("returns an immutable array that shares", "return immutable arrays that share"),
            "writable memory with x",
            evidence={"source_writable": True, "result_writable": False},
            more="A write to x changes the result.",
            advice=or_a_copy(cases, found[0], "Do not write x while the result is in use."),
        )


def _can_be_written_elsewhere(case: CaseView) -> bool:
    is_shared = case.writable.source is True and case.kind == "view"
    return is_shared and case.writable.immutable is True and case.promise != "copy"


IMMUTABLE = """
<create>
<convert of y>
before = <values of y>
<write of x>
after = <values of y>
changed = <differing>
print(changed, "of", before.size, "values of y changed with a write to x")
return changed > 0
"""


def not_mutated(_: FindingRecord, result: Result) -> str:
    text = "The values of an immutable array do not change."
    return f"{text} {NOT_MUTATED.get(result.case.consumer, '')}".strip()


def show_immutable_shared(subject: Subject, _: Subject | None, __: FindingRecord) -> Effect:
    create = subject.create("view")
    return subject.shown("is immutable and changes with a write to x", IMMUTABLE, create=create)


RULES = (
    Rule(
        "DLP027",
        "device-changed",
        "warning",
        device_changed,
        expect("The result is on the device of its source.", SAME_DEVICE),
        shows("moves the array to another device", MOVED),
        "ownership",
        changes=("device of the result",),
    ),
    Rule(
        "DLP028",
        "order-changed",
        "info",
        order_changed,
        expect(f"The result has the order of its source. {SAME_ORDER}"),
        shows("makes row-major order of column-major order", ORDER),
        "values",
    ),
    Rule(
        "DLP029",
        "immutable-shared",
        "info",
        immutable_shared,
        not_mutated,
        show_immutable_shared,
        "ownership",
    ),
)
