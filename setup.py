"""Adds to a wheel what is written in C. The rest is pyproject.toml.

Where there is no C compiler the wheel is for all machines. The simulated CUDA driver is built where
it is used then, and the tracer is all Python.
"""

import platform
import shutil
import sys
from pathlib import Path

from setuptools import Distribution, Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

sys.path.insert(0, str(Path(__file__).parent))
from dlprof.simulated.build import SOURCES, build, built_folder

HAS_COMPILER = sys.platform == "linux" and shutil.which("cc") is not None
HAS_DRIVER = HAS_COMPILER and platform.machine() == "x86_64"
TRACED_CALL = Extension("dlprof.tracer._fast", ["dlprof/tracer/fast.c"], optional=True)


class WithDriver(build_py):
    def run(self) -> None:
        super().run()
        if HAS_DRIVER and not self.editable_mode:
            folder = built_folder(Path(self.build_lib, "dlprof", "simulated"))
            folder.mkdir(parents=True, exist_ok=True)
            build(SOURCES, folder)


class ForOneMachine(bdist_wheel):
    """The driver needs no certain Python. The traced call does, and others leave it out."""

    def get_tag(self) -> tuple[str, str, str]:
        machine = super().get_tag()[2]
        return ("py3", "none", machine if HAS_COMPILER else "any")


class Library(Distribution):
    def has_ext_modules(self) -> bool:
        return HAS_COMPILER


setup(
    distclass=Library,
    cmdclass={"build_py": WithDriver, "bdist_wheel": ForOneMachine},
    ext_modules=[TRACED_CALL],
)
