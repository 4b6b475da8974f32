"""The fake framework with conversions that a test makes slower, or breaks, for one interpreter.

DLPROF_TEST_SPIN: turns of a loop inside each conversion. DLPROF_TEST_BREAK: ``crash`` kills the
process in ``copy``, ``copies`` makes ``view`` copy, ``gone`` leaves ``copy`` out.
"""

import os
import runpy
from pathlib import Path

from dlprof.probes.base import Import, Protocol

Fake = runpy.run_path(str(Path(__file__).with_name("fake.py")))["Fake"]

SETUP = """
import ctypes, os

def spun(result, turns=int(os.environ.get("DLPROF_TEST_SPIN", "0"))):
    for _ in range(20 + turns):
        pass
    return result

def view(x, broken=os.environ.get("DLPROF_TEST_BREAK") == "copies"):
    return type(x).from_buffer_copy(x) if broken else type(x).from_buffer(x)

def copy(x, broken=os.environ.get("DLPROF_TEST_BREAK") == "crash"):
    return os.abort() if broken else type(x).from_buffer_copy(x)
"""

VIEW = Import("view", (Protocol.NATIVE,), "spun(view({x}))")
COPY = Import("copy", (Protocol.NATIVE,), "spun(copy({x}))")


class Spun(Fake):
    name = "spun"
    aliases = ()
    setup = SETUP
    imports = (VIEW,) if os.environ.get("DLPROF_TEST_BREAK") == "gone" else (VIEW, COPY)
