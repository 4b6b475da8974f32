"""``python dlprof/tracer/__main__.py OPTIONS script.py …``: what ``dlprof trace`` starts.

By its path, and not by ``-m``: then no file of the working folder takes the place of a module that
is imported here, such as a ``json.py``.
"""

from __future__ import annotations

import json
import os
import sys

# Where dlprof may be found only in the working folder.
sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))  # noqa: PTH100, PTH120 - few imports
from dlprof.device.cuda import admit_jax
from dlprof.tracer import program

sys.path.pop()


def main() -> None:
    admit_jax()
    text, *words = sys.argv[1:]
    options = json.loads(text)
    program.start(options["folder"], tuple(options["include"]), options["events"])
    program.run(words, options["as_module"])


main()
