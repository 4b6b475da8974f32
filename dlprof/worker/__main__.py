"""Start of a worker: ``python .../dlprof/worker/__main__.py REQUESTS_FD REPLIES_FD``.

Runs under any interpreter, also without dlprof: only the folder of this package becomes importable,
and its ``__init__`` does not run. So nothing else of the parent's environment leaks in. A Python
that dlprof cannot measure, even Python 2, can read this file and say so.
"""

import sys

OLDEST = (3, 10)

if __name__ == "__main__":
    if sys.version_info < OLDEST:
        sys.exit("Python " + sys.version.split()[0] + " is too old: dlprof measures 3.10 and newer")
    # Python puts this folder first in sys.path; names such as values.py must not shadow anything.
    if not getattr(sys.flags, "safe_path", False):
        sys.path.pop(0)
    import os
    from types import ModuleType

    package = ModuleType("dlprof")
    package.__path__ = [os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]  # noqa: PTH100, PTH120
    sys.modules["dlprof"] = package

    from dlprof.worker.supervisor import supervise

    supervise()  # before more is imported
    import faulthandler

    faulthandler.enable()  # no option on the command line: Python 2 would not even start
    from dlprof.worker.serve import serve

    serve(int(sys.argv[1]), int(sys.argv[2]))
