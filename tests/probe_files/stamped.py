"""The fake framework with a conversion that writes its start and end into a file.

A user's setup names the file: ``stamps = open(PATH, "ab")``. It may set ``breaks``: the conversion
of this number ends the process; with ``hangs`` it never returns.
"""

import runpy
from pathlib import Path

from dlprof.probes.base import Import, Protocol

Fake = runpy.run_path(str(Path(__file__).with_name("fake.py")))["Fake"]

SETUP = """
import ctypes, os, threading, time

stamps, count, breaks, hangs = None, 0, None, None

def stamped(x):
    global count
    count += 1
    if count == breaks:
        os.abort()
    if count == hangs:
        threading.Event().wait()
    begin = time.monotonic_ns()
    while time.monotonic_ns() - begin < 100_000:
        pass
    end, where = time.monotonic_ns(), sorted(os.sched_getaffinity(0))
    os.write(stamps.fileno(), f"{begin} {end} {where}\\n".encode())
    return type(x).from_buffer(x)
"""


class Stamped(Fake):
    name = "stamped"
    aliases = ()
    setup = SETUP
    imports = (
        Import("view", (Protocol.NATIVE,), "stamped({x})"),
        Import("copy", (Protocol.NATIVE,), "type(stamped({x})).from_buffer_copy({x})"),
    )
