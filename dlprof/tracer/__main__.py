"""``python dlprof/tracer/__main__.py OPTIONS script.py …``: what ``dlprof trace`` starts.

By its path, and not by ``-m``: then no file of the working folder takes the place of a module that
is imported here, such as a ``json.py``.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys

OLDEST = (3, 10)
if sys.version_info < OLDEST:
    sys.exit("Python " + sys.version.split()[0] + " is too old: dlprof traces 3.10 and newer")
# This package itself: the interpreter may have none, or another version.
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120 - few imports
spec = importlib.util.spec_from_file_location("dlprof", os.path.join(ROOT, "__init__.py"))  # noqa: PTH118
assert spec is not None and spec.loader is not None  # noqa: PT018, S101 - the file is there
sys.modules["dlprof"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sys.modules["dlprof"])
from dlprof.device.cuda import admit_jax  # noqa: E402
from dlprof.tracer import program  # noqa: E402


def main() -> None:
    admit_jax()
    text, *words = sys.argv[1:]
    options = json.loads(text)
    program.start(options["folder"], tuple(options["include"]), options["events"])
    program.run(words, options["as_module"])


main()
