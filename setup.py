"""Adds to a wheel for Linux on x86-64 the simulated CUDA driver, built. The rest is pyproject.toml.

Where there is no C compiler the wheel is for all machines, and builds the driver where it is used.
"""

import platform
import shutil
import sys
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

sys.path.insert(0, str(Path(__file__).parent))
from dlprof.simulated.build import SOURCES, build, built_folder

HAS_DRIVER = (
    sys.platform == "linux" and platform.machine() == "x86_64" and shutil.which("cc") is not None
)


class WithDriver(build_py):
    def run(self) -> None:
        super().run()
        if HAS_DRIVER and not self.editable_mode:
            folder = built_folder(Path(self.build_lib, "dlprof", "simulated"))
            folder.mkdir(parents=True, exist_ok=True)
            build(SOURCES, folder)


class ForOneMachine(bdist_wheel):
    """The driver needs no certain Python."""

    def get_tag(self) -> tuple[str, str, str]:
        return ("py3", "none", "linux_x86_64") if HAS_DRIVER else super().get_tag()


class Library(Distribution):
    def has_ext_modules(self) -> bool:
        return HAS_DRIVER


setup(distclass=Library, cmdclass={"build_py": WithDriver, "bdist_wheel": ForOneMachine})
