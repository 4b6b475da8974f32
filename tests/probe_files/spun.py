"""The fake framework with conversions that a test can slow down or break for one interpreter.

DLPROF_TEST_SPIN: turns of a loop inside each conversion. DLPROF_TEST_BREAK: ``crash`` kills the
process in ``copy``, ``company`` does so only after a ``view`` in the same process, and ``import``
makes the framework fail to load.
"""

import runpy
from pathlib import Path

from dlprof.probes.base import Import, Protocol

Fake = runpy.run_path(str(Path(__file__).with_name("fake.py")))["Fake"]

SETUP = """
import ctypes, os

BREAK = os.environ.get("DLPROF_TEST_BREAK")

if BREAK == "import":
    raise ImportError("libnothing.so: cannot open shared object file")

def spun(result, turns=int(os.environ.get("DLPROF_TEST_SPIN", "0"))):
    for _ in range(20 + turns):
        pass
    return result

def view(x):
    ctypes.viewed = True  # each conversion has a namespace of its own, and all of a process this
    return type(x).from_buffer(x)

def copy(x, broken=BREAK == "crash", fragile=BREAK == "company"):
    if broken or (fragile and hasattr(ctypes, "viewed")):
        os.abort()
    return type(x).from_buffer_copy(x)
"""

VIEW = Import("view", (Protocol.NATIVE,), "spun(view({x}))")
COPY = Import("copy", (Protocol.NATIVE,), "spun(copy({x}))")


class Spun(Fake):
    name = "spun"
    aliases = ()
    setup = SETUP
    imports = (VIEW, COPY)
