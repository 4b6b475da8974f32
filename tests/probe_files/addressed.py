"""The fake framework with a conversion that copies arrays off the start of a cache line.

DLPROF_TEST_PLACE: the place of arrays of layout C, ``aligned`` or ``sliced``.
DLPROF_TEST_COPIES: if set, the conversion always copies.
"""

import os
import runpy
from pathlib import Path

from dlprof.probes.base import Import, Protocol, Unsupported

Fake = runpy.run_path(str(Path(__file__).with_name("fake.py")))["Fake"]

SETUP = """
import ctypes, os

def placed(elements, offset):
    memory = (ctypes.c_char * (4 * elements + 128))()
    start = -ctypes.addressof(memory) % 64 + offset
    found = (ctypes.c_float * elements).from_buffer(memory, start)
    found[:] = range(elements)
    return found

def taken(x, copies="DLPROF_TEST_COPIES" in os.environ):
    if copies or ctypes.addressof(x) % 64:
        return type(x).from_buffer_copy(x)
    return type(x).from_buffer(x)
"""

OFFSETS = {"aligned": 0, "sliced": 4}


class Addressed(Fake):
    name = "addressed"
    aliases = ()
    setup = SETUP
    imports = (Import("take", (Protocol.NATIVE,), "taken({x})"),)

    def create(self, spec):
        place = os.environ.get("DLPROF_TEST_PLACE") if spec.layout == "C" else spec.layout
        if len(spec.shape) != 1 or spec.dtype != "float32" or place not in OFFSETS:
            raise Unsupported("addressed arrays have one contiguous axis of float32")
        return f"x = placed({spec.shape[0]}, {OFFSETS[place]})"
