"""Every Python that starts with this folder in its path takes the device of threads for a GPU."""

from __future__ import annotations

import importlib.util
import sys

import device_of_threads


class Finder:
    """Finds the module of the device layer, and has it changed once it has been executed."""

    def find_spec(self, name, path, target=None):
        if name != "dlprof.device.cuda":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            device_of_threads.take_the_place_of(module)

        spec.loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, Finder())
