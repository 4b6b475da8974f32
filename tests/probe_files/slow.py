"""A framework whose first conversion takes more than a second, and no other."""

import runpy
from pathlib import Path

from dlprof.probes.base import Import, Protocol

Fake = runpy.run_path(str(Path(__file__).with_name("fake.py")))["Fake"]

SETUP = """
import ctypes, time

calls = []

def slow_at_first(x):
    if not calls:
        time.sleep(1.1)
    calls.append(1)
    return type(x).from_buffer_copy(x)
"""


class Slow(Fake):
    name = "slow"
    aliases = ()
    setup = SETUP
    imports = (Import("slow_at_first", (Protocol.NATIVE,), "slow_at_first({x})"),)
