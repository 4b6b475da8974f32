"""``dlprof selftest``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from dlprof.cli.options import Given, takes
from dlprof.cli.streams import show
from dlprof.errors import FindingsFailed, Unsure
from dlprof.plan import options as every

DEVICES = replace(
    every.DEVICES,
    help="Where to plant: cpu, cuda or simulated.",
    meaning="on the host, and on a GPU where there is one",
    details="",
)


@takes(DEVICES, every.PYTHON)
def selftest(*, given: Given) -> None:
    """Plant known faults on this machine and say which are found."""
    from dlprof.measuring.selftest import plants_for, run
    from dlprof.plan.axes import simulated_in
    from dlprof.reports.machine import selftest_document
    from dlprof.runner.progress import Bar
    from dlprof.session.files import temporary_folder

    values = given.settled()
    device = None if values["devices"] == ("auto",) else values["devices"][0]
    plants, no_streams = plants_for(values["python"], device)
    with temporary_folder("faults are planted") as folder, Bar() as bar:
        simulated = simulated_in(values["devices"])
        found = run(values["python"], Path(folder), bar, plants, simulated)
    show(selftest_document(found, no_streams, simulated > 0))
    if not found.passed:
        raise FindingsFailed(
            "the self-test failed: do not rely on what it missed or reported falsely here"
        )
    if found.unmeasured:
        raise Unsure("the self-test is not complete: some of what was planted was not measured")
