"""Frameworks that each fail at one phase: setup, create, pointer, to_numpy and the rest.

Each gives to ``fake`` or takes from it; its only fault is the one in its name.
"""

import os
import runpy
from pathlib import Path

Fake = runpy.run_path(str(Path(__file__).with_name("fake.py")))["Fake"]


def returns(value):
    """Return a method that returns this value."""
    return lambda *_: value


def does(act):
    return lambda *_: act()


RAISES_ANEW = (
    # Like extension modules that a failed import has already registered.
    "import sys\n"
    "again, sys.half_imported = hasattr(sys, 'half_imported'), True\n"
    "raise ImportError('already registered' if again else 'libnothing.so.2 cannot be loaded')"
)
FAULTS = {
    "setup-raises-anew": {"setup": RAISES_ANEW},
    "setup-crashes": {"setup": "import ctypes\nctypes.string_at(0)"},
    "setup-is-no-python": {"setup": "import ctypes\nthis is no python"},
    "create-forgets-x": {"create": returns("y = 5")},
    "create-crashes": {"create": returns("x = ctypes.string_at(0)")},
    "create-makes-another-shape": {"shape": returns((1, 2, 3))},
    "pointer-is-text": {"pointer": returns("hello")},
    "pointer-leaves": {"pointer": does(lambda: os._exit(3))},
    "to-numpy-is-nothing": {"to_numpy": returns(None)},
    "writable-is-an-object": {"writable": returns(object())},
    "device-is-unknown": {"device": returns(["\udcff", b"\xff"])},
}

for number, (name, fault) in enumerate(FAULTS.items()):
    globals()[f"Phase{number}"] = type(
        f"Phase{number}", (Fake,), {"name": name, "aliases": (), **fault}
    )
