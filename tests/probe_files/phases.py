"""Frameworks that fail at one phase each: setup, create, pointer, to_numpy, wait and the rest.

Each gives to ``fake`` or takes from it; its only fault is the one in its name.
"""

import ctypes
import os
import runpy
import sys
from pathlib import Path

Fake = runpy.run_path(str(Path(__file__).with_name("fake.py")))["Fake"]


def crash():
    ctypes.string_at(0)


def leave():
    os._exit(3)


def sys_exit():
    sys.exit(3)


class SetupRaises(Fake):
    name = "setup-raises"
    setup = "import ctypes\nraise ImportError('libnothing.so.1 cannot be loaded')"


class SetupRaisesAnew(Fake):
    """As extension modules that half an import has registered already."""

    name = "setup-raises-anew"
    setup = (
        "import sys\n"
        "again, sys.half_imported = hasattr(sys, 'half_imported'), True\n"
        "raise ImportError('already registered' if again else 'libnothing.so.2 cannot be loaded')"
    )


class SetupCrashes(Fake):
    name = "setup-crashes"
    setup = "import ctypes\nctypes.string_at(0)"


class SetupIsNoPython(Fake):
    name = "setup-is-no-python"
    setup = "import ctypes\nthis is no python"


class CreateIsANumber(Fake):
    name = "create-is-a-number"

    def create(self, spec):
        return 5


class CreateIsNoPython(Fake):
    name = "create-is-no-python"

    def create(self, spec):
        return "x = = 5"


class CreateForgetsX(Fake):
    name = "create-forgets-x"

    def create(self, spec):
        return "y = 5"


class CreateIsMissing(Fake):
    name = "create-is-missing"

    def create(self, spec):
        raise NotImplementedError


class CreateCrashes(Fake):
    name = "create-crashes"

    def create(self, spec):
        return "x = ctypes.string_at(0)"


class CreateHangs(Fake):
    name = "create-hangs"

    def create(self, spec):
        return "import time\ntime.sleep(3600)"


class CreateExits(Fake):
    name = "create-exits"

    def create(self, spec):
        sys_exit()


class CreateMakesAnotherShape(Fake):
    name = "create-makes-another-shape"

    def shape(self, array):
        return (1, 2, 3)


class ShapeIsNothing(Fake):
    name = "shape-is-nothing"

    def shape(self, array):
        return None


class DtypeIsBytes(Fake):
    name = "dtype-is-bytes"

    def dtype(self, array):
        return b"float32"


class PointerIsText(Fake):
    name = "pointer-is-text"

    def pointer(self, array):
        return "hello"


class PointerIsNan(Fake):
    name = "pointer-is-nan"

    def pointer(self, array):
        return float("nan")


class PointerIsWrong(Fake):
    name = "pointer-is-wrong"

    def pointer(self, array):
        return 8


class PointerLeaves(Fake):
    name = "pointer-leaves"

    def pointer(self, array):
        leave()


class ToNumpyIsNothing(Fake):
    name = "to-numpy-is-nothing"

    def to_numpy(self, array):
        return None


class ToNumpyCrashes(Fake):
    name = "to-numpy-crashes"

    def to_numpy(self, array):
        crash()


class WritableIsAnObject(Fake):
    name = "writable-is-an-object"

    def writable(self, array):
        return object()


class DeviceIsUnknown(Fake):
    name = "device-is-unknown"

    def device(self, array):
        return ["\udcff", b"\xff"]


class WaitIsANumber(Fake):
    name = "wait-is-a-number"

    def wait(self, device):
        return 5


class WaitIsNoPython(Fake):
    name = "wait-is-no-python"

    def wait(self, device):
        return "wait for {x}"


class WaitHasAnotherName(Fake):
    name = "wait-has-another-name"

    def wait(self, device):
        return "len({y})"


class WaitRaises(Fake):
    name = "wait-raises"

    def wait(self, device):
        return "len({x}) / 0"


class WaitCrashes(Fake):
    name = "wait-crashes"

    def wait(self, device):
        return "ctypes.string_at(0 * len({x}))"


class WaitExits(Fake):
    name = "wait-exits"

    def wait(self, device):
        return "sys.exit(len({x}))"


class ReadyRaises(Fake):
    name = "ready-raises"

    def ready(self, device):
        raise RuntimeError("no licence for this device")


for number, faulty in enumerate(Fake.__subclasses__()):
    faulty.aliases = (f"phase{number}",)
