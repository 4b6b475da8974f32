"""A framework that blocks at a gate, so that a test can stop dlprof at a known place.

The first process passes ``gate``; each later process waits there until the file ``open`` is in
the folder DLPROF_TEST_GATE. Each leaves a file ``process-<its number>``.
"""

import runpy
from pathlib import Path

from dlprof.probes.base import Import, Protocol

Fake = runpy.run_path(str(Path(__file__).with_name("fake.py")))["Fake"]

SETUP = """
import ctypes, os, time

folder = os.environ["DLPROF_TEST_GATE"]
through = []

def arrive():
    open(os.path.join(folder, f"process-{os.getpid()}"), "w").close()
    return sum(name.startswith("process-") for name in os.listdir(folder))

def gate(x):
    if not through:
        rank = arrive()
        while rank > 1 and not os.path.exists(os.path.join(folder, "open")):
            time.sleep(0.01)
        through.append(rank)
    return type(x).from_buffer_copy(x)
"""


class Gate(Fake):
    name = "gate"
    aliases = ()
    setup = SETUP
    imports = (
        *Fake.imports,
        Import("gate", (Protocol.NATIVE,), "gate({x})"),
    )
